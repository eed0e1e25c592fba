/**
 * Whether the node is what was last applied: looked at when asked, never acted on. What costs (reading documents,
 * rendering, diffs) is done once per text that is found, for consoles ask every few seconds.
 */
import type { ConfigReason, ConfigStatusAnswer } from "../api/contract.ts";
import { diffDocuments } from "../apply/classify.ts";
import { driftReasons, type FoundNode } from "../apply/drift.ts";
import { expectedNode } from "../apply/expected.ts";
import { nodeFingerprintKey } from "../apply/fingerprint-key.ts";
import { fingerprint } from "../apply/fingerprint.ts";
import {
  addressChanged,
  documentEdited,
  documentNotTaken,
  handoverWaits,
  k0sChanged,
  rendererChanged,
  secretChanged,
  type SourceOne,
  watchedSecrets,
} from "../apply/pending.ts";
import { RENDER_VERSION } from "../apply/render-version.ts";
import { ANY_TIME, parseDocument } from "../config/load.ts";
import { secretFields } from "../config/secrets.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import { goneAddresses } from "../provision/addresses.ts";
import { judgeText } from "../provision/secrets.ts";
import type { Baseline, OperationKind } from "../state/model.ts";
import type { State } from "../state/open.ts";
import { differingFiles, fileReader, ownPaths, type Recorded, readUnits } from "./recorded-node.ts";
import { sha256Of } from "../kit/sha256.ts";

export type ConfigStatus = Pick<ConfigStatusAnswer, "state" | "reasons">;

/** What others have read of the machine already. */
export interface ConfigFacts extends Pick<FoundNode, "arrays" | "mounts" | "links"> {
  readonly hostname: string;
  /** Without prefix; undefined where they can't be read. */
  readonly addresses?: readonly string[] | undefined;
  readonly k0sVersion?: string | undefined;
}

export interface ConfigWorld {
  readonly host: Host;
  readonly paths: Pick<Paths, "config">;
  readonly state: Pick<State, "baseline" | "meta" | "owned" | "replacements" | "operations" | "handover">;
  /** Of this release; another one for tests. */
  readonly renderVersion?: number;
}

/** They write what is looked at: until they are over the node is not what was recorded, and that is no drift. */
export const WRITING: readonly OperationKind[] = ["apply", "render", "baseline-adopt", "handover", "reset"];

/** Documents and secrets are far smaller. */
const MAX_BYTES = 2 * 1024 * 1024;

/** The reader of one node, which remembers what it has compared. */
export function configReader(world: ConfigWorld): (facts: ConfigFacts) => Promise<ConfigStatus> {
  const { host, state } = world;
  const renderVersion = world.renderVersion ?? RENDER_VERSION;
  const recordedOf = last<Recorded>();
  const readFile = fileReader(host, renderVersion);
  const readSource = sourceReader(world);

  async function pending(recorded: Recorded, facts: ConfigFacts): Promise<readonly ConfigReason[]> {
    const { baseline } = recorded;
    const edited = await readSource(recorded);
    const reasons = edited === undefined ? [] : [edited];
    if (recorded.refused !== undefined) reasons.push(documentNotTaken(recorded.refused));
    reasons.push(...(await changedSecrets(host, recorded)));
    if (renderVersion !== baseline.renderVersion) {
      reasons.push(rendererChanged(renderVersion, baseline.renderVersion, await differingFiles(host, recorded)));
    }
    const gone = facts.addresses === undefined ? [] : goneAddresses(baseline.addresses, facts.addresses);
    if (gone.length > 0) reasons.push(addressChanged(gone));
    if (facts.k0sVersion !== undefined && facts.k0sVersion !== baseline.k0sVersion) {
      reasons.push(k0sChanged(facts.k0sVersion, baseline.k0sVersion));
    }
    const condition = state.handover.condition();
    if (condition?.status === "True" && recorded.handedOver === undefined) {
      reasons.push(handoverWaits(condition.message));
    }
    return reasons;
  }

  async function drift(recorded: Recorded, facts: ConfigFacts): Promise<readonly ConfigReason[]> {
    const running = state.operations.running()?.kind;
    if (running !== undefined && WRITING.includes(running)) return [];
    const [files, units] = await Promise.all([
      Promise.all(ownPaths(recorded).map((path) => readFile(recorded, path))),
      readUnits(host, recorded),
    ]);
    return driftReasons(recorded.baseline, { ...facts, files, units });
  }

  return async (facts) => {
    const baseline = state.baseline.get();
    if (baseline === undefined) return { state: "unconfigured", reasons: [] };
    const replaced = state.replacements.done();
    const handedOver = state.handover.done()?.stack;
    const id = `${baseline.document.id} ${baseline.atMs} ${replaced.length} ${handedOver ?? ""}`;
    const recorded = recordedOf(id, () => {
      const { document, findings } = parseDocument(baseline.document.text, { nowMs: ANY_TIME });
      const fingerprintKey = nodeFingerprintKey(state.meta, host.random);
      const common = { id, baseline, replaced, handedOver, fingerprintKey };
      if (document === undefined) {
        const refused = findings.find(({ severity }) => severity === "error");
        return refused === undefined ? common : { ...common, refused };
      }
      const owned = state.owned.list();
      return { ...common, document, expected: expectedNode({ document, node: baseline, owned, handedOver }) };
    });
    const [wished, differs] = await Promise.all([pending(recorded, facts), drift(recorded, facts)]);
    const found = wished.length > 0 ? "pending" : differs.length > 0 ? "drifted" : "in-sync";
    return { state: found, reasons: [...wished, ...differs] };
  };
}

