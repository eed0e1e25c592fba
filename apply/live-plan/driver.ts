/** The plan of an apply on the node itself: with what it has recorded, and what its cluster says of charts that vanish. */
import type { Document } from "../../config/document.ts";
import type { Host } from "../../kit/ports.ts";
import { readChartStandings } from "../../k0s/objects/driver.ts";
import type { Baseline } from "../../state/model.ts";
import type { State } from "../../state/open.ts";
import { nodeFingerprintKey } from "../fingerprint-key.ts";
import { type ApplyPlan, planApply, type PlanInput } from "../plan.ts";

export async function planOnNode(
  { host, state }: { readonly host: Host; readonly state: Pick<State, "meta" | "replacements" | "handover"> },
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
  const plan = planApply(input);
  if (plan.diff.vanished.length === 0) return plan;
  // The cluster is asked only where its answer counts; a proposal that drops nothing needs no k0s.
  return planApply({ ...input, standings: await readChartStandings(host, plan.diff.vanished) });
}
