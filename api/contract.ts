/** Bodies and answers of the REST API, shared by the server and cctl. Times are ISO 8601 in UTC. */
import type { Disk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import type { DeviceRef, Role } from "../config/document.ts";
import type { VipState } from "../k0s/vip/watch.ts";
import type { PeerState } from "../wireguard/peers.ts";
import type { AuditRecord, EventRecord, HandoverCondition, Operation } from "../state/model.ts";

export const API_PORT = 7443;

export interface ErrorBody {
  /** A sentence that says what to do. */
  readonly error: string;
  /** Machine-readable: `would-bootstrap`, `claim-first`, `immutable`, `busy`, `patch-overrides`, `coordinated`, … */
  readonly reason?: string;
  readonly problems?: readonly Finding[];
  /** For `reason: immutable`: everything refused, at once. */
  readonly refused?: Refusal;
  /** For `reason: differs`: what of the node is not as the document renders it. */
  readonly differences?: readonly ConfigReason[];
  /** For `reason: busy`: the operation that is running. */
  readonly operation?: string;
}

export type FieldClass = "safe" | "host" | "guarded" | "spent" | "immutable" | "own-verb";

export interface FieldChange {
  readonly path: string;
  readonly class: FieldClass;
  /** Secrets as fingerprints; absent when the side does not have it. */
  readonly old?: unknown;
  readonly new?: unknown;
}

export interface Removal {
  /** `addons[metallb]`, `manifests[site]`, … */
  readonly path: string;
  readonly name: string;
  /** How to remove it properly. */
  readonly hint: string;
}

export interface Refusal {
  readonly fields: readonly FieldChange[];
  readonly removed: readonly Removal[];
}

export interface EnrollBody {
  readonly code?: string;
  readonly operatorCA: string;
  readonly document?: string;
  readonly acknowledge?: boolean;
  /** What this node itself made may be lost, once, where its document says wipe. */
  readonly wipeOwn?: boolean;
}

export interface EnrollAnswer {
  readonly enrolled: true;
  /** Fingerprint. */
  readonly operatorCA: string;
  readonly operation?: string;
}

export interface HealthAnswer {
  readonly status: "ok" | "degraded" | "maintenance";
  readonly role?: Role;
  readonly version: string;
}

/** Unknown things are left out, never a placeholder. */
export interface NodeAnswer {
  readonly hostname: string;
  readonly machineID: string;
  readonly bootstrapped: boolean;
  readonly phase: "live" | "maintenance" | "provisioning" | "in-service" | "degraded";
  readonly role?: Role;
  readonly cluster?: string;
  readonly endpoint?: string;
  readonly os: {
    readonly name: string;
    readonly kernel: string;
    readonly booted: { readonly slot?: string; readonly version: string; readonly digest?: string };
  };
  /** For showing; what is not known is left out. */
  readonly machine?: {
    readonly manufacturer?: string;
    readonly model?: string;
    readonly serial?: string;
    readonly cpu?: string;
    readonly cores?: number;
    readonly memoryBytes?: number;
  };
  readonly kubernetes?: {
    readonly version: string;
    readonly service: string;
    readonly active: boolean;
    /** The condition `Ready` of its Node; absent where it has none, or it could not be asked for. */
    readonly nodeReady?: boolean;
    /** Why not, or what hindered the question. */
    readonly nodeMessage?: string;
    /** The k0s of this image is the tests' stand-in, not Kubernetes. */
    readonly standIn?: true;
  };
  readonly health: {
    readonly verdict: "healthy" | "degraded" | "unhealthy";
    readonly uptimeSeconds: number;
    readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly message?: string }[];
  };
  readonly management: { readonly claimedBy?: string; readonly unauthenticated?: boolean };
  readonly storage: {
    readonly arrays: readonly {
      readonly name: string;
      readonly level: string;
      readonly state: string;
      readonly active: number;
      readonly expected: number;
      readonly progressPercent?: number;
      /** Absent in what an older node says. */
      readonly members?: readonly {
        readonly device?: string;
        readonly serial?: string;
        readonly role?: number;
        /** `missing`: a recorded disk that is no member now. */
        readonly state: "active" | "rebuilding" | "spare" | "failed" | "detached" | "missing";
      }[];
    }[];
    readonly mounts: readonly {
      readonly path: string;
      readonly source: string;
      readonly filesystem: string;
      readonly mounted: boolean;
      readonly sizeBytes?: number;
      readonly availableBytes?: number;
    }[];
    /** Encrypted volumes; left out where there are none. */
    readonly volumes?: readonly {
      readonly name: string;
      readonly unlock: "tpm2" | "passphrase";
      /** `missing`: the device that it lies on is not here. */
      readonly state: "open" | "locked" | "missing";
      readonly hasRecoveryKey?: boolean;
    }[];
  };
  readonly overlay: readonly {
    readonly name: string;
    readonly up: boolean;
    readonly addresses: readonly string[];
    readonly publicKey?: string;
    readonly listenPort?: number;
    readonly peers: readonly {
      readonly publicKey: string;
      readonly endpoint?: string;
      readonly lastHandshake?: string;
      /** Since the interface is there. Absent in what an older node says, as are the two below. */
      readonly receivedBytes?: number;
      readonly sentBytes?: number;
      /** Whether it is heard, and if not, as much of why as this side can tell. */
      readonly state?: PeerState;
      /** In words; absent where there is nothing to explain. */
      readonly cause?: string;
    }[];
  }[];
  readonly ha?: {
    readonly vip: string;
    /** Has this node the address now? */
    readonly holder?: boolean;
    /** Link addresses of other machines that answered for it when the link was asked last; absent: it was not asked. */
    readonly others?: readonly string[];
    /** What two looks agree on. `contested`: more than one machine has it. `unheld`: nobody answers. */
    readonly state?: VipState;
  };
  /** Of the CNI to GitOps; left out where the document has none. */
  readonly handover?: {
    readonly status: HandoverCondition["status"];
    readonly reason: HandoverCondition["reason"];
    readonly message: string;
    readonly since: string;
    readonly stack?: string;
    /** Folder with the files of the stack, once it is handed over. */
    readonly keptAt?: string;
    /** What happens until it is. */
    readonly warning?: string;
  };
  readonly config: {
    readonly state: "unconfigured" | "in-sync" | "pending" | "drifted";
    readonly reasons: readonly string[];
    /** Equal on controllers whose documents say the same of the cluster. */
    readonly clusterDigest?: string;
  };
  /** Absent in what an older node says. */
  readonly certificates?: readonly {
    /** `api`, `operator CA`, `k0s server`, `etcd peer`, `kubelet client`, … */
    readonly name: string;
    readonly path?: string;
    readonly notAfter: string;
    /** By the node's clock; negative once it has ended. */
    readonly daysLeft: number;
    /** Who renews it and when, in words. */
    readonly renewal: string;
  }[];
  readonly operation?: {
    readonly id: string;
    readonly kind: string;
    readonly step?: string;
    readonly message?: string;
  };
}

