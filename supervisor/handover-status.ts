/** What the node says of the hand-over of its CNI. */
import type { NodeAnswer } from "../api/contract.ts";
import { wishOf } from "../apply/handover/model.ts";
import type { Document } from "../config/document.ts";
import type { State } from "../state/open.ts";

/** Left out where there is nothing to hand over, and nothing was. */
export function handoverOf(
  { handover }: Pick<State, "handover">,
  document: Document | undefined,
): NodeAnswer["handover"] {
  const [condition, done] = [handover.condition(), handover.done()];
  const wish = document === undefined ? undefined : wishOf(document);
  if (condition === undefined || (wish === undefined && done === undefined)) return undefined;
  const { status, reason, message, atMs } = condition;
  const stack = done?.stack ?? (wish?.mode === "disabled" ? undefined : wish?.stack);
  const isApplied = stack !== undefined && done === undefined;
  return {
    status,
    reason,
    message,
    since: new Date(atMs).toISOString(),
    ...(stack === undefined ? {} : { stack }),
    ...(done === undefined ? {} : { keptAt: done.keptAt }),
    ...(isApplied
      ? { warning: `each start of k0s applies the bootstrap manifest ${stack} over what GitOps made of it` }
      : {}),
  };
}
