import type { DiskIdentity } from "../kit/disk.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import type { StepBase } from "../kit/step.ts";

/** One node of `lsblk --json -b -O`, a device that may stand below several parents. */
export interface BlockNode {
  readonly path: string;
  /** Kernel name: `sda`, `md127`, `dm-0`. */
  readonly kernelName: string;
  /** `disk`, `part`, `loop`, `rom`, `mpath`, `raid1`, `lvm`, `crypt`, … */
  readonly type: string;
  readonly sizeBytes: number;
  readonly logicalSectorBytes: number;
  readonly physicalSectorBytes: number;
  readonly transport?: string;
  readonly subsystems: readonly string[];
  readonly serial?: string;
  readonly wwn?: string;
  readonly model?: string;
  readonly isRemovable: boolean;
  readonly isHotplug: boolean;
  readonly isReadOnly: boolean;
  readonly isRotational: boolean;
  readonly mountPoints: readonly string[];
  readonly partitionNumber?: number;
  readonly partUuid?: string;
  readonly partLabel?: string;
  /** Of the filesystem on it, as udev saw them: to look at, never to decide about data. */
  readonly filesystem?: string;
  readonly label?: string;
  /** Counts each disk and each change of medium since boot; since util-linux 2.39. */
  readonly sequence?: string;
  readonly children: readonly BlockNode[];
}

/** What a signature scan of one device node gave. */
export interface ProbedSignature {
  readonly type: string;
  readonly offsetBytes?: number;
  readonly uuid?: string;
  readonly label?: string;
}

export interface PartitionEntry {
  readonly partUuid?: string;
  readonly partLabel?: string;
}

/** A device as a step names it: the path of this boot, and who must be found behind it before anything is lost. */
export interface StepDevice {
  readonly path: string;
  /** Absent for an array, which its UUID in the path names. */
  readonly identity?: DiskIdentity;
}

export interface DiskWipeStep extends StepBase {
  readonly kind: "disk:wipe";
  readonly device: StepDevice;
  readonly destroys: readonly DiskIdentity[];
}

export interface DiskFilesystemStep extends StepBase {
  readonly kind: "disk:filesystem";
  readonly device: StepDevice;
  readonly filesystem: "ext4" | "xfs";
  /** Chosen beforehand. */
  readonly uuid: string;
  /** Set as the very last act: a filesystem that has it was made completely. */
  readonly label: string;
  readonly destroys: readonly DiskIdentity[];
}

export interface DiskMountStep extends StepBase {
  readonly kind: "disk:mount";
  readonly point: string;
  readonly uuid: string;
  readonly filesystem: "ext4" | "xfs";
  readonly unit: string;
  /** The unit itself and the drop-ins of units that need it. */
  readonly files: readonly RenderedFile[];
  /** What enabling the unit links. */
  readonly wantsLink: string;
  /** The folder below the mount refuses writes while nothing is mounted. */
  readonly isPointImmutable: boolean;
}

/** What an earlier document of a first boot that is not over mounted, and this one does not. */
export interface DiskUnmountStep extends StepBase {
  readonly kind: "disk:unmount";
  readonly point: string;
  readonly unit: string;
  /** Drop-ins and links that belong to the unit; it goes last itself. */
  readonly files: readonly string[];
  readonly unitPath: string;
}

export type DiskStep = DiskWipeStep | DiskFilesystemStep | DiskMountStep | DiskUnmountStep;