export interface DiskAnswer extends Disk {
  readonly usable: boolean;
  /** Why, or why not. */
  readonly reason: string;
}

/** A disk of a live system: whether Corium could be installed on it, and what that would cost. */
export interface InstallOffer {
  readonly path: string;
  readonly sizeBytes: number;
  readonly model?: string;
  readonly serial?: string;
  readonly wwn?: string;
  /** For the body of POST /v1/install; absent when nothing tells this disk from another one. */
  readonly ref?: DeviceRef;
  readonly isAccepted: boolean;
  /** `wipe`: it holds data. `wipe-own`: it holds an installed Corium. */
  readonly consent: "none" | "wipe" | "wipe-own";
  /** In words; empty for a blank disk. */
  readonly content: string;
  /** Why not; empty when it is accepted. */
  readonly reason: string;
}

export interface InstallOffersAnswer {
  readonly disks: readonly InstallOffer[];
  readonly canMirror: boolean;
}

export interface InstallBody {
  readonly disk: DeviceRef;
  readonly mirror?: DeviceRef;
  readonly wipe?: boolean;
  readonly wipeOwn?: boolean;
}

export interface InstallAnswer {
  readonly installing: true;
  readonly warnings: readonly Finding[];
}

export interface ReplaceAnswer {
  readonly status: "planned" | "replacing";
  readonly steps: readonly { readonly id: string; readonly title: string }[];
  readonly warnings: readonly Finding[];
  readonly operation?: string;
}

