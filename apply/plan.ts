/** What an apply would do, in full and without doing it: classes, files, restarts, and what a person would notice. */
import { parse } from "yaml";
import type { Document } from "../config/document.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { ReplacedDisk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { joins } from "../k0s/argv.ts";
import type { ChartStanding } from "../k0s/charts.ts";
import { K0S_CONFIG } from "../k0s/paths.ts";
import { renderNode, type RenderedNode } from "../provision/render.ts";
import type { HandEdit } from "./by-hand/driver.ts";
import { diffDocuments, type DocumentDiff } from "./classify.ts";
import { describeConsequences, describeUndo } from "./consequences.ts";
import { isSameConfig } from "./overrides.ts";
import { unifiedDiff } from "./show.ts";

/** As recorded in the baseline; never derived again. */
export interface NodeFacts {
  readonly hostname: string;
  readonly machineId: string;
  readonly addresses: RecordedAddresses;
}

export interface PlanInput {
  readonly baseline: Document;
  readonly proposal: Document;
  readonly node: NodeFacts;
  /** Secret of the node; keys the fingerprints that stand for secrets. */
  readonly fingerprintKey: string;
  /** The operator owns what the patch overrides. */
  readonly ownPatch?: boolean;
  /** It is taken back unless somebody confirms it. */
  readonly isConfirmed?: boolean;
  readonly replaced?: readonly ReplacedDisk[];
  readonly standings?: ReadonlyMap<string, ChartStanding>;
  readonly handedOver?: string;
}

export type FileChange =
  | { readonly action: "write"; readonly path: string; readonly file: RenderedFile; readonly diff: string }
  | { readonly action: "remove"; readonly path: string; readonly diff: string };

export interface ApplyPlan {
  readonly diff: DocumentDiff;
  /** Sorted by path; empty when refused or unchanged. */
  readonly files: readonly FileChange[];
  /** Timer units that the baseline has and the proposal has not, and those that it has. */
  readonly timers: { readonly gone: readonly string[]; readonly wanted: readonly string[] };
  /** Charts that helm has to install or upgrade for it. */
  readonly charts: readonly string[];
  /** Services, without suffix. */
  readonly restarts: readonly string[];
  readonly consequences: readonly string[];
  /** Found on the node: what somebody changed by hand and this replaces. */
  readonly handEdits?: readonly HandEdit[];
  /** What an undo would do, when k0s does not come back. */
  readonly undo: readonly string[];
  readonly warnings: readonly Finding[];
}

export function planApply(input: PlanInput): ApplyPlan {
  const { baseline, proposal, fingerprintKey } = input;
  // Picked one by one: a recorded baseline passes for NodeFacts and has a document of its own.
  const { hostname, machineId, addresses } = input.node;
  const handedOver = input.handedOver === undefined ? {} : { handedOver: input.handedOver };
  const render = (document: Document): RenderedNode =>
    renderNode({ document, hostname, machineId, addresses, ...handedOver });
  const diff = diffDocuments(baseline, proposal, {
    addresses,
    fingerprintKey,
    ownPatch: input.ownPatch === true,
    replaced: input.replaced ?? [],
    ...(input.standings === undefined ? {} : { standings: input.standings }),
    ...handedOver,
  });
  const nothing = { files: [], timers: { gone: [], wanted: [] }, charts: [], restarts: [], consequences: [], undo: [] };
  if (diff.result === "unchanged") return { diff, ...nothing, warnings: [] };
  const after = render(proposal);
  if (diff.result === "refused") return { diff, ...nothing, warnings: after.findings };
  const before = render(baseline);
  const files = changedFiles(before, after, fingerprintKey);
  return {
    diff,
    files,
    timers: changedTimers(before, after, files),
    charts: changedCharts(proposal, diff),
    restarts: diff.restarts,
    consequences: describeConsequences(baseline, proposal, diff),
    undo: describeUndo(diff, { fileCount: files.length, isConfirmed: input.isConfirmed === true }),
    warnings: after.findings,
  };
}

function changedFiles(before: RenderedNode, after: RenderedNode, key: string): readonly FileChange[] {
  const old = new Map(before.files.map((file) => [file.path, file]));
  const next = new Map(after.files.map((file) => [file.path, file]));
  const changes: FileChange[] = [];
  for (const [path, file] of next) {
    const known = old.get(path);
    if (known !== undefined && isSameFile(known, file)) continue;
    changes.push({ action: "write", path, file, diff: unifiedDiff(path, known?.content, file.content, key) });
  }
  for (const [path, file] of old) {
    if (!next.has(path)) {
      changes.push({ action: "remove", path, diff: unifiedDiff(path, file.content, undefined, key) });
    }
  }
  return changes.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

function isSameFile(a: RenderedFile, b: RenderedFile): boolean {
  if (a.content === b.content && a.mode === b.mode) return true;
  return a.path === K0S_CONFIG && a.mode === b.mode && isSameConfig(parseOwn(a.content), parseOwn(b.content));
}

/** The writer of k0s.yaml makes no key twice, and the library would compare each with all others. */
const parseOwn = (text: string): unknown => parse(text, { uniqueKeys: false });

/** Another URL of a repository alone makes no release. Where other controllers are, the leader's charts count. */
function changedCharts(proposal: Document, diff: DocumentDiff): readonly string[] {
  if (diff.restarts.length === 0 || proposal.ha.enabled || joins(proposal)) return [];
  const rendered = new Set(diff.charts);
  const changed = new Set(
    diff.fields.flatMap(({ path }) => /^addons\[([^\]]+)\](?:\.(?:version|values))?$/.exec(path)?.[1] ?? []),
  );
  return [...changed].filter((name) => rendered.has(name));
}

const isTimer = (unit: string): boolean => unit.endsWith(".timer");

function changedTimers(before: RenderedNode, after: RenderedNode, files: readonly FileChange[]): ApplyPlan["timers"] {
  const changed = new Set(files.map((file) => file.path.split("/").at(-1)));
  return {
    gone: before.units.filter((unit) => isTimer(unit) && !after.units.includes(unit)),
    wanted: after.units.filter((unit) => isTimer(unit) && changed.has(unit)),
  };
}
