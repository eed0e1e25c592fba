/** The gate: which changes a node in service takes, all or nothing. */
import type { FieldChange, Removal } from "../api/contract.ts";
import type { Document } from "../config/document.ts";
import { withStandIns } from "../config/replaced.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { ReplacedDisk } from "../kit/disk.ts";
import { clusterConfig } from "../k0s/cluster-config.ts";
import { type Change, diffFields, type Gone } from "./fields.ts";
import { withFingerprints } from "./fingerprint.ts";
import { goneObjects } from "./objects.ts";
import { changedOverrides, chartNames, isSameConfig } from "./overrides.ts";

export interface DocumentDiff {
  readonly result: "unchanged" | "reconcilable" | "guarded" | "refused";
  /** The patch overrides what Corium models, and nobody owned that; `fields` and `removed` may refuse it as well. */
  readonly reason?: "patch-overrides";
  /** Sorted by path; secrets as fingerprints. */
  readonly fields: readonly FieldChange[];
  /** Sorted by name. */
  readonly removed: readonly Removal[];
  /** What of k0s.yaml a patch now changes although Corium models it. */
  readonly overrides: readonly string[];
  /** By name, as the proposal's k0s.yaml has them. */
  readonly charts: readonly string[];
  /** Units, without suffix; empty when refused. */
  readonly restarts: readonly string[];
}

export interface DiffOptions {
  /** As recorded when the node entered service; offline none are known. */
  readonly addresses?: RecordedAddresses;
  /** Secret of the node (or of one run): keys the fingerprints. */
  readonly fingerprintKey: string;
  /** The operator owns what the patch overrides. */
  readonly ownPatch?: boolean;
  /** On this node: a document may name either of the two. */
  readonly replaced?: readonly ReplacedDisk[];
}

const CHART_HINT =
  "uninstall it first: kubectl delete chart -n kube-system k0s-addon-chart-NAME; once it is gone the document may drop it";
const OBJECT_HINT = "k0s would delete it; delete it yourself with kubectl, and only then drop it";

const hintFor = (kind: "chart" | "object", name: string): string =>
  (kind === "chart" ? CHART_HINT : OBJECT_HINT).replace("NAME", name);

/** `parents`: a file lies in a stack, so what lies in a stack that is gone is not named again. */
function removalOf(gone: Gone): Removal {
  if (gone.list === "addons") return { path: gone.path, name: gone.name, hint: hintFor("chart", gone.name) };
  if (gone.list === "manifests") return { path: gone.path, name: gone.name, hint: OBJECT_HINT };
  const stack = /^manifests\[(.*)\]\.files\[/.exec(gone.path)?.[1] ?? "";
  return { path: gone.path, name: `${stack}/${gone.name}`, hint: OBJECT_HINT };
}

function findRemoved(baseline: Document, proposal: Document, gone: readonly Gone[], configs: Configs): Removal[] {
  const removed = gone.map(removalOf);
  for (const { stack, file, object } of goneObjects(baseline.manifests, proposal.manifests)) {
    removed.push({
      path: `manifests[${stack}].files[${file}].content`,
      name: `${stack}/${file}/${object}`,
      hint: OBJECT_HINT,
    });
  }
  const left = new Set(chartNames(configs.proposal));
  const goneAddons = new Set(gone.filter((one) => one.list === "addons").map((one) => one.name));
  for (const name of chartNames(configs.baseline)) {
    if (!left.has(name) && !goneAddons.has(name)) {
      removed.push({ path: "k0s.patch", name, hint: hintFor("chart", name) });
    }
  }
  return removed.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

interface Configs {
  readonly baseline: unknown;
  readonly proposal: unknown;
}

/** A worker has no k0s.yaml, and a node without a role has nothing yet. */
const configOf = (document: Document, addresses: RecordedAddresses): unknown =>
  document.role === undefined || document.role === "worker" ? undefined : clusterConfig(document, addresses);

const publicChange = ({ name, path, class: fieldClass, ...sides }: Change, key: string): FieldChange => ({
  path,
  class: fieldClass,
  ...("old" in sides ? { old: withFingerprints(sides.old, name, key) } : {}),
  ...("new" in sides ? { new: withFingerprints(sides.new, name, key) } : {}),
});

export function diffDocuments(baseline: Document, proposal: Document, options: DiffOptions): DocumentDiff {
  const replaced = options.replaced ?? [];
  const { changes, gone } = diffFields(withStandIns(baseline, replaced), withStandIns(proposal, replaced));
  const addresses = options.addresses ?? {};
  const configs = { baseline: configOf(baseline, addresses), proposal: configOf(proposal, addresses) };
  const removed = findRemoved(baseline, proposal, gone, configs);
  const isRefusedClass = changes.some((change) => change.class === "immutable" || change.class === "own-verb");
  const isPatched = changes.some((change) => change.path === "k0s.patch");
  const overrides = isPatched ? changedOverrides(configs.baseline, configs.proposal) : [];
  const mustOwn = overrides.length > 0 && options.ownPatch !== true;
  const isRefused = isRefusedClass || removed.length > 0 || mustOwn;
  const fields = changes.map((change) => publicChange(change, options.fingerprintKey));
  const doesRestart = fields.length > 0 && !isRefused && !isSameConfig(configs.baseline, configs.proposal);
  return {
    result: resultOf(changes, isRefused),
    ...(mustOwn ? { reason: "patch-overrides" } : {}),
    fields,
    removed,
    overrides,
    charts: chartNames(configs.proposal),
    restarts: doesRestart ? ["k0scontroller"] : [],
  };
}

function resultOf(changes: readonly Change[], isRefused: boolean): DocumentDiff["result"] {
  if (isRefused) return "refused";
  if (changes.length === 0) return "unchanged";
  return changes.some((change) => change.class === "guarded") ? "guarded" : "reconcilable";
}
