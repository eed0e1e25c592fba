/** A change that is made, and that the node takes back by itself unless somebody confirms it in time. */
import { type AppError, appError } from "../kit/app-error.ts";
import { parseDuration } from "../config/duration.ts";
import type { Teller } from "./held/driver.ts";
import type { Awaited, UndoRecord } from "./undo/model.ts";

/** Shorter, and a slow link alone would undo it; longer, and nobody remembers what is still open. */
export const CONFIRM_WITHIN = { minMs: 5_000, maxMs: 3_600_000, words: "from 5s to 1h, e.g. 30s, 2m, 1m30s" } as const;

/** Of `confirmWithin`; undefined for what is no duration, or beyond the bounds. */
export function parseConfirmWithin(text: string): number | undefined {
  const ms = parseDuration(text);
  return ms === undefined || ms < CONFIRM_WITHIN.minMs || ms > CONFIRM_WITHIN.maxMs ? undefined : ms;
}

/** Nobody said that it is good. */
export const NOT_CONFIRMED = "not-confirmed";

export const notConfirmed = (): AppError =>
  appError(NOT_CONFIRMED, "it was not confirmed in time", {
    hint: "apply it again, and confirm it over a new connection: cctl confirm ADDR ID",
  });

export interface Now {
  readonly bootId: string;
  readonly monotonicMs: number;
}

/** A change of this boot whose time is not over: a program that was started again goes on waiting for it. */
export const isAwaited = ({ state, awaited }: UndoRecord, now: Now): boolean =>
  state === "open" && awaited !== undefined && awaited.bootId === now.bootId && awaited.untilMs > now.monotonicMs;

/** What the operation says while it waits. `untilMs`: of the wall clock. */
export function waitingMessage(
  operation: string,
  { newCa, isByConnection }: Pick<Awaited, "newCa" | "isByConnection">,
  untilMs: number,
): string {
  const until = new Date(untilMs).toISOString().replace(/\.\d+Z$/, "Z");
  if (isByConnection === true)
    return `made; it is taken back at ${until} unless somebody comes with a certificate of the new CA`;
  const how = newCa === undefined ? "over a new connection" : "with a certificate of the new CA";
  return `made; it is taken back at ${until} unless somebody confirms it ${how}: cctl confirm ADDR ${operation}`;
}

/**
 * That the very connection that made the change still works proves nothing: the next one may be refused. `since`: the last
 * one that was opened before the change was made.
 */
export function objectionTo(
  { connection, isOfNewCa }: Teller,
  { newCa }: Pick<Awaited, "newCa">,
  since: number,
): AppError | undefined {
  // Said first: over a connection of the old CA no confirmation counts, and a newer one would be a vain try.
  if (newCa !== undefined && !isOfNewCa) {
    return appError(
      "old-ca",
      "this change is confirmed with a certificate of the new operator CA; the old one ends with it",
      { hint: "cctl --dir FOLDER confirm ADDR ID, where FOLDER holds the new CA's certificate" },
    );
  }
  if (connection > since) return undefined;
  return appError("old-connection", "this connection is older than the change; confirm it over a new one");
}
