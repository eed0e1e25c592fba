/**
 * An apply that has written its files and waits for the word to restart, because other controllers must have theirs
 * first. It waits in this process only: after a crash the next start finds the open record and puts the files back.
 */
import { type AppError, appError, fail } from "../../kit/app-error.ts";
import { ok, type Result } from "../../kit/result.ts";

/** Why a held apply was given up; its files are put back, and k0s has not been restarted. */
export const GIVEN_UP = "given-up";
/** The operator took it back. */
export const TAKEN_BACK = "taken-back";

export type Word = "restart" | "take-back";

export interface Held<T> {
  /** Once, by the apply: until it is told something, or the time is over. */
  readonly wait: () => Promise<Result<void, AppError>>;
  /** Resolves when the apply begins to wait. */
  readonly written: Promise<"written">;
  /** False: it waits no longer, or not yet. */
  readonly tell: (word: Word) => boolean;
  /** What came of it in the end; set by who runs it. */
  outcome?: Promise<T>;
}

/** `sleep` is over when nobody said anything for too long. */
export function hold<T>(options: {
  readonly sleep: (signal: AbortSignal) => Promise<void>;
  readonly onWait: () => void;
}): Held<T> {
  const written = Promise.withResolvers<"written">();
  const told = Promise.withResolvers<Word>();
  let isWaiting = false;
  return {
    written: written.promise,
    async wait() {
      options.onWait();
      isWaiting = true;
      written.resolve("written");
      const ending = new AbortController();
      const late = options.sleep(ending.signal).then(() => "late" as const);
      const word = await Promise.race([told.promise, late]);
      isWaiting = false;
      ending.abort();
      if (word === "restart") return ok(undefined);
      if (word === "take-back") return { ok: false, error: appError(TAKEN_BACK, "it was taken back on request") };
      return fail(GIVEN_UP, "nobody said that k0s may restart with it", {
        hint: "the other controllers may have it already: apply to all of them again",
      });
    },
    tell(word) {
      if (!isWaiting) return false;
      isWaiting = false;
      told.resolve(word);
      return true;
    },
  };
}
