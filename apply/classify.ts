/** The gate: which changes a node in service takes, all or nothing. */
import type { FieldChange, Removal } from "../api/contract.ts";
import type { Document } from "../config/document.ts";
import { withStandIns } from "../config/replaced.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { ReplacedDisk } from "../kit/disk.ts";
import type { ChartStanding } from "../k0s/charts.ts";
import { clusterConfig } from "../k0s/cluster-config.ts";
import { type Change, diffFields, type FieldDiff, type Gone } from "./fields.ts";
import { withFingerprints } from "./fingerprint.ts";
import { goneObjects } from "./objects.ts";
import { changedOverrides, chartNames, isSameConfig } from "./overrides.ts";

export interface DocumentDiff {
  readonly result: "unchanged" | "reconcilable" | "guarded" | "refused";
  /**
   * The patch overrides what Corium models, and nobody owned that; or a stack that was handed over is edited. `fields`
   * and `removed` may refuse it as well.
   */
  readonly reason?: "patch-overrides" | "handed-over";
  /** Sorted by path; secrets as fingerprints. */
  readonly fields: readonly FieldChange[];
  /** Sorted by name. */
  readonly removed: readonly Removal[];
  /** What of k0s.yaml a patch now changes although Corium models it. */
  readonly overrides: readonly string[];
  /** By name, as the proposal's k0s.yaml has them. */
  readonly charts: readonly string[];
  /** Charts that the proposal no longer has, and whose release is not proven to be gone: what refuses it, by name. */
  readonly vanished: readonly string[];
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
  /** Of charts that vanish, as the live cluster says it; one that is gone there may go from the document. */
  readonly standings?: ReadonlyMap<string, ChartStanding>;
  /** Stack that GitOps owns now: the document may drop it, and change nothing else about it. */
  readonly handedOver?: string;
}

const OBJECT_HINT =
  "k0s would delete it, with what depends on it: keep it in the document; a workload that is not wanted can be scaled to 0";

function chartHint(name: string, standing: ChartStanding | undefined): string {
  const uninstall = `kubectl delete chart -n kube-system k0s-addon-chart-${name}`;
  switch (standing?.is) {
    case "leaving":
      return `its uninstall is under way (${uninstall} was called): apply again when its Chart object is gone`;
    case "unknown":
      return `whether it is uninstalled is not known (${standing.why}), so it counts as there: ${uninstall}; once that is proven gone the document may drop it`;
    case "gone":
    case "there":
    case undefined:
      return `uninstall it first: ${uninstall}; once it is gone the document may drop it`;
    default:
      return standing satisfies never;
  }
}

/** A file lies in a stack, so what lies in a stack that is gone is not named again. */
function removalOf(gone: Gone, { standings }: DiffOptions): Removal {
  const { path, name } = gone;
  if (gone.list === "addons") return { path, name, hint: chartHint(name, standings?.get(name)) };
  if (gone.list === "manifests") return { path, name, hint: OBJECT_HINT };
  const stack = /^manifests\[(.*)\]\.files\[/.exec(path)?.[1] ?? "";
  return { path, name: `${stack}/${name}`, hint: OBJECT_HINT };
}

/** What leaves nothing behind when it is dropped is a change like any other. */
function letGo({ changes, gone }: FieldDiff, { standings, handedOver }: DiffOptions): FieldDiff {
  const isFree = ({ list, name }: Gone): boolean =>
    list === "addons" ? standings?.get(name)?.is === "gone" : list === "manifests" && name === handedOver;
  const freed = gone.filter(isFree).map(({ path, list, entry }): Change => ({
    path,
    class: "safe",
    name: list,
    old: entry,
  }));
  // The stack can only be dropped together with what names it.
  const eased = changes.map((change) =>
    handedOver !== undefined && change.path.startsWith("network.handover.") && !("new" in change)
      ? { ...change, class: "host" as const }
      : change,
  );
  return {
    changes: [...eased, ...freed].toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    gone: gone.filter((one) => !isFree(one)),
  };
}

/** GitOps has it: what the document says of it from now on would be read by nobody. Dropping it is fine. */
const isEdited = (stack: string | undefined, { changes, gone }: FieldDiff): boolean => {
  const at = `manifests[${stack}]`;
  return (
    stack !== undefined &&
    (gone.some(({ path }) => path.startsWith(`${at}.`)) ||
      changes.some(({ path, ...sides }) => path.startsWith(`${at}.`) || (path === at && "new" in sides)))
  );
};

function findRemoved(
  { baseline, proposal }: { readonly baseline: Document; readonly proposal: Document },
  gone: readonly Gone[],
  vanished: readonly string[],
  options: DiffOptions,
): Removal[] {
  const removed = gone.map((one) => removalOf(one, options));
  for (const { stack, file, object } of goneObjects(baseline.manifests, proposal.manifests)) {
    removed.push({
      path: `manifests[${stack}].files[${file}].content`,
      name: `${stack}/${file}/${object}`,
      hint: OBJECT_HINT,
    });
  }
  for (const name of vanished) {
    if (gone.some((one) => one.list === "addons" && one.name === name)) continue;
    removed.push({ path: "k0s.patch", name, hint: chartHint(name, options.standings?.get(name)) });
  }
  return removed.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function vanishedCharts(
  gone: readonly Gone[],
  { before, after }: { readonly before: readonly string[]; readonly after: readonly string[] },
  { standings }: DiffOptions,
): readonly string[] {
  const addons = gone.filter(({ list }) => list === "addons").map(({ name }) => name);
  const left = before.filter((name) => !after.includes(name) && standings?.get(name)?.is !== "gone");
  return [...new Set([...addons, ...left])];
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
  const found = letGo(diffFields(withStandIns(baseline, replaced), withStandIns(proposal, replaced)), options);
  const { changes, gone } = found;
  const addresses = options.addresses ?? {};
  const configs = { baseline: configOf(baseline, addresses), proposal: configOf(proposal, addresses) };
  const charts = chartNames(configs.proposal);
  const vanished = vanishedCharts(gone, { before: chartNames(configs.baseline), after: charts }, options);
  const removed = findRemoved({ baseline, proposal }, gone, vanished, options);
  const isRefusedClass = changes.some((change) => change.class === "immutable" || change.class === "own-verb");
  const isPatched = changes.some((change) => change.path === "k0s.patch");
  const overrides = isPatched ? changedOverrides(configs.baseline, configs.proposal) : [];
  const mustOwn = overrides.length > 0 && options.ownPatch !== true;
  const isHandedOverEdited = isEdited(options.handedOver, found);
  const isRefused = isRefusedClass || removed.length > 0 || mustOwn || isHandedOverEdited;
  const reason = isHandedOverEdited ? "handed-over" : mustOwn ? "patch-overrides" : undefined;
  const fields = changes.map((change) => publicChange(change, options.fingerprintKey));
  const doesRestart = fields.length > 0 && !isRefused && !isSameConfig(configs.baseline, configs.proposal);
  return {
    result: resultOf(changes, isRefused),
    ...(reason === undefined ? {} : { reason }),
    fields,
    removed,
    overrides,
    charts,
    vanished,
    restarts: doesRestart ? ["k0scontroller"] : [],
  };
}

function resultOf(changes: readonly Change[], isRefused: boolean): DocumentDiff["result"] {
  if (isRefused) return "refused";
  if (changes.length === 0) return "unchanged";
  return changes.some((change) => change.class === "guarded") ? "guarded" : "reconcilable";
}
