import { ruleSays } from "../messages/rules.ts";
import type { Path } from "../path.ts";
import { entries, uniqueNames, type RuleContext } from "./rule.ts";

const LEAST = { stripe: 1, mirror: 2, raidz: 2, raidz2: 3, raidz3: 4 } as const;

export function checkZfs(context: RuleContext): void {
  const { zfs } = context.draft;
  uniqueNames(context, ["zfs"], zfs, "pools");
  for (const [index, { vdevs }] of entries(zfs)) {
    const path: Path = ["zfs", index, "vdevs"];
    if (vdevs?.length === 0) context.report(path, ruleSays.noVdevs());
    for (const [at, { type = "stripe", devices }] of entries(vdevs)) {
      if (devices === undefined || !context.isSound([...path, at, "type"])) continue;
      if (devices.length >= LEAST[type]) continue;
      context.report([...path, at, "devices"], ruleSays.fewInVdev(type, LEAST[type], devices.length));
    }
  }
}
