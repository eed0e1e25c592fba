/** What an apply replaces, kept until it is known that the node runs with what came instead. */
import type { K0sUnit } from "../../k0s/paths.ts";

export interface KeptFile {
  readonly path: string;
  /** The file as it was, with its name among the copies; null: it was absent. */
  readonly before: { readonly mode: number; readonly copy: string } | null;
}

export interface UndoRecord {
  readonly operation: string;
  readonly atMs: number;
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
