/**
 * Questions and answers on a terminal, as a pure machine: a state, what came in, the next state with the lines that
 * are shown. Whatever changes something is a request, made only after a name was typed that the screen has shown.
 */
import { printable, wrap, COLUMNS } from "./frame.ts";
import type { Typed } from "./typed.ts";

export type Answer =
  | { readonly ok: true; readonly json: unknown }
  /** What went wrong, ready to be shown. */
  /** `isBegun`: it was done or begun, or nobody knows: the answer was lost. */
  | { readonly ok: false; readonly lines: readonly string[]; readonly isBegun?: true };

export type Input = Typed | { readonly kind: "answer"; readonly answer: Answer } | { readonly kind: "timeout" };

export interface Turn<S, R> {
  /** Absent: the dialogue is over. */
  readonly state?: S;
  readonly lines: readonly string[];
  /** Is carried out; its answer is the next input. Without one a line is waited for. */
  readonly request?: R;
  /** What is typed next is a secret. */
  readonly isHidden?: true;
}

/** For so long nobody types: then the screen is the node's again. */
export const PATIENCE_MS = 120_000;

export const NOTHING_CHANGED = "nothing was changed";

/** Last words. */
export function over(...lines: readonly string[]): { readonly lines: readonly string[] } {
  return { lines: shown(lines) };
}

export const isCancel = (input: Input): boolean =>
  input.kind === "cancel" || input.kind === "timeout" || (input.kind === "text" && /^q(uit)?$/i.test(input.text));

/** The words have to be typed as they are shown; only blanks in between may differ. */
export const isTyped = (input: Input, words: string): boolean =>
  input.kind === "text" && input.text.replace(/ +/g, " ") === words;

/** Plain characters, no line wider than a terminal. */
export const shown = (lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => wrap(printable(line), COLUMNS));

/** What has to be typed, on a line of its own. */
export const ask = (words: string): string => `type: ${words}`;
