import { ruleSays } from "../messages/rules.ts";
import type { RuleContext } from "./rule.ts";

/** A schedule that spells out the default is the same as none. */
export function checkUpgrades(context: RuleContext): void {
  const { upgrades } = context.draft;
  if (upgrades === undefined || !context.isSound(["upgrades", "automatic"])) return;
  const isOff = (upgrades.automatic ?? "none") === "none";
  if (isOff && context.given(["upgrades", "schedule"]) && upgrades.schedule !== "daily") {
    context.report(["upgrades", "schedule"], ruleSays.scheduleWithoutMode());
  }
}
