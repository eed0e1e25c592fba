/** Everything the screen shows, gathered by the main and drawn by the frame. */
import type { NodeAnswer } from "../api/contract.ts";
import type { BootFacts } from "../kit/paths.ts";
import type { EventRecord } from "../state/model.ts";
import type { BootstrapStatus } from "../supervisor/bootstrap-status.ts";

export interface ConsoleView {
  readonly version: string;
  readonly hostname: string;
  /** With prefix, loopback and link-local ones left out. */
  readonly addresses: readonly { readonly link: string; readonly address: string }[];
  /** Absent while the API does not answer; then `apiProblem` says so. */
  readonly node?: NodeAnswer;
  readonly apiProblem?: string;
  readonly enrolment?: Enrolment;
  readonly bootstrap?: BootstrapStatus;
  readonly boot?: BootFacts;
  /** Oldest first. */
  readonly events: readonly EventRecord[];
}

/** Of this boot; gone once the node is claimed. */
export interface Enrolment {
  readonly code?: string;
  readonly fingerprint?: string;
}
