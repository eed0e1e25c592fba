/** What an apply replaces, kept until it is known that the node runs with what came instead. */
import type { ChartState } from "../../k0s/charts.ts";
import type { K0sUnit } from "../../k0s/paths.ts";
import type { Baseline, Claim, Requester } from "../../state/model.ts";

export interface KeptFile {
  readonly path: string;
  /** The file as it was, with its name among the copies; null: it was absent. */
  readonly before: { readonly mode: number; readonly copy: string } | null;
  /** SHA-256 of what came instead; absent: it was removed. */
  readonly after?: string;
}

/** What is left to do of a change that is made: to record it, and to wait for helm. */
export interface Made extends Pick<Baseline, "rendered" | "inputHash" | "secretFingerprints"> {
  /** The document, as it was given. */
  readonly text: string;
  readonly charts: { readonly names: readonly string[]; readonly before: readonly (readonly [string, ChartState])[] };
}

/** A confirmation comes from its operators, and from then on the node obeys it. */
export type NewCa = Pick<Claim, "operatorCA" | "fingerprint">;

/** A change that is made, and is taken back unless it is confirmed: enough for another process to go on with it. */
export interface Awaited extends Made {
  readonly requester: Requester;
  readonly bootId: string;
  /** Of the monotonic clock of that boot. */
  readonly untilMs: number;
  readonly newCa?: NewCa;
  /** The first connection with a certificate of the new CA confirms it. */
  readonly isByConnection?: true;
}

export interface UndoRecord {
  readonly operation: string;
  /** For people; sets are told apart by `order`, because a clock may go back. */
  readonly atMs: number;
  /** Grows with each set; absent from those of an older release. */
  readonly order?: number;
  /** `open` until the operation is over: what is found open at a start is undone, or finished when it was recorded. */
  readonly state: "open" | "applied" | "undone";
  readonly files: readonly KeptFile[];
  /** Folders that were not there: a stack's folder left empty would prune what k0s owns (k0s issue 8214). */
  readonly newFolders: readonly string[];
  readonly restarts: readonly K0sUnit[];
  readonly timers: { readonly gone: readonly string[]; readonly wanted: readonly string[] };
  /** Timers of `wanted` that the node had before. */
  readonly knownTimers: readonly string[];
  /** Of the document that was being applied. */
  readonly documentSha256: string;
  /** Of the one before it, which source 1 holds until then; absent where it is not written. */
  readonly sourceSha256?: string;
  /** Present while it waits; holds secrets, as the copies do. */
  readonly awaited?: Awaited;
}

export const undoFolder = (stateDir: string): string => `${stateDir}/undo`;

export const recordPath = (stateDir: string, operation: string): string =>
  `${undoFolder(stateDir)}/${operation}/record.json`;

/** Records are written by this program only and whole; one that can't be read has been tampered with. */
export function parseRecord(text: string): UndoRecord | undefined {
  try {
    const value = JSON.parse(text) as Partial<UndoRecord>;
    return typeof value.operation === "string" && Array.isArray(value.files) ? (value as UndoRecord) : undefined;
  } catch {
    return undefined;
  }
}
