import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";

import { realClock } from "./clock.ts";

test("the monotonic clock counts from boot, not from the start of the process", () => {
  const uptimeMs = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;
  expect(Math.abs(realClock.monotonicMs() - uptimeMs)).toBeLessThan(2_000);
});

test("a sleep ends early when it is aborted", async () => {
  const stop = new AbortController();
  const before = realClock.monotonicMs();
  setTimeout(() => stop.abort(), 20);
  await realClock.sleep(10_000, stop.signal);
  await realClock.sleep(10_000, stop.signal);
  expect(realClock.monotonicMs() - before).toBeLessThan(2_000);
});
