import { ruleSays } from "../messages/rules.ts";
import { checkFree } from "./free.ts";
import type { RuleContext } from "./rule.ts";

export function checkPatch(context: RuleContext): void {
  const patch = context.draft.k0s?.patch;
  const path = ["k0s", "patch"];
  if (context.draft.role === "worker" && Object.keys(patch ?? {}).length > 0) {
    context.report(path, ruleSays.patchOnWorker());
  }
  checkFree(context, path, patch);
}
