/**
 * A document that was corrected before the first boot was over: what the ones before it had written, and it does not want.
 * An overlay that is no longer named would hold k0s back for ever, and each of these files would act at the next boot. Pure.
 */
import type { Document } from "../../config/document.ts";
import { K0S_CONFIG, K0S_MANIFESTS } from "../../k0s/paths.ts";
import type { Finding } from "../../kit/finding.ts";
import { mappingName } from "../../luks/argv.ts";
import { CRYPTTAB } from "../../luks/render.ts";
import { keyFiles, overlayOf } from "../../wireguard/render.ts";
import type { EarlierStep } from "../model.ts";
import { renderNode, type RenderInput } from "../render.ts";

/** What of it may be there; the machine tells what is. */
export interface Earlier {
  readonly files: readonly string[];
  /** Names of lines of ours in /etc/crypttab. */
  readonly volumes: readonly string[];
}

/** Storage unmounts its own: a unit must not be gone before it is stopped. */
const isOfMount = (path: string): boolean =>
  path.endsWith(".mount") || /^\/etc\/systemd\/system\/[^/]+\.service\.d\/50-corium-(?!overlay-)/.test(path);

export function earlierThan(documents: readonly Document[], now: Omit<RenderInput, "uuids" | "handedOver">): Earlier {
  const pathsOf = (document: Document): readonly string[] =>
    renderNode({ ...now, document }).files.map(({ path }) => path);
  // A key that the node makes is rendered by nobody, and it would be made anew at every retry.
  const keys = now.document.wireguard.flatMap(keyFiles).map(({ path }) => path);
  const wanted = new Set([...pathsOf(now.document), ...keys, CRYPTTAB]);
  const files = new Set(documents.flatMap(pathsOf).filter((path) => !wanted.has(path) && !isOfMount(path)));
  const isDeclared = (name: string): boolean => now.document.luks.some((volume) => volume.name === name);
  const volumes = new Set(documents.flatMap(({ luks }) => luks.map(({ name }) => name)));
  return {
    files: [...files].toSorted(),
    volumes: [...volumes].filter((name) => !isDeclared(name)).toSorted(),
  };
}

const isOfK0s = (path: string): boolean => path === K0S_CONFIG || path.startsWith(`${K0S_MANIFESTS}/`);

/** `found`: what is there of it. */
export function planEarlier(
  found: Earlier,
  hasK0sRecord: boolean,
): { readonly steps: readonly EarlierStep[]; readonly findings: readonly Finding[] } {
  const kept = hasK0sRecord ? found.files.filter(isOfK0s) : [];
  const files = found.files.filter((path) => !kept.includes(path));
  const stacks = [...new Set(kept.filter((path) => path !== K0S_CONFIG).map((path) => path.split("/").at(-2) ?? ""))];
  const findings = stacks.map((stack): Finding => ({
    severity: "warning",
    code: "earlier-stack",
    path: "manifests",
    message: `k0s was started with the manifests of '${stack}', which the document does not have any more: they stay`,
    hint: `to be rid of them: give the document the stack back, or reset this node; removing ${K0S_MANIFESTS}/${stack} makes k0s delete its objects`,
  }));
  if (files.length === 0 && found.volumes.length === 0) return { steps: [], findings };
  const overlays = files.flatMap((path) => overlayOf(path) ?? []);
  const what = [...files, ...found.volumes.map((name) => `${name} in ${CRYPTTAB}`)];
  const step: EarlierStep = {
    kind: "node:earlier",
    id: "earlier",
    title: `remove what an earlier document had written: ${what.join(", ")}`,
    files,
    overlays,
    timers: files.filter((path) => path.endsWith(".timer")).map((path) => path.split("/").at(-1) ?? ""),
    mappings: found.volumes.map(mappingName),
  };
  return { steps: [step], findings };
}
