import type { Document } from "../config/document.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { Finding } from "../kit/finding.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { installArgv, joins } from "./argv.ts";
import { clusterConfig } from "./cluster-config.ts";
import { addressHold } from "./hold.ts";
import { lintConfig, lintReach } from "./lint.ts";
import { K0S_CONFIG, K0S_JOIN_TOKEN, K0S_MANIFESTS } from "./paths.ts";
import { writeYaml } from "./yaml.ts";

export interface RenderedK0s {
  readonly files: readonly RenderedFile[];
  /** From `install` on; null while the node has no role. */
  readonly installArgv: readonly string[] | null;
  readonly findings: readonly Finding[];
}

/** Private: chart values and manifests often hold what should have been a secret. */
const PRIVATE = 0o600;

export function renderManifests(document: Document): readonly RenderedFile[] {
  return document.manifests.flatMap((stack) =>
    stack.files.map((file) => ({
      path: `${K0S_MANIFESTS}/${stack.name}/${file.name}`,
      mode: PRIVATE,
      content: file.content,
    })),
  );
}

/**
 * Everything that k0s reads on this node. Pure: the same document and recorded addresses give the same bytes, on a
 * workstation and on the node. A worker has no k0s.yaml; a node without a role has nothing.
 */
export function renderK0s(input: { readonly document: Document; readonly addresses: RecordedAddresses }): RenderedK0s {
  const { document, addresses } = input;
  const lint = (config: unknown): readonly Finding[] =>
    lintConfig(config, document.k0s.patch, addresses.unicastSourceIp !== undefined);
  // Nothing is rendered, but whoever gives a patch before the role may as well hear of its slips.
  if (document.role === undefined) {
    const isPatched = Object.keys(document.k0s.patch).length > 0;
    return { files: [], installArgv: null, findings: isPatched ? lint(clusterConfig(document, addresses)) : [] };
  }
  const files: RenderedFile[] = [];
  const findings: Finding[] = [];
  if (document.role !== "worker") {
    const config = clusterConfig(document, addresses);
    files.push({ path: K0S_CONFIG, mode: PRIVATE, content: writeYaml(config) });
    findings.push(...lint(config), ...lintReach(document, config));
  }
  if (joins(document)) {
    const field = document.join?.tokenFrom === undefined ? "join.token" : "join.tokenFrom";
    files.push({ path: K0S_JOIN_TOKEN, mode: PRIVATE, content: `<secret:${field}>\n` });
  }
  files.push(...renderManifests(document), ...addressHold(document, addresses));
  return { files, installArgv: installArgv(document, addresses), findings };
}
