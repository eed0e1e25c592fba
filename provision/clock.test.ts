import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { fakeHost } from "../test/support/fake-host.ts";
import { judgeClock, unsyncedLimitMs } from "./clock.ts";
import { waitForClock } from "./driver.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

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
      expect(verdict.kind === "wait" ? verdict.message : "").toContain(`${year}-01-01T00:00Z`);
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

describe("waiting for it", () => {
  const at2026 = Date.UTC(2026, 0, 1);

  test("two minutes from boot, said, then a warning; a retry does not wait again", async () => {
    const host = fakeHost({ nowMs: at2026, programs: { timedatectl: () => "no\n" } });
    const messages: string[] = [];
    const report = (message: string): void => void messages.push(message);
    const first = await waitForClock(host, { imageMs: at2026 - 1000 }, { report });
    expect(first.ok && first.value).toContain("no time server answered");
    expect(host.clock.monotonicMs()).toBeLessThan(unsyncedLimitMs + 5_000);
    expect(messages.length).toBeGreaterThan(2);
    messages.length = 0;
    expect((await waitForClock(host, { imageMs: at2026 - 1000 }, { report })).ok).toBe(true);
    expect(messages).toEqual([]);
  });

  test("a clock below the floor is waited for until somebody sets it", async () => {
    const host = fakeHost({ nowMs: 0, programs: { timedatectl: () => "no\n" } });
    const messages: string[] = [];
    const done = await waitForClock(
      host,
      { imageMs: at2026 },
      {
        report: (message) => {
          messages.push(message);
          if (messages.length === 5) host.setNow(at2026 + 1000);
        },
      },
    );
    expect(done.ok).toBe(true);
    expect(messages[0]).toContain("1970-01-01");
  });
});
