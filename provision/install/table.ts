/** The partition table as sfdisk writes and reads it. Pure. */
import { z } from "zod";
import type { Layout } from "../../iso/layout.ts";
import { PARTITIONS, sfdiskScript } from "../../iso/layout.ts";

/** The name of the state partition until the installation is complete. */
export const INSTALLING = "corium-installing";

export const STATE_NUMBER = PARTITIONS.find(({ role }) => role === "state")?.number ?? 7;
export const STATE_NAME = PARTITIONS.find(({ role }) => role === "state")?.name ?? "corium-state";

export const installingScript = (layout: Layout): string =>
  sfdiskScript(layout).replace(`name="${STATE_NAME}"`, `name="${INSTALLING}"`);

const dump = z.looseObject({
  partitiontable: z.looseObject({
    label: z.string(),
    id: z.string(),
    sectorsize: z.number().default(512),
    partitions: z
      .array(
        z.looseObject({
          start: z.number(),
          size: z.number(),
          type: z.string(),
          uuid: z.string(),
          name: z.string().default(""),
        }),
      )
      .default([]),
  }),
});

/** `sfdisk --json DISK`: is it this very table, finished or not? */
export function isTable(json: string, layout: Layout): boolean {
  const table = parse(json);
  if (table === undefined || table.label !== "gpt" || table.id.toLowerCase() !== layout.diskGuid) return false;
  if (table.partitions.length !== layout.partitions.length) return false;
  return layout.partitions.every((wanted, at) => {
    const found = table.partitions[at];
    const names = wanted.name === STATE_NAME ? [STATE_NAME, INSTALLING] : [wanted.name];
    return (
      found !== undefined &&
      found.start * table.sectorsize === wanted.startBytes &&
      found.size * table.sectorsize === wanted.sizeBytes &&
      found.type.toLowerCase() === wanted.typeGuid &&
      found.uuid.toLowerCase() === wanted.partUuid &&
      names.includes(found.name)
    );
  });
}

/** The name of the state partition, which says whether the installation is complete. */
export const stateName = (json: string): string | undefined => parse(json)?.partitions[STATE_NUMBER - 1]?.name;

function parse(json: string): z.infer<typeof dump>["partitiontable"] | undefined {
  try {
    const parsed = dump.safeParse(JSON.parse(json));
    return parsed.success ? parsed.data.partitiontable : undefined;
  } catch {
    return undefined;
  }
}