export interface ResetBody {
  /** The node's host name, as a person typed it; not asked for with dryRun. */
  readonly confirm?: string;
  readonly wipeDisks?: boolean;
  readonly destroyCluster?: boolean;
}

export interface ResetAnswer {
  readonly status: "planned" | "resetting";
  readonly hostname: string;
  /** Each list in words, for people. */
  readonly erased: readonly string[];
  readonly kept: readonly string[];
  /** By this reset, here or in the cluster. */
  readonly left: readonly string[];
  /** Not done, and why. */
  readonly skipped: readonly string[];
  readonly steps: readonly { readonly id: string; readonly title: string }[];
  readonly operation?: string;
}

export interface ConfigAnswer {
  readonly document: string;
  readonly sha256: string;
  readonly at: string;
  readonly etag: string;
}

/** The document that the node ran before this one. */
export interface PreviousAnswer {
  readonly document: string;
  readonly sha256: string;
  readonly at: string;
  /** Who gave it, in words. */
  readonly by: string;
}

/** What it takes until what is wished is true; the last two: no apply takes it, a reset or another verb does. */
export type EffectClass = "reboot-free" | "restarts-k0s" | "needs-reboot" | "install-time-only" | "unsupported";

export type PendingCode =
  | "document-edited"
  | "secret-changed"
  | "renderer-changed"
  | "address-changed"
  | "k0s-version"
  | "handover"
  /** An apply has changed it and may still be taken back. */
  | "awaiting-confirmation";

export type DriftCode =
  "file-changed" | "file-missing" | "unit-changed" | "array-changed" | "mount-changed" | "link-changed" | "hostname";

/** Why the node is pending or drifted. */
export interface ConfigReason {
  readonly code: PendingCode | DriftCode;
  readonly message: string;
  /** File, unit, mount point, or name of the array or link. */
  readonly path?: string;
  /** Of what is pending. */
  readonly class?: EffectClass;
  /** Of a file: unified, from what was recorded to what is there, without secrets. */
  readonly diff?: string;
}

export interface ConfigStatusAnswer {
  /** `pending`: something else is wished than what was applied. `drifted`: not that, but the node differs from it. */
  readonly state: "unconfigured" | "in-sync" | "pending" | "drifted";
  readonly reasons: readonly ConfigReason[];
  readonly etag?: string;
}

export interface AdoptBody {
  /** The one that was applied last. */
  readonly document: string;
}

export interface AdoptAnswer {
  readonly status: "planned" | "adopted";
  readonly warnings: readonly Finding[];
  readonly operation?: string;
}

/** Exactly one of `document` and `blocks`. */
export interface ApplyBody {
  readonly document?: string;
  /**
   * YAML of the blocks `addons`, `manifests`, `k0s`, `upgrades`, `backup` alone, to be put into the node's own document.
   * Of the first three one that is not here goes from the document; of the other two it stays as it is.
   */
  readonly blocks?: string;
  /** Every controller of the cluster gets it: written now, k0s restarts when the operation is confirmed. */
  readonly coordinated?: boolean;
  /** `30s`, `2m`: once it is made, the node takes it back unless the operation is confirmed in that time. */
  readonly confirmWithin?: string;
  /** Owns a patch that overrides what Corium models. */
  readonly acknowledge?: boolean;
}

