/**
 * What names a disk for ever: never its kernel name. Two identities are of one disk when `sameDisk` says so.
 * At least one of wwn and serial is present on real hardware; where neither is, `byPath` stands in.
 */
export interface DiskIdentity {
  readonly wwn?: string;
  readonly serial?: string;
  readonly model?: string;
  readonly sizeBytes: number;
  readonly byPath?: string;
}

export type Bus = "nvme" | "sata" | "sas" | "usb" | "virtio" | "mmc" | "other";
export type DiskType = "nvme" | "ssd" | "hdd";

/** Anything that makes a disk `hold data`; `where` is for people: `whole disk at 0x438`, `partition 2`. */
export interface Signature {
  /** As blkid and wipefs name it: `ext4`, `linux_raid_member`, `gpt`, `LVM2_member`, … */
  readonly type: string;
  /** The device node it was seen on. */
  readonly device: string;
  readonly where: string;
  readonly uuid?: string;
  readonly label?: string;
}

/** Something that uses the disk now: a mount, swap, an array, a mapping, an open file. */
export interface DiskUser {
  readonly kind: "mount" | "swap" | "md" | "dm" | "bcache" | "open" | "other";
  /** `/srv/data`, `md127`, `vg0-root`, … */
  readonly name: string;
  /** Idle arrays and mappings only hold the disk; a mount or swap on top of them makes it busy. */
  readonly isBusy: boolean;
}

export interface Partition {
  readonly path: string;
  readonly number: number;
  readonly sizeBytes: number;
  readonly partUuid?: string;
  readonly label?: string;
}

export interface Disk {
  /** `/dev/sda`: of this boot only, never stored. */
  readonly path: string;
  /** Every stable link, sorted: `/dev/disk/by-id/…`, `/dev/disk/by-path/…`. */
  readonly links: readonly string[];
  readonly identity: DiskIdentity;
  readonly sizeBytes: number;
  readonly logicalSectorBytes: number;
  readonly physicalSectorBytes: number;
  readonly bus: Bus;
  readonly type: DiskType;
  readonly isRemovable: boolean;
  readonly isReadOnly: boolean;
  readonly partitions: readonly Partition[];
  readonly signatures: readonly Signature[];
  readonly users: readonly DiskUser[];
  /** The medium that the live system came from. */
  readonly isBootMedium: boolean;
  /** The disk under the running system (root slot, state). */
  readonly isSystemDisk: boolean;
}

/** All that was seen, each physical disk once (multipath, dm and md are resolved to what is below). */
export interface Inventory {
  readonly disks: readonly Disk[];
  /** Present arrays, assembled or not, keyed by UUID (8:8:8:8 form with colons). */
  readonly arrays: readonly MdArray[];
  /** Things that could not be read, in words; a decision that needs them refuses. */
  readonly unknown: readonly string[];
}

export interface MdArray {
  readonly uuid: string;
  /** Without the homehost. */
  readonly name?: string;
  readonly level?: string;
  /** `/dev/md127` when assembled. */
  readonly path?: string;
  readonly memberPaths: readonly string[];
  readonly expectedMembers?: number;
  /** Of the filesystem inside, or of the header of a volume, when it could be seen without assembling. */
  readonly filesystemUuid?: string;
  /** As blkid names it: `ext4`, `crypto_LUKS`. */
  readonly filesystemType?: string;
  readonly label?: string;
}

export function sameDisk(a: DiskIdentity, b: DiskIdentity): boolean {
  if (a.sizeBytes !== b.sizeBytes) return false;
  if (a.wwn !== undefined && b.wwn !== undefined) return a.wwn === b.wwn;
  if (a.serial !== undefined && b.serial !== undefined) return a.serial === b.serial && a.model === b.model;
  return a.byPath !== undefined && a.byPath === b.byPath;
}

/**
 * A disk of an array that another one took the place of, on request. The document that names the old one goes on to be
 * true: what it names is a place in the array.
 */
export interface ReplacedDisk {
  readonly array: string;
  /** `deviceKey` of the reference by which the document named the place. */
  readonly device: string;
  readonly old: DiskIdentity;
  readonly new: DiskIdentity;
  /** Stable paths of the new disk, by which a later document may name it. */
  readonly newLinks: readonly string[];
}

/** A storage object that we made: adopted whenever it is seen again, whatever `wipe` says. */
export interface OwnedStorage {
  readonly kind: "disk" | "raid" | "luks";
  readonly name: string;
  /** Of the array (8:8:8:8 with colons), of the header of a volume, or of the filesystem for a plain disk; of nothing for one without. */
  readonly uuid: string;
  readonly filesystemUuid?: string;
  readonly disks: readonly DiskIdentity[];
}
