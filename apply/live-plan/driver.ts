/** The plan of an apply on the node itself: with what it has recorded, and what its cluster says of charts that vanish. */
import type { Document } from "../../config/document.ts";
import type { Host } from "../../kit/ports.ts";
import { readChartStandings } from "../../k0s/objects/driver.ts";
import type { Baseline } from "../../state/model.ts";
import type { State } from "../../state/open.ts";
import type { Paths } from "../../kit/paths.ts";
import { describeHandEdits, findHandEdits, type Replacement } from "../by-hand/driver.ts";
import { nodeFingerprintKey } from "../fingerprint-key.ts";
import { type ApplyPlan, planApply, type PlanInput } from "../plan.ts";

export interface LiveNode {
  readonly host: Host;
  readonly state: Pick<State, "meta" | "replacements" | "handover" | "operations">;
  readonly paths: Pick<Paths, "stateDir" | "config">;
}

export async function planOnNode(
  { host, state }: Pick<LiveNode, "host" | "state">,
  change: {
    readonly baseline: Baseline;
    /** The baseline's document. */
    readonly before: Document;
    readonly proposal: Document;
    readonly ownPatch: boolean;
    /** It is taken back unless somebody confirms it. */
    readonly isConfirmed: boolean;
  },
): Promise<ApplyPlan> {
  const handedOver = state.handover.done()?.stack;
  const input: PlanInput = {
    baseline: change.before,
    proposal: change.proposal,
    node: change.baseline,
    fingerprintKey: nodeFingerprintKey(state.meta, host.random),
    ownPatch: change.ownPatch,
    isConfirmed: change.isConfirmed,
    replaced: state.replacements.done(),
    ...(handedOver === undefined ? {} : { handedOver }),
  };
  const first = planApply(input);
  // The cluster is asked only where its answer counts; a proposal that drops nothing needs no k0s.
  if (first.diff.vanished.length === 0) return first;
  return planApply({ ...input, standings: await readChartStandings(host, first.diff.vanished) });
}

/** With what somebody changed by hand in the files that it replaces, source 1 included. */
export async function withHandEdits(
  { host, paths, state }: LiveNode,
  plan: ApplyPlan,
  { baseline, text }: { readonly baseline: Baseline; /** Becomes source 1. */ readonly text: string },
): Promise<ApplyPlan> {
  // What an operation has written meanwhile is nobody's edit.
  if (plan.diff.result === "unchanged" || state.operations.running() !== undefined) return plan;
  const replaced: readonly Replacement[] = [
    ...plan.files.map((file) => ({
      path: file.path,
      recorded: baseline.rendered[file.path],
      content: file.action === "write" ? file.file.content : undefined,
    })),
    { path: paths.config, recorded: baseline.document.sha256, content: text },
  ];
  const handEdits = await findHandEdits(host, paths.stateDir, replaced);
  return { ...plan, handEdits, consequences: [...plan.consequences, ...describeHandEdits(handEdits)] };
}
