import { ruleSays } from "../messages/rules.ts";
import type { RuleContext } from "./rule.ts";

/** A node without a role waits to be told one, over the API. */
export function checkRole(context: RuleContext): void {
  if (context.given(["role"]) || context.draft.api?.enabled !== false) return;
  context.report(["role"], ruleSays.roleMissing());
}
