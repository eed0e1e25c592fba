import { ruleSays } from "../messages/rules.ts";
import type { RuleContext } from "./rule.ts";

const FIELDS = ["schedule", "path", "keep"];

export function checkBackup(context: RuleContext): void {
  const { backup, role } = context.draft;
  if (backup === undefined || !context.isSound(["backup", "enabled"])) return;
  if (backup.enabled === true) {
    if (role === "worker") context.report(["backup"], ruleSays.notOnWorker("backup"));
    else context.report(["backup", "enabled"], ruleSays.backupLater());
    return;
  }
  for (const field of FIELDS.filter((name) => context.given(["backup", name]))) {
    if (field === "schedule" && backup.schedule === "daily") continue;
    context.report(["backup", field], ruleSays.notEnabled("backup", field));
  }
}
