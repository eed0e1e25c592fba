/** Machines as the inventory sees them, each named after what is special about it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DiskSpec, Document, RaidSpec } from "../../config/document.ts";
import type { Inventory } from "../../kit/disk.ts";

export const machineNames: readonly string[] = readdirSync(import.meta.dir)
  .filter((file) => file.endsWith(".json"))
  .map((file) => file.slice(0, -".json".length))
  .sort();

export function machine(name: string): Inventory {
  const file = JSON.parse(readFileSync(join(import.meta.dir, `${name}.json`), "utf8")) as { inventory: Inventory };
  return file.inventory;
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
