import { ruleSays } from "../messages/rules.ts";
import { entries, uniqueNames, type RuleContext } from "./rule.ts";

const LEAST = { 0: 2, 1: 2, 5: 3, 6: 4, 10: 4 } as const;

/** What `install.mirror` makes: as status, console and `cctl disk replace` call it, and each of its arrays. */
const SYSTEM_ARRAY = /^(?:system|corium-(?:(?:boot|root)-[ab]|state|data))$/;

/**
 * To mdadm such a name is the number of a kernel device (mdopen.c, create_mddev), and fails where another array has it:
 * the first one that has no number gets md127.
 */
const DEVICE_NUMBER = /^d?[0-9]+$/;

export function checkRaid(context: RuleContext): void {
  const { raid, install } = context.draft;
  uniqueNames(context, ["raid"], raid, "arrays");
  for (const [index, { name, level, devices, spares }] of entries(raid)) {
    if (name !== undefined && install?.mirror !== undefined && SYSTEM_ARRAY.test(name))
      context.report(["raid", index, "name"], ruleSays.systemArray(name));
    if (name !== undefined && DEVICE_NUMBER.test(name))
      context.report(["raid", index, "name"], ruleSays.arrayNumber(name));
    if (level === undefined) continue;
    if (devices !== undefined && devices.length < LEAST[level]) {
      context.report(["raid", index, "devices"], ruleSays.fewMembers(level, LEAST[level], devices.length));
    }
    if (level === 0 && (spares?.length ?? 0) > 0) {
      context.report(["raid", index, "spares"], ruleSays.sparesOnStripe());
    }
  }
}
