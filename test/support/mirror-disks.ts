/** Disks of a mirrored system as the inventory shows them, for planners. */
import { PARTITIONS, planLayout } from "../../iso/layout.ts";
import { guidOf, partUuidsOf } from "../../iso/uuids.ts";
import type { Disk } from "../../kit/disk.ts";
import { blankDisk } from "./disks.ts";

const MIB = 1024 ** 2;
export const INSTALLATION = "0123456789abcdef0123456789abcdef";
export const DISK_BYTES = 32 * 1024 * MIB;
const planned = planLayout({
  diskSizeBytes: DISK_BYTES,
  sectorBytes: 512,
  rootImageBytes: 300 * MIB,
  diskGuid: guidOf(INSTALLATION),
  partUuids: partUuidsOf(INSTALLATION),
});
if (!planned.ok) throw new Error(planned.error.message);
export const layout = planned.value;

export const mirrorDisk = (serial: string, more: Partial<Disk> = {}): Disk =>
  blankDisk(`/dev/${serial}`, { serial, sizeBytes: DISK_BYTES }, more);

/** One that the system runs from. */
export const systemDisk = (serial: string): Disk =>
  mirrorDisk(serial, {
    isSystemDisk: true,
    partitions: PARTITIONS.map(({ number, name, role }) => ({
      path: `/dev/${serial}${number}`,
      number,
      sizeBytes: layout.partitions.find((each) => each.role === role)?.sizeBytes ?? 0,
      partUuid: layout.partitions.find((each) => each.role === role)?.partUuid ?? "",
      label: name,
    })),
  });
