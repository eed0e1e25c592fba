import { uniqueNames, type RuleContext } from "./rule.ts";

export function checkDisks(context: RuleContext): void {
  uniqueNames(context, ["disks"], context.draft.disks, "disks");
}
