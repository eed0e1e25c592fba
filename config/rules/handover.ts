import { ruleSays } from "../messages/rules.ts";
import type { RuleContext } from "./rule.ts";

/** A CNI of one's own may be handed over to GitOps. */
export function checkHandover(context: RuleContext): void {
  const { network, manifests } = context.draft;
  const handover = network?.handover;
  if (handover === undefined) return;
  const path = ["network", "handover"];
  if (context.isSound(["network", "cni"]) && network?.cni !== "custom") {
    context.report(path, ruleSays.handoverCni());
    return;
  }
  const { mode } = handover;
  const isGiven = (field: string): boolean => context.given([...path, field]);
  if (mode !== undefined && mode !== "disabled" && !isGiven("stack")) {
    context.report([...path, "stack"], ruleSays.handoverNeeds(mode, "stack"));
  }
  if (mode === "automatic" && !isGiven("application")) {
    context.report([...path, "application"], ruleSays.handoverNeeds(mode, "application"));
  }
  const { stack } = handover;
  const names = (manifests ?? []).map((entry) => entry?.name);
  if (stack === undefined || names.includes(stack) || names.includes(undefined)) return;
  if (context.isSound(["manifests"]) || names.length > 0) {
    context.report([...path, "stack"], ruleSays.handoverStack(stack));
  }
}
