/** Lines of a terminal, queued until somebody asks for one. */
import type { Host } from "../kit/ports.ts";
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

/** `stty`: a serial line is often logged, and the log would have what was typed. */
const sttyArgv = (path: string, isOn: boolean): string[] => ["stty", "-F", path, isOn ? "echo" : "-echo"];

export function terminalOn(
  tty: Tty,
  { clock, exec }: Pick<Host, "clock" | "exec">,
  signal: AbortSignal,
): QueuedTerminal {
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
    setEcho: async (isOn) => (await exec({ argv: sttyArgv(tty.path, isOn), timeoutMs: 5_000 })).exitCode === 0,
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
