/** What the node remembers: the rows of the database as the rest of the program sees them. */
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { DiskIdentity } from "../kit/disk.ts";
import type { OperatorRole } from "../kit/operator-role.ts";
import type { StepBase } from "../kit/step.ts";

/** Who asked. `local` is root on the socket, `document` the node's own document at boot. */
export type Requester =
  | { readonly kind: "local" | "console" | "document" }
  | {
      readonly kind: "operator";
      readonly name: string;
      readonly role: OperatorRole;
      /** `SHA256:` + unpadded base64. */
      readonly fingerprint: string;
      readonly address: string;
    };

export type OperationKind =
  | "install"
  | "bootstrap"
  | "apply"
  | "reboot"
  | "shutdown"
  | "enroll"
  | "baseline-adopt"
  | "render"
  | "disk-replace"
  | "reset"
  | "drain"
  | "handover";

export type OperationPhase =
  "pending" | "running" | "awaiting-confirmation" | "succeeded" | "failed" | "rolled-back" | "cancelled";

export interface OperationStep {
  readonly id: string;
  readonly title: string;
  readonly state: "pending" | "running" | "done" | "skipped" | "failed";
  readonly startedAtMs?: number;
  readonly endedAtMs?: number;
}

export interface Operation {
  readonly id: string;
  readonly kind: OperationKind;
  readonly phase: OperationPhase;
  readonly steps: readonly OperationStep[];
  /** What it is doing or waiting for; replaced as it changes, absent at the end. */
  readonly message?: string;
  readonly failureReason?: string;
  readonly requester: Requester;
  readonly inputHash?: string;
  /** Of the program that ran it. */
  readonly version: string;
  readonly createdAtMs: number;
  readonly endedAtMs?: number;
}

export const isOver = (phase: OperationPhase): boolean =>
  phase === "succeeded" || phase === "failed" || phase === "rolled-back" || phase === "cancelled";

/** To whoever wants to begin another one. */
export function inTheWay({ id, kind, phase }: Pick<Operation, "id" | "kind" | "phase">): string {
  const isWaiting = phase === "awaiting-confirmation";
  const what = isWaiting ? "waits to be confirmed; confirm or cancel it first" : "is running; wait for it";
  return `operation ${id} (${kind}) ${what}`;
}

export interface EventRecord {
  readonly seq: number;
  readonly atMs: number;
  readonly kind: string;
  readonly severity: "info" | "warning" | "error";
  readonly message: string;
}

export interface AuditRecord {
  readonly seq: number;
  readonly atMs: number;
  readonly requester: Requester;
  /** `POST /v1/config`; never the body. */
  readonly route: string;
  readonly status: number;
  readonly outcome: string;
}

/** A destructive step as it was decided: made again only on these very disks, with these very UUIDs. */
export interface Intent {
  readonly stepId: string;
  readonly step: StepBase;
  readonly disks: readonly DiskIdentity[];
  readonly openedAtMs: number;
  /** Absent: power may have been lost in the middle. */
  readonly closedAtMs?: number;
}

export interface StoredDocument {
  readonly id: number;
  readonly text: string;
  readonly sha256: string;
  readonly atMs: number;
  readonly requester: Requester;
  /** `config.yaml`, `corium.config=…`, `enroll`, `apply`. */
  readonly origin: string;
}

/** SHA-256 of each rendered path, in hex. */
export type RenderedDigests = Readonly<Record<string, string>>;

export interface Baseline {
  readonly document: StoredDocument;
  readonly hostname: string;
  readonly machineId: string;
  readonly addresses: RecordedAddresses;
  readonly k0sVersion: string;
  readonly inputHash: string;
  readonly renderVersion: number;
  /** Of the secrets that it was rendered with, by field path; not of those that only the first boot needs. */
  readonly secretFingerprints: Readonly<Record<string, string>>;
  readonly rendered: RenderedDigests;
  readonly atMs: number;
}

/** Of the CNI to GitOps, as of a Kubernetes condition. */
export interface HandoverCondition {
  /** GitOps has it, or has shown that it can: the bootstrap stack is no longer wished here. */
  readonly status: "True" | "False";
  readonly reason:
    | "Disabled"
    | "Manual"
    | "NoAnswer"
    | "WaitingForArgoCD"
    | "WillNeverSync"
    | "NotSynced"
    | "NotHealthy"
    | "Failed"
    | "Synced"
    | "HandedOver";
  readonly message: string;
  readonly atMs: number;
}

export interface HandoverDone {
  /** `manifests[]` entry that k0s no longer reads. */
  readonly stack: string;
  /** Folder with its files. */
  readonly keptAt: string;
  readonly atMs: number;
}

export interface Claim {
  /** One PEM certificate. */
  readonly operatorCA: string;
  readonly fingerprint: string;
  readonly atMs: number;
  /** `enroll`, `document`, `insecure`. */
  readonly by: "enroll" | "document" | "insecure";
}
