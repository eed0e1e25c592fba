/** Lines of a terminal, queued until somebody asks for one. */
import type { Clock } from "../kit/ports.ts";
import type { Terminal } from "./converse.ts";
import type { Tty } from "./tty.ts";

/** A port that is flooded does not fill the memory. */
const MOST = 64;

export interface QueuedTerminal extends Terminal {
  /** Read already and not asked for yet. */
  readonly hasLine: () => boolean;
  /** The next line is one that says nothing. */
  readonly isEmptyNext: () => boolean;
  /** Until a line comes, the time is over, or the program is to end. */
  readonly pause: (ms: number) => Promise<void>;
}

export function terminalOn(tty: Tty, clock: Clock, signal: AbortSignal): QueuedTerminal {
  const typed: string[] = [];
  let wake = new AbortController();
  tty.onLine((line) => {
    if (typed.length < MOST) typed.push(line);
    wake.abort();
  });
  const pause = async (ms: number): Promise<void> => {
    wake = new AbortController();
    await clock.sleep(ms, AbortSignal.any([wake.signal, signal]));
  };
  return {
    isScreen: tty.isScreen,
    write: (text) => tty.write(text),
    forget: () => void typed.splice(0),
    isEmptyNext: () => typed[0]?.trim() === "",
    hasLine: () => typed.length > 0,
    nextLine: async (timeoutMs) => {
      if (typed.length === 0 && timeoutMs > 0 && !signal.aborted) await pause(timeoutMs);
      return typed.shift();
    },
    pause,
  };
}
