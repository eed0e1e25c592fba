import type { RaidLevel } from "../config/document.ts";
import type { DiskIdentity } from "../kit/disk.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import type { StepBase } from "../kit/step.ts";

/** A member as a step names it: the path of this boot, and the disk that must be found behind it. */
export interface RaidMember {
  readonly path: string;
  readonly identity: DiskIdentity;
}

export interface RaidCreateStep extends StepBase {
  readonly kind: "raid:create";
  readonly name: string;
  readonly level: RaidLevel;
  /** 8:8:8:8 with colons, chosen beforehand. */
  readonly uuid: string;
  /** In the order declared. */
  readonly members: readonly RaidMember[];
  readonly spares: readonly RaidMember[];
  readonly destroys: readonly DiskIdentity[];
}

/** Starts an array that is there already. */
export interface RaidAssembleStep extends StepBase {
  readonly kind: "raid:assemble";
  readonly name: string;
  readonly uuid: string;
  readonly members: readonly RaidMember[];
}

/** Records the array for the next boots: nothing else is assembled then. */
export interface RaidConfigStep extends StepBase {
  readonly kind: "raid:config";
  readonly files: readonly RenderedFile[];
}

/** One disk more in an array that runs. */
export interface RaidAddStep extends StepBase {
  readonly kind: "raid:add";
  readonly name: string;
  readonly uuid: string;
  readonly member: RaidMember;
  readonly destroys: readonly DiskIdentity[];
}

/** Until the array no longer needs the member that goes. */
export interface RaidRebuildStep extends StepBase {
  readonly kind: "raid:rebuild";
  readonly name: string;
  readonly uuid: string;
  readonly member: RaidMember;
  /** The disk that goes, while it is still there. */
  readonly leaving?: RaidMember;
}

/** A disk that is no member any more forgets that it was one. */
export interface RaidRetireStep extends StepBase {
  readonly kind: "raid:retire";
  readonly name: string;
  readonly uuid: string;
  readonly member: RaidMember;
  readonly destroys: readonly DiskIdentity[];
}

export type RaidReplaceStep = RaidAddStep | RaidRebuildStep | RaidRetireStep;

export type RaidStep = RaidCreateStep | RaidAssembleStep | RaidConfigStep;

/** `mdadm --detail --export`. */
export interface ArrayDetail {
  readonly uuid?: string;
  /** Without the homehost. */
  readonly name?: string;
  readonly level?: string;
  readonly expected?: number;
  /** Members with a role number, in role order, then spares. */
  readonly members: readonly { readonly path: string; readonly role: number | "spare" }[];
}

/** One array of `/proc/mdstat`. */
export interface MdstatArray {
  /** `md127`. */
  readonly device: string;
  readonly isActive: boolean;
  readonly isReadOnly: boolean;
  /** Until its first write, as each array is after its start. */
  readonly isAutoReadOnly: boolean;
  readonly level?: string;
  readonly members: readonly { readonly device: string; readonly isFailed: boolean; readonly isSpare: boolean }[];
  readonly expected?: number;
  readonly active?: number;
  readonly action?: "recovery" | "resync" | "reshape" | "check";
  readonly progressPercent?: number;
}
