/** Things that happen to a machine while a watch of it sleeps. */
import type { FakeHost } from "./fake-host.ts";

/** Seconds from now on, in order. */
export type Timeline = readonly (readonly [seconds: number, then: () => void])[];

/**
 * The host, on whose clock each of these happens before the sleep that reaches it is over: however fast the fake's time
 * goes by, the watch does not overtake them.
 */
export function withTimeline(host: FakeHost, plan: Timeline): FakeHost {
  const startMs = host.clock.monotonicMs();
  const left = [...plan];
  const happen = (): void => {
    for (;;) {
      const [first] = left;
      if (first === undefined || host.clock.monotonicMs() - startMs < first[0] * 1_000) return;
      left.shift();
      first[1]();
    }
  };
  happen();
  const sleep: FakeHost["clock"]["sleep"] = async (ms, signal) => {
    await host.clock.sleep(ms, signal);
    happen();
  };
  return { ...host, clock: { ...host.clock, sleep } };
}
