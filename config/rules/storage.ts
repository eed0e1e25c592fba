import { ruleSays } from "../messages/rules.ts";
import type { RuleContext } from "./rule.ts";

/** A file store belongs to one controller, for ever. */
export function checkStorage(context: RuleContext): void {
  const { storage, role, ha } = context.draft;
  if (storage?.type !== "sqlite") return;
  const path = ["storage", "type"];
  const joins = Object.keys(context.draft.join ?? {}).length > 0;
  if (role === "controller") context.report(path, ruleSays.sqliteController());
  else if (role === "controller+worker" && joins) context.report(path, ruleSays.sqliteJoin());
  // HA refused for its role is not compared with storage.
  else if (ha?.enabled === true && role !== "single" && role !== "worker") context.report(path, ruleSays.sqliteHa());
}
