/** Carries a dialogue out on a terminal: shows each turn, makes its request, waits for a line. */
import type { Answer, Input, Turn } from "./dialogue.ts";
import { PATIENCE_MS } from "./dialogue.ts";
import { readTyped } from "./typed.ts";
import { appendAll, paintAll } from "./writer.ts";

export interface Conversation<S, R> {
  readonly step: (state: S, input: Input) => Turn<S, R>;
  readonly perform: (request: R) => Promise<Answer>;
  readonly signal?: AbortSignal;
}

export interface Terminal {
  readonly isScreen: boolean;
  readonly write: (text: string) => Promise<void>;
  /** The next line typed; undefined when none came in time, or the program is to end. */
  readonly nextLine: (timeoutMs: number) => Promise<string | undefined>;
  /** Lines that were typed and not read yet. */
  readonly forget: () => void;
  /** Whether what is typed is shown; `false`: the terminal can't be told. */
  readonly setEcho: (isOn: boolean) => Promise<boolean>;
}

const ROWS = 23;

export async function converse<S, R>(
  terminal: Terminal,
  first: Turn<S, R>,
  { step, perform, signal }: Conversation<S, R>,
): Promise<void> {
  let turn = first;
  while (signal?.aborted !== true) {
    const isOver = turn.state === undefined;
    // On a screen the last words would be painted over at once.
    const lines = isOver && terminal.isScreen ? [...turn.lines, "", "Enter goes back"] : turn.lines;
    if (lines.length > 0) {
      await terminal.write(terminal.isScreen ? paintAll(lines.slice(-ROWS)) : appendAll(lines));
    }
    const { state, request } = turn;
    if (state === undefined) {
      terminal.forget();
      if (terminal.isScreen) await terminal.nextLine(PATIENCE_MS);
      return;
    }
    if (request !== undefined) {
      turn = step(state, { kind: "answer", answer: await perform(request) });
      continue;
    }
    // What was typed, or pasted, before the question stood there is no answer to it.
    terminal.forget();
    const isAskable = turn.isHidden !== true || (await terminal.setEcho(false));
    const line = isAskable ? await terminal.nextLine(PATIENCE_MS) : undefined;
    if (turn.isHidden === true) await terminal.setEcho(true);
    turn = step(state, line === undefined ? { kind: "timeout" } : readTyped(line));
  }
}
