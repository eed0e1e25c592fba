import type { Clock } from "../kit/ports.ts";

export const realClock: Clock = {
  nowMs: () => Date.now(),
  // CLOCK_MONOTONIC counts from boot on Linux; performance.now() would count from the start of the process.
  monotonicMs: () => Number(process.hrtime.bigint() / 1_000_000n),
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
