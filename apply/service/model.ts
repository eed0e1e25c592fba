/** What a request to apply is, what it needs, and what comes of it. */
import type { ApplyAnswer, ErrorBody } from "../../api/contract.ts";
import type { Document } from "../../config/document.ts";
import type { Finding } from "../../kit/finding.ts";
import type { Paths } from "../../kit/paths.ts";
import type { Host } from "../../kit/ports.ts";
import { type Baseline, inTheWay, type Operation, type Requester } from "../../state/model.ts";
import type { State } from "../../state/open.ts";
import type { ApplyPlan } from "../plan.ts";
import type { NewCa } from "../undo/model.ts";

export interface ApplyDependencies {
  readonly host: Host;
  readonly paths: Pick<Paths, "stateDir" | "config">;
  readonly state: State;
  /** Of the program. */
  readonly version: string;
  readonly parse: (
    text: string,
    nowMs: number,
  ) => { readonly findings: readonly Finding[]; readonly document?: Document };
  readonly timeoutMs?: number;
  /** Of the API: the number of the connection that was opened last. */
  readonly lastConnection?: () => number;
  /** How long an apply waits for its word; over early when aborted. Default: as long as it is given. */
  readonly holdFor?: (signal: AbortSignal) => Promise<void>;
}

/** What the API hands over, already checked as a request. */
export interface ServiceRequest {
  readonly document: string;
  readonly acknowledge: boolean;
  readonly isDryRun: boolean;
  /** Every controller of the cluster gets it: written here, and k0s restarts only when told. */
  readonly isCoordinated?: boolean;
  /** It is taken back unless somebody confirms it in this time after it is made. */
  readonly confirmWithinMs?: number;
  /** Of a new CA: the first connection with a certificate of it confirms it. */
  readonly isConfirmedByConnection?: true;
  readonly requester: Requester;
}

export interface Refused {
  readonly kind: "refused";
  readonly status: 400 | 409 | 503;
  readonly body: ErrorBody;
}

export type ServiceOutcome = { readonly kind: "answer"; readonly answer: ApplyAnswer } | Refused;

export const refused = (
  status: 400 | 409 | 503,
  reason: string,
  error: string,
  more: Partial<ErrorBody> = {},
): Refused => ({
  kind: "refused",
  status,
  body: { error, reason, ...more },
});

export const busy = (running: Pick<Operation, "id" | "kind" | "phase">): Refused =>
  refused(409, "busy", inTheWay(running), { operation: running.id });

/** One that the gate let through. */
export interface Work {
  readonly request: ServiceRequest;
  readonly baseline: Baseline;
  readonly document: Document;
  readonly plan: ApplyPlan;
  readonly answer: ApplyAnswer;
  /** Obeyed once it is confirmed. */
  readonly newCa?: NewCa;
}
