/** What the gate refuses of a plan, everything at once and each with the way to do it properly. */
import { CONFIRM_WITHIN } from "./confirmation.ts";
import type { ApplyPlan } from "./plan.ts";
import { type Refused, refused, type ServiceRequest } from "./service/model.ts";

interface Asked extends Pick<ServiceRequest, "isDryRun" | "confirmWithinMs" | "isCoordinated"> {
  /** Stack that GitOps owns now. */
  readonly handedOver?: string;
}

export function refusalOf({ diff }: ApplyPlan, asked: Asked): Refused | undefined {
  const { isDryRun, confirmWithinMs, isCoordinated } = asked;
  if (diff.reason === "handed-over") {
    const at = `manifests[${asked.handedOver}]`;
    const error = `${at} was handed over to GitOps and is no longer read here: change it there; this document may only leave it as it was, or drop it`;
    const fields = diff.fields.filter(({ path }) => path.startsWith(at));
    return refused(409, "handed-over", error, { refused: { fields, removed: diff.removed } });
  }
  const fields = diff.fields.filter((field) => field.class === "immutable" || field.class === "own-verb");
  if (fields.length > 0 || diff.removed.length > 0) {
    const names = [
      ...fields.map(({ path }) => path),
      ...diff.removed.map(({ path, name }) => `${path} (${name} is gone)`),
    ];
    const error = `this node has already bootstrapped, so its configuration is no longer a question it can answer: ${names.join(", ")}; what a node is changes only with \`cctl reset\`, and what is gone is removed with kubectl first`;
    return refused(409, "immutable", error, { refused: { fields, removed: diff.removed } });
  }
  if (diff.reason === "patch-overrides") {
    const error = `k0s.patch changes what Corium keeps fixed on a running node: ${diff.overrides.join(", ")}; if that is what you mean, own it with --own-patch`;
    return refused(409, "patch-overrides", error);
  }
  if (isCoordinated === true && confirmWithinMs !== undefined) {
    return refused(
      400,
      "not-together",
      "an apply to several controllers is confirmed by each restart; leave confirmWithin out",
    );
  }
  if (diff.result !== "guarded" || isDryRun || confirmWithinMs !== undefined) return undefined;
  const guarded = diff.fields.filter((field) => field.class === "guarded");
  const error = `a change of ${guarded.map(({ path }) => path).join(", ")} could lock you out, so it is taken back unless somebody confirms it: say within which time with --confirm-within 2m (confirmWithin, ${CONFIRM_WITHIN.words}); nothing was changed`;
  return refused(409, "needs-confirmation", error, { refused: { fields: guarded, removed: [] } });
}
