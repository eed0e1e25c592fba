/** A disk as the inventory shows it, for planners: blank and free, but for what is said. */
import type { Disk, DiskIdentity } from "../../kit/disk.ts";

export const blankDisk = (path: string, identity: DiskIdentity, more: Partial<Disk> = {}): Disk => ({
  path,
  links: [],
  identity,
  sizeBytes: identity.sizeBytes,
  logicalSectorBytes: 512,
  physicalSectorBytes: 512,
  bus: "virtio",
  type: "hdd",
  isRemovable: false,
  isReadOnly: false,
  partitions: [],
  signatures: [],
  users: [],
  isBootMedium: false,
  isSystemDisk: false,
  ...more,
});