export interface ApplyAnswer {
  /**
   * `applied`: it became the node's answer before bootstrap. `written`: it waits to be confirmed, see `coordinated`;
   * `awaiting-confirmation`: it is made, see `confirmWithin`.
   */
  readonly status: "applied" | "reconciled" | "unchanged" | "planned" | "written" | "awaiting-confirmation";
  readonly role?: Role;
  readonly fields: readonly FieldChange[];
  /** Units that restart, or restarted. */
  readonly restarted: readonly string[];
  /** Unified diffs of rendered files, without secrets. */
  readonly files: readonly { readonly path: string; readonly diff: string }[];
  /** What a person would notice, in sentences. */
  readonly consequences: readonly string[];
  readonly warnings: readonly Finding[];
  readonly etag?: string;
  readonly operation?: string;
  /** Of `coordinated`, on a controller whose k0s can say it. */
  readonly controlPlane?: ControlPlaneAnswer;
}

export interface HandoverAnswer {
  /** `unchanged`: it was handed over before. */
  readonly status: "planned" | "handing-over" | "unchanged";
  readonly stack: string;
  /** Where the files are kept. */
  readonly keptAt: string;
  /** Units that stop and start again. */
  readonly restarts: readonly string[];
  readonly steps: readonly { readonly id: string; readonly title: string }[];
  readonly operation?: string;
  /** Where there may be other controllers. */
  readonly controlPlane?: ControlPlaneAnswer;
}

export interface CaNonceAnswer {
  /** Signed by a key of the new CA it is the proof of POST /v1/ca/rotate. */
  readonly nonce: string;
}

export interface CancelAnswer {
  /** The operation, whose files are as before. */
  readonly cancelled: string;
}

export interface ControlPlaneAnswer {
  /** Of etcd: host names, unless a patch gives others. */
  readonly members: readonly string[];
  /** Which of them this node is. */
  readonly self?: string;
  /** Host name of the one whose add-ons and manifests count now; absent between two elections. */
  readonly leader?: string;
}

export interface CordonAnswer {
  readonly node: string;
  /** As it is now. */
  readonly cordoned: boolean;
  /** False: it was so before. */
  readonly changed: boolean;
}

export interface DrainAnswer {
  /** The node. */
  readonly draining: string;
  readonly operation: string;
}

export interface KubeconfigAnswer {
  /** YAML; whoever has it may do anything to the cluster. */
  readonly kubeconfig: string;
  /** `https://HOST:PORT` */
  readonly server: string;
  /** In sentences. */
  readonly warnings: readonly string[];
}

export interface JoinTokenBody {
  readonly role: "worker" | "controller";
  readonly expiry?: string;
}

export interface JoinTokenAnswer {
  readonly token: string;
  /** Its public part, by which the audit and `k0s token invalidate` name it. */
  readonly id: string;
  readonly role: "worker" | "controller";
  /** That the joining node will ask. */
  readonly server: string;
  readonly expiresAt: string;
}

export interface RecoveryAnswer {
  readonly volume: string;
  /** Stored nowhere: this answer is the only place where it ever stands. */
  readonly recoveryKey: string;
}

export interface UnlockAnswer {
  readonly volume: string;
  /** The TPM, which did not open it any more, opens it again from the next boot on. */
  readonly boundAnew: boolean;
  /** The volume is open all the same. */
  readonly problems: readonly string[];
}

export interface ServiceAnswer {
  readonly unit: string;
  readonly activeState: string;
  readonly subState: string;
  readonly restarts: number;
  readonly isRestartable: boolean;
}

export interface LogLine {
  readonly at: string;
  readonly unit: string;
  readonly message: string;
}

export type OperationsAnswer = { readonly operations: readonly Operation[] };
export type DisksAnswer = { readonly disks: readonly DiskAnswer[] };
export type ServicesAnswer = { readonly services: readonly ServiceAnswer[] };
export type EventsLine = EventRecord;
export type AuditLine = AuditRecord;
