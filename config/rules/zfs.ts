import { ruleSays } from "../messages/rules.ts";
import { kindName } from "../messages/kinds.ts";
import { decodeSays } from "../messages/decode.ts";
import { valueSays } from "../messages/values.ts";
import type { Path } from "../path.ts";
import { entries, uniqueNames, type RuleContext } from "./rule.ts";

const LEAST = { stripe: 1, mirror: 2, raidz: 2, raidz2: 3, raidz3: 4 } as const;

export function checkZfs(context: RuleContext): void {
  const { zfs } = context.draft;
  uniqueNames(context, ["zfs"], zfs, "pools");
  for (const [index, { vdevs, datasets }] of entries(zfs)) {
    const path: Path = ["zfs", index, "vdevs"];
    if (vdevs?.length === 0) context.report(path, ruleSays.noVdevs());
    for (const [at, { type = "stripe", devices }] of entries(vdevs)) {
      if (devices === undefined || !context.isSound([...path, at, "type"])) continue;
      if (devices.length >= LEAST[type]) continue;
      context.report([...path, at, "devices"], ruleSays.fewInVdev(type, LEAST[type], devices.length));
    }
    checkDatasets(context, ["zfs", index, "datasets"], datasets);
  }
}

/** zfs(8): parts of a name; `@` starts a snapshot, `#` a bookmark, and a leading slash is no name at all. */
const isDatasetName = (name: string): boolean =>
  name.length <= 200 && name.split("/").every((part) => /^[A-Za-z0-9][A-Za-z0-9_.:-]*$/.test(part));

function checkDatasets(context: RuleContext, path: Path, datasets: readonly unknown[] | undefined): void {
  const seen = new Set<string>();
  for (const [index, dataset] of entries(datasets)) {
    const at = [...path, index, "name"];
    const name = (dataset as Readonly<Record<string, unknown>>)["name"];
    if (name === undefined || name === null) context.report(at, decodeSays.missing("name"));
    else if (typeof name !== "string") {
      context.report(at, decodeSays.wrongType(kindName.text, kindName.some(typeof name)));
    } else if (!isDatasetName(name)) context.report(at, valueSays.datasetName(name));
    else if (seen.has(name)) context.report(at, ruleSays.duplicateName("datasets", name));
    else seen.add(name);
  }
}
