/** Whoever is there is asked before anything is changed; scripts agree beforehand. */
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import type { Context } from "./context.ts";
import { isYes } from "./fingerprint.ts";
import { printable } from "./printable.ts";

/** An error unless they agree. */
export async function agree({ io, isAgreed }: Context, question: string): Promise<Result<void, AppError>> {
  if (isAgreed) return ok(undefined);
  if (io.ask === undefined) {
    return fail("declined", "nobody is here to agree, so nothing was changed", { hint: "--yes agrees beforehand" });
  }
  return isYes(await io.ask(`${printable(question)}? [y/N] `))
    ? ok(undefined)
    : fail("declined", "nothing was changed");
}
