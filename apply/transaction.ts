import { type AppError, fail } from "../kit/app-error.ts";
import { ok, type Result } from "../kit/result.ts";
import type { State } from "../state/open.ts";

/** All of it is recorded or nothing; a database that fails is an error like any other. */
export function recordTogether(state: Pick<State, "transaction">, work: () => void): Result<void, AppError> {
  try {
    state.transaction(work);
    return ok(undefined);
  } catch (error) {
    return fail("state", `it could not be recorded: ${error instanceof Error ? error.message : "unknown"}`);
  }
}
