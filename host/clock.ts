import { uptime } from "node:os";

import type { Clock } from "../kit/ports.ts";

/** The start of this process, counted from boot. */
const startedAtMs = uptime() * 1000 - performance.now();

export const realClock: Clock = {
  nowMs: () => Date.now(),
  // The runtime's own clocks count from the start of the process; this must go on over a restart of the daemon.
  monotonicMs: () => startedAtMs + performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) {
        resolve();
        return;
      }
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done, { once: true });
    }),
};
