/** What the routes work with; the composition root fills it, tests fill it with fakes. */
import type { Teller, Word } from "../apply/held/driver.ts";
import type { ServiceOutcome, ServiceRequest } from "../apply/service/model.ts";
import type { AdoptOutcome, AdoptRequest } from "../apply/adopt/driver.ts";
import type { Document } from "../config/document.ts";
import type { AppError } from "../kit/app-error.ts";
import type { Finding } from "../kit/finding.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import type { Secret } from "../kit/secret.ts";
import type { KnownVolume } from "../luks/model.ts";
import type { State } from "../state/open.ts";
import type { Installer } from "../supervisor/installer.ts";
import type { ArrayDuty } from "../supervisor/array-duty.ts";
import type { ResetService } from "../supervisor/reset-service.ts";
import type { ConfigStatusAnswer, DiskAnswer, HealthAnswer, NodeAnswer } from "./contract.ts";
import type { CaChallenge } from "./ca-challenge.ts";
import type { Enrolment } from "./enrolment.ts";

export interface ApiServices {
  readonly host: Host;
  readonly paths: Paths;
  readonly version: string;
  readonly state: State;
  /** The database can't be used: what is answered from it would be wrong, so it is refused with 503. */
  readonly stateProblem?: AppError;
  /** Present while nobody owns the node and it may be claimed. */
  readonly enrolment?: Enrolment;
  readonly config: ConfigService;
  readonly bootstrap: BootstrapControl;
  readonly status: StatusService;
  /** Present once the node has something to compare with. */
  readonly apply: ApplyService;
  /** On a live system only. */
  readonly install?: Installer;
  readonly caChallenge: CaChallenge;
  readonly volumes: VolumeService;
  /** One disk in the place of another. */
  readonly disks: ArrayDuty["disks"];
  /** Only on a node in service whose record of what it runs is gone. */
  readonly adopt?: (request: AdoptRequest) => Promise<AdoptOutcome>;
  /** Not on a live system, which keeps nothing. */
  readonly reset?: ResetService;
}

export interface ParsedText {
  readonly findings: readonly Finding[];
  readonly document?: Document;
}

/** The node's own document, as bootstrap would find it now. */
export type OwnDocument =
  | { readonly kind: "none" }
  | { readonly kind: "found"; readonly text: string; readonly origin: string; readonly isRunning?: true }
  | { readonly kind: "failed"; readonly error: AppError };

export interface ConfigService {
  /** `nowMs`: other than the clock's. */
  readonly parse: (text: string, nowMs?: number) => ParsedText;
  readonly findOwn: () => Promise<OwnDocument>;
  /** For readers below admin: secrets as fingerprints. */
  readonly redact: (text: string) => string;
}

/** The other process that changes the node. */
export interface BootstrapControl {
  /** `running`: it changes the machine right now, and may not be disturbed. */
  state(): Promise<"idle" | "waiting" | "running" | "failed" | "done">;
  /** As `state`, but one that has begun and said nothing yet is given time to say whether it waits. */
  settled(): Promise<"idle" | "waiting" | "running" | "failed" | "done">;
  /** Start it again unless it runs: a claim, a document or a retry has come. */
  poke(): Promise<Result<void, AppError>>;
}

export interface StatusService {
  health(): Promise<HealthAnswer>;
  node(maxAgeMs?: number): Promise<NodeAnswer>;
  disks(): Promise<Result<readonly DiskAnswer[], AppError>>;
  config(): Promise<ConfigStatusAnswer>;
}

/** The gate (apply/): refuses without a trace, or makes the whole document true. */
export interface ApplyService {
  apply(request: ServiceRequest): Promise<ServiceOutcome>;
  /** Somebody came with a certificate of the CA that waits: what is confirmed by that is done when it resolves. */
  greet(connection: number): Promise<void>;
  /** Of one that waits: it goes on, or is taken back. */
  resume(operation: string, told: { readonly word: Word; readonly teller: Teller }): Promise<ServiceOutcome>;
}

/** Encrypted volumes of this node. */
export interface VolumeService {
  known(): readonly KnownVolume[];
  recovery(volume: KnownVolume, isReplacing: boolean): Promise<Result<Secret, AppError>>;
  unlock(
    volume: KnownVolume,
    key: Secret,
  ): Promise<Result<{ readonly isBoundAnew: boolean; readonly problems: readonly AppError[] }, AppError>>;
}
