/**
 * An apply that waits for a word: to restart, because other controllers must have their files first, or to keep what it
 * has changed. It waits in this process; what a later one finds, apply/recovery decides.
 */
import { type AppError, appError, fail } from "../../kit/app-error.ts";
import { err, ok, type Result } from "../../kit/result.ts";

/** The operator took it back. */
export const TAKEN_BACK = "taken-back";

export type Word = "confirm" | "take-back";

/** Who gives the word. */
export interface Teller {
  /** Connections are numbered as they are opened. */
  readonly connection: number;
  /** The certificate is of the CA that only the change makes valid. */
  readonly isOfNewCa: boolean;
}

export interface Wait {
  /** Over when nobody said anything for too long, or when aborted. */
  readonly sleep: (signal: AbortSignal) => Promise<void>;
  readonly onWait: () => void;
  /** Why it is given up when the sleep is over. */
  readonly late: AppError;
  /** Why a confirmation does not count that comes from there. */
  readonly objection?: (teller: Teller) => AppError | undefined;
  /** PEM of the CA whose operators are let in while it waits. */
  readonly newCa?: string;
  /** The first connection of one of them confirms it. */
  readonly isByConnection?: true;
}

export interface Held<T> {
  /** Once, by the apply: until it is told something, or the time is over. */
  readonly wait: (wait: Wait) => Promise<Result<void, AppError>>;
  /** Resolves when the apply begins to wait. */
  readonly waits: Promise<"waits">;
  /** While it waits. */
  readonly current: () => Wait | undefined;
  readonly tell: (word: Word, teller: Teller) => Result<void, AppError>;
  /** What came of it in the end; set by who runs it. */
  outcome?: Promise<T>;
}

export function hold<T>(): Held<T> {
  const waits = Promise.withResolvers<"waits">();
  const told = Promise.withResolvers<Word>();
  let current: Wait | undefined;
  return {
    waits: waits.promise,
    current: () => current,
    async wait(wait) {
      wait.onWait();
      current = wait;
      waits.resolve("waits");
      const ending = new AbortController();
      const late = wait.sleep(ending.signal).then(() => "late" as const);
      const word = await Promise.race([told.promise, late]);
      current = undefined;
      ending.abort();
      if (word === "confirm") return ok(undefined);
      return err(word === "late" ? wait.late : appError(TAKEN_BACK, "it was taken back on request"));
    },
    tell(word, teller) {
      if (current === undefined) return fail(NOT_WAITING, "it does not wait");
      const objection = word === "confirm" ? current.objection?.(teller) : undefined;
      if (objection !== undefined) return err(objection);
      current = undefined;
      told.resolve(word);
      return ok(undefined);
    },
  };
}

/** It waits no longer, or not yet. */
export const NOT_WAITING = "not-waiting";
