import { ruleSays } from "../messages/rules.ts";
import type { RuleContext } from "./rule.ts";

/** A node without a role waits to be told one, over the API. */
export function checkRole(context: RuleContext): void {
  if (!context.given(["role"]) && context.draft.api?.enabled === false)
    context.report(["role"], ruleSays.roleMissing());
  if (context.draft.role === "worker" && Object.keys(context.draft.k0s?.patch ?? {}).length > 0) {
    context.report(["k0s", "patch"], ruleSays.patchOnWorker());
  }
  const version = context.draft.kubernetes?.version;
  if (version !== undefined && context.k0sVersions !== undefined && !context.k0sVersions.includes(version)) {
    context.report(["kubernetes", "version"], ruleSays.unlistedVersion(version));
  }
}
