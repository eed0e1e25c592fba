import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { judgeClock, unsyncedLimitMs } from "./clock.ts";

const built = Date.UTC(2026, 5, 1);
const at = (year: number, month = 0): number => Date.UTC(year, month, 1);
const judge = (nowMs: number, more: { isSynced?: boolean; waitedMs?: number; lastSeenMs?: number } = {}) =>
  judgeClock({
    nowMs,
    floor: { imageMs: built, ...(more.lastSeenMs === undefined ? {} : { lastSeenMs: more.lastSeenMs }) },
    isSynced: more.isSynced ?? false,
    waitedMs: more.waitedMs ?? 0,
  });

describe("clock", () => {
  test("B059, B060: a machine that thinks it is 1970 or 2000 waits visibly and without end", () => {
    for (const year of [1970, 2000]) {
      const verdict = judge(at(year), { waitedMs: 10 * unsyncedLimitMs, isSynced: year === 2000 });
      expect(verdict.kind).toBe("wait");
      expect(verdict.kind === "wait" ? verdict.message : "").toContain(`${year}-01-01T00:00:00Z`);
    }
  });

  test("B061: a clock of 2040 is believed only from a time server", () => {
    expect(judge(at(2040), { waitedMs: 10 * unsyncedLimitMs }).kind).toBe("wait");
    expect(judge(at(2040), { isSynced: true }).kind).toBe("ok");
  });

  test("a plausible clock is waited for two minutes, then taken with a warning", () => {
    expect(judge(at(2026, 8)).kind).toBe("wait");
    expect(judge(at(2026, 8), { waitedMs: unsyncedLimitMs - 1 }).kind).toBe("wait");
    expect(judge(at(2026, 8), { waitedMs: unsyncedLimitMs }).kind).toBe("warn");
    expect(judge(at(2026, 8), { isSynced: true }).kind).toBe("ok");
  });

  test("B064: the last time seen on disk counts more than an older image", () => {
    expect(judge(at(2027), { isSynced: true, lastSeenMs: at(2028) }).kind).toBe("wait");
  });

  test("below the floor is never taken, whatever else is true", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: built - 1 }), fc.boolean(), fc.nat(), (nowMs, isSynced, waitedMs) => {
        expect(judge(nowMs, { isSynced, waitedMs }).kind).toBe("wait");
      }),
    );
  });

  test("the message changes at most every half minute: a serial line is slow", () => {
    const messages = new Set<string>();
    for (let waitedMs = 0; waitedMs < unsyncedLimitMs; waitedMs += 1000) {
      const verdict = judge(at(2026, 8) + waitedMs, { waitedMs });
      if (verdict.kind === "wait") messages.add(verdict.message);
    }
    expect(messages.size).toBe(4);
  });
});
