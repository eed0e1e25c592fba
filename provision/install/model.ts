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

export interface SlotStep extends StepBase {
  readonly kind: "install:slot";
  readonly image: ImageSource;
  readonly rootPartUuid: string;
  readonly bootPartUuid: string;
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

export interface StateStep extends StepBase {
  readonly kind: "install:state";
  readonly filesystems: readonly { readonly partUuid: string; readonly label: string }[];
}

export interface DocumentStep extends StepBase {
  readonly kind: "install:document";
  readonly statePartUuid: string;
  readonly installation: string;
  /** Of the document that is copied: what is there already is compared with it. */
  readonly documentSha256: string;
}

export interface BootStep extends StepBase {
  readonly kind: "install:boot";
  readonly device: StepDevice;
  readonly espPartUuid: string;
  readonly installation: string;
}

export type InstallStep = DiskWipeStep | PartitionStep | SlotStep | LoaderStep | StateStep | DocumentStep | BootStep;
