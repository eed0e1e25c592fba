/**
 * May the clock be believed? Certificates are minted next: with a clock that is wrong they are not yet valid
 * tomorrow, or dead today. The floor is the latest moment that has certainly passed.
 */
export interface ClockFloor {
  /** The image was built then. */
  readonly imageMs: number;
  /** Last time seen on disk. */
  readonly lastSeenMs?: number;
  /** The claimer's time, sent with the claim. */
  readonly claimerMs?: number;
}

export type ClockVerdict =
  | { readonly kind: "ok" }
  /** Plausible, but nobody confirmed it for long enough. */
  | { readonly kind: "warn"; readonly message: string }
  | { readonly kind: "wait"; readonly message: string };

const yearMs = 365.25 * 24 * 3600 * 1000;
/** An image that is run later than this after all that is known: rather a broken clock than a patient owner. */
const plausibleMs = 10 * yearMs;
export const unsyncedLimitMs = 120_000;

export const floorOf = (floor: ClockFloor): number =>
  Math.max(floor.imageMs, floor.lastSeenMs ?? 0, floor.claimerMs ?? 0);

export function judgeClock(input: {
  readonly nowMs: number;
  readonly floor: ClockFloor;
  readonly isSynced: boolean;
  /** How long time servers were asked already. */
  readonly waitedMs: number;
}): ClockVerdict {
  const floor = floorOf(input.floor);
  const now = isoOf(input.nowMs);
  const cure = "a time server (corium.ntp=) or 'cctl time set' is needed";
  if (input.nowMs < floor) {
    return {
      kind: "wait",
      message: `waiting for the right time: the clock says ${now}, it is after ${isoOf(floor)}; ${cure}`,
    };
  }
  if (input.isSynced) return { kind: "ok" };
  if (input.nowMs > floor + plausibleMs) {
    return {
      kind: "wait",
      message: `waiting for the right time: the clock says ${now}, years after ${isoOf(floor)}; ${cure}`,
    };
  }
  if (input.waitedMs < unsyncedLimitMs) {
    const leftS = Math.ceil((unsyncedLimitMs - input.waitedMs) / 1000);
    // Rounded, so that a slow console is not redrawn each second.
    return {
      kind: "wait",
      message: `waiting up to ${Math.ceil(leftS / 30) * 30} s for time synchronisation (the clock says ${now.slice(0, 10)})`,
    };
  }
  return { kind: "warn", message: `no time server answered; the clock (${now}) is taken as it is` };
}

/** To the minute: a message that changes each second would flood a serial line. */
function isoOf(ms: number): string {
  const text = Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString() : String(ms);
  return text.replace(/:\d\d\.\d+Z$/, "Z");
}
