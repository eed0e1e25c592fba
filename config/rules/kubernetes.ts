import { ruleSays } from "../messages/rules.ts";
import type { RuleContext } from "./rule.ts";

export function checkVersion(context: RuleContext): void {
  const version = context.draft.kubernetes?.version;
  if (version === undefined || context.k0sVersions === undefined || context.k0sVersions.includes(version)) return;
  context.report(["kubernetes", "version"], ruleSays.unlistedVersion(version));
}