/** The last answer stays for as long as the question has the same key. */
function last<T>(): (key: string, make: () => T) => T {
  let known: { readonly key: string; readonly value: T } | undefined;
  return (key, make) => (known?.key === key ? known : (known = { key, value: make() })).value;
}

function sourceReader({
  host,
  paths: { config },
}: ConfigWorld): (recorded: Recorded) => Promise<ConfigReason | undefined> {
  const judged = last<SourceOne>();
  return async (recorded) => {
    const { document: stored } = recorded.baseline;
    const text = await host.files.readText(config, { maxBytes: MAX_BYTES });
    if (!text.ok) {
      if (text.error.code !== "ENOENT") return documentEdited(config, { is: "unreadable", why: text.error.message });
      return isOfSource1(stored.origin, config) ? documentEdited(config, { is: "deleted" }) : undefined;
    }
    const sha256 = sha256Of(text.value);
    if (sha256 === stored.sha256) return undefined;
    return documentEdited(
      config,
      judged(`${recorded.id} ${sha256}`, () => judge(recorded, text.value)),
    );
  };
}

/** A node that was bootstrapped from another source never had the file. */
const isOfSource1 = (origin: Baseline["document"]["origin"], config: string): boolean =>
  origin === config || origin === "apply" || origin === "enroll" || origin === "install";

function judge({ baseline, document: before, ...recorded }: Recorded, text: string): SourceOne {
  const { findings, document } = parseDocument(text, { nowMs: ANY_TIME });
  if (document === undefined || before === undefined) {
    return { is: "invalid", first: findings.find(({ severity }) => severity === "error") };
  }
  const { addresses } = baseline;
  const { fingerprintKey, replaced, handedOver } = recorded;
  const options = { addresses, fingerprintKey, replaced, ...(handedOver === undefined ? {} : { handedOver }) };
  return { is: "edited", diff: diffDocuments(before, document, options) };
}

/** A file that is gone says nothing: the node has what it needs of it. */
async function changedSecrets(
  host: Host,
  { baseline, document, fingerprintKey }: Recorded,
): Promise<readonly ConfigReason[]> {
  const reasons: ConfigReason[] = [];
  for (const { path, file } of document === undefined ? [] : watchedSecrets(secretFields(document))) {
    const known = baseline.secretFingerprints[path];
    const text = known === undefined ? undefined : await host.files.readText(file, { maxBytes: MAX_BYTES });
    const now = text?.ok === true ? judgeText(text.value, file) : undefined;
    if (now?.kind === "value" && fingerprint(fingerprintKey, now.text) !== known)
      reasons.push(secretChanged(path, file));
  }
  return reasons;
}
