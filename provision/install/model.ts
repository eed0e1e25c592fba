/** Steps that put Corium on a disk. What they make identifies itself, for a live system remembers nothing. */
import type { Layout } from "../../iso/layout.ts";
import type { DiskIdentity } from "../../kit/disk.ts";
import type { StepBase } from "../../kit/step.ts";
import type { DiskWipeStep, StepDevice } from "../../disks/model.ts";

/** Where the running live system has what it installs. */
export interface ImageSource {
  /** Holds `root.img` (squashfs with its dm-verity tree), `vmlinuz`, `initrd`. */
  readonly directory: string;
  readonly rootBytes: number;
  readonly rootHash: string;
  readonly hashOffsetBytes: number;
}

export interface PartitionStep extends StepBase {
  readonly kind: "install:partition";
  readonly device: StepDevice;
  readonly layout: Layout;
  readonly destroys: readonly DiskIdentity[];
}

/** One array of the mirrored system. */
export interface SystemArray {
  readonly name: string;
  /** 8:8:8:8 with colons. */
  readonly uuid: string;
  /** PARTUUIDs, that of the first disk first. */
  readonly members: readonly string[];
}

export interface ArraysStep extends StepBase {
  readonly kind: "install:arrays";
  readonly arrays: readonly SystemArray[];
}

export interface SlotStep extends StepBase {
  readonly kind: "install:slot";
  readonly image: ImageSource;
  /** A partition of the disk, or the array over one of each disk. */
  readonly rootPath: string;
  readonly bootPath: string;
  /** Of the filesystem for kernel and initramfs. */
  readonly bootUuid: string;
  /** Content of `slot.env`, all of it printable. */
  readonly slotEnv: string;
}

export interface LoaderStep extends StepBase {
  readonly kind: "install:loader";
  readonly device: StepDevice;
  readonly biosPartUuid: string;
  readonly biosStartBytes: number;
  readonly biosSizeBytes: number;
  readonly espPartUuid: string;
  readonly sectorBytes: number;
  readonly installation: string;
}

export interface StateFilesystem {
  readonly path: string;
  readonly uuid: string;
  readonly label: string;
}

export interface StateStep extends StepBase {
  readonly kind: "install:state";
  readonly filesystems: readonly StateFilesystem[];
}

export interface DocumentStep extends StepBase {
  readonly kind: "install:document";
  readonly statePath: string;
  readonly installation: string;
  /** Of the document that is copied: what is there already is compared with it. */
  readonly documentSha256: string;
}

export interface BootStep extends StepBase {
  readonly kind: "install:boot";
  readonly disks: readonly { readonly device: StepDevice; readonly espPartUuid: string }[];
  readonly installation: string;
}

export type InstallStep =
  DiskWipeStep | PartitionStep | ArraysStep | SlotStep | LoaderStep | StateStep | DocumentStep | BootStep;
