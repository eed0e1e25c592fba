/** The two disks of a mirrored system, as the kernel sees their arrays now. */
import type { MirroredRole } from "../uuids.ts";

/**
 * `joining`: a copy is being made onto it; `gone`: its device is not there any more, which an idle array does not notice
 * by itself; `faulty`: it failed and was thrown out.
 */
export type MemberState = "in-sync" | "joining" | "gone" | "faulty";

export interface MirrorMember {
  /** Of the partition: `vda5`. */
  readonly kernelName: string;
  readonly state: MemberState;
}

export interface MirrorArray {
  readonly role: MirroredRole;
  /** `/dev/md127`. */
  readonly path: string;
  /** As assembled, before anything wrote to it: nothing is copied to a member then. */
  readonly isAutoReadOnly: boolean;
  readonly members: readonly MirrorMember[];
}

/** A disk with our partitions; a member of any array or none. */
export interface MirrorDisk {
  readonly path: string;
  /** By partition number of the layout: `/dev/vda2`. */
  readonly partitions: ReadonlyMap<number, string>;
  readonly espPartUuid: string;
  readonly sectorBytes: number;
  /** Every array has a member here that has all its content. Only then may its ESP be written. */
  readonly isInSync: boolean;
  /** Roles without a working or joining member here. */
  readonly lacking: readonly MirroredRole[];
}

export interface Mirror {
  readonly arrays: readonly MirrorArray[];
  readonly disks: readonly MirrorDisk[];
}

/** As many as are mirrored over. */
export const MIRROR_WIDTH = 2;
