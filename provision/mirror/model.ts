/** Steps that put a blank disk in the place of one of a mirrored system. */
import type { DiskWipeStep, StepDevice } from "../../disks/model.ts";
import type { StepBase } from "../../kit/step.ts";
import type { PartitionStep } from "../install/model.ts";

/** Each partition becomes a member of its array; then the disk is called a complete one. */
export interface MirrorJoinStep extends StepBase {
  readonly kind: "mirror:join";
  readonly device: StepDevice;
  readonly members: readonly { readonly name: string; readonly arrayUuid: string; readonly partUuid: string }[];
}

/** Waits until the disk has everything, then makes it bootable. */
export interface MirrorRebuildStep extends StepBase {
  readonly kind: "mirror:rebuild";
  readonly device: StepDevice;
  readonly installation: string;
}

export type MirrorStep = MirrorJoinStep | MirrorRebuildStep;
export type ReplacementStep = DiskWipeStep | PartitionStep | MirrorStep;
