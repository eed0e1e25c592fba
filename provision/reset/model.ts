/** What a reset is made of: the request as it is kept over restarts, and the steps that no other room has. */
import type { DiskWipeStep } from "../../disks/model.ts";
import type { AppError } from "../../kit/app-error.ts";
import type { DiskIdentity } from "../../kit/disk.ts";
import type { Result } from "../../kit/result.ts";
import type { StepBase } from "../../kit/step.ts";

/** `/var/lib/corium/reset.json`: written before anything is done, removed when all of it is. */
export interface ResetIntent {
  readonly version: 1;
  /** Data disks that are ours are wiped; else they are kept. */
  readonly isWipingDisks: boolean;
  /** The cluster may end with this node, or lose its quorum. */
  readonly mayDestroyCluster: boolean;
  readonly requestedAtMs: number;
  /** In words, for the event that is left. */
  readonly requestedBy: string;
  /** In the database, for as long as there is one. */
  readonly operation?: string;
  /** It was in use until it was cordoned for this: undone where the reset comes to nothing. */
  readonly isCordoning?: true;
  /** etcd was told that this member goes: whether it heard can't be asked of it afterwards. */
  readonly isLeaving?: true;
  /** Restarts because something was still in use. */
  readonly restarts: number;
}

/** Before the point of no return: the node is told to be going, and its cluster lives on without it. */
export interface ResetDrainStep extends StepBase {
  readonly kind: "reset:drain";
  readonly node: string;
}

export interface ResetLeaveStep extends StepBase {
  readonly kind: "reset:leave";
  /** Its Node object; absent without a kubelet. */
  readonly node?: string;
  readonly member: string;
}

/** k0s and every pod. */
export interface ResetStopStep extends StepBase {
  readonly kind: "reset:stop";
}

/** Whatever is mounted where k0s or this node's document put it. */
export interface ResetUnmountStep extends StepBase {
  readonly kind: "reset:unmount";
}

export interface ResetK0sStep extends StepBase {
  readonly kind: "reset:k0s";
}

/** What stands in an array or volume of ours, which the wipe of its disks would leave behind: key slots above all. */
export interface ResetScrubStep extends StepBase {
  readonly kind: "reset:scrub";
  readonly path: string;
  /** Of an encrypted volume. */
  readonly volume?: { readonly name: string; readonly uuid: string };
  readonly destroys: readonly DiskIdentity[];
}

/** Overlay, units, timers, keys, the kept part of /etc with source 1, the API's own key. */
export interface ResetFilesStep extends StepBase {
  readonly kind: "reset:files";
}

/** The database, then the marker. */
export interface ResetStateStep extends StepBase {
  readonly kind: "reset:state";
}

export type LeaveStep = ResetDrainStep | ResetLeaveStep;
export type EraseStep =
  ResetStopStep | ResetUnmountStep | ResetK0sStep | ResetScrubStep | DiskWipeStep | ResetFilesStep | ResetStateStep;

/** What this node is to its cluster, as far as it can be known from here. */
export type Standing =
  /** k0s was never installed, or erasing has begun already. */
  | { readonly kind: "none" }
  | { readonly kind: "worker" }
  | { readonly kind: "last" }
  /** etcd lists this node no more. */
  | { readonly kind: "gone" }
  /** etcd does not answer, and why. */
  | { readonly kind: "silent"; readonly reason: string }
  | {
      readonly kind: "member";
      readonly member: string;
      readonly others: readonly { readonly name: string; readonly isReachable: boolean }[];
    };

/** What is not on the machine but in the records. */
export interface ResetPorts {
  /** For whoever reads the journal and the operation. */
  readonly warn: (message: string) => void;
  /** Durable: this reset is what cordons the node. */
  readonly noteCordoning: () => Promise<Result<void, AppError>>;
  /** Durable: from now on etcd may have heard that this member goes. */
  readonly noteLeaving: () => Promise<Result<void, AppError>>;
  readonly hasBegunLeaving: () => boolean;
  /** Nothing writes to the records any more: the daemons are stopped. */
  readonly isErased: () => boolean;
  readonly erase: () => Result<void, AppError>;
}
