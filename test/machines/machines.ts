/** Machines as the inventory sees them, each named after what is special about it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DiskSpec, Document, RaidSpec } from "../../config/document.ts";
import type { Inventory } from "../../kit/disk.ts";
import type { RecordedMachine } from "./recorded.ts";
import { replay } from "./recorded.ts";
import { threeHundredDisks } from "./three-hundred-disks.ts";

const folder = join(import.meta.dir, "recorded");
const ending = /\.json$/;

const recordings: ReadonlyMap<string, RecordedMachine> = new Map([
  ...readdirSync(folder)
    .filter((file) => ending.test(file))
    .toSorted()
    .map((file) => {
      const text = readFileSync(join(folder, file), "utf8");
      return [file.replace(ending, ""), JSON.parse(text) as RecordedMachine] as const;
    }),
  ["three-hundred-disks", threeHundredDisks()],
]);

export const machineNames: readonly string[] = [...recordings.keys()];

const inventories: ReadonlyMap<string, Inventory> = new Map(
  await Promise.all([...recordings].map(async ([name, recorded]) => [name, await replay(recorded)] as const)),
);

export function recordedMachine(name: string): RecordedMachine {
  const recorded = recordings.get(name);
  if (recorded === undefined) throw new Error(`there is no machine ${name}`);
  return recorded;
}

export function machine(name: string): Inventory {
  const inventory = inventories.get(name);
  if (inventory === undefined) throw new Error(`there is no machine ${name}`);
  return inventory;
}

export function storageDocument(
  parts: Partial<Pick<Document, "role" | "disks" | "raid" | "luks" | "zfs">>,
): Pick<Document, "role" | "disks" | "raid" | "luks" | "zfs"> {
  return { role: "single", disks: [], raid: [], luks: [], zfs: [], ...parts };
}

export const mirror = (more: Partial<RaidSpec> = {}): RaidSpec => ({
  name: "data",
  level: 1,
  devices: [{ serial: "A" }, { serial: "B" }],
  spares: [],
  filesystem: "ext4",
  mountPoint: "/var/lib/k0s",
  wipe: false,
  ...more,
});

export const plainDisk = (more: Partial<DiskSpec> = {}): DiskSpec => ({
  name: "plain",
  device: { serial: "A" },
  filesystem: "ext4",
  mountPoint: "/srv/plain",
  wipe: false,
  ...more,
});

/** UUIDs that count up: the same plan gets the same ones. */
export function countedUuids(): () => string {
  let next = 0;
  return () => {
    next += 1;
    return `00000000-0000-4000-8000-${next.toString().padStart(12, "0")}`;
  };
}
