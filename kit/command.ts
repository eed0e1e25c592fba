/** What an entry point may know of the process it runs in; main.ts alone reads argv and the environment. */
export interface CommandIo {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly readStdin: () => Promise<string>;
  /** Asks a person for one line; absent when nobody is there (stdin or stderr is no terminal). */
  readonly ask?: (question: string) => Promise<string | undefined>;
  /** As `ask`, but what is typed is not shown. */
  readonly askSecret?: (question: string) => Promise<string | undefined>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTerminal: boolean;
  readonly columns: number;
  /** Aborted by SIGTERM and SIGINT. */
  readonly signal: AbortSignal;
  /** What it was called as, for usage and errors; `corium` when absent. */
  readonly program?: string;
}

/** `argv` is what follows the command's name; the result is the exit status. */
export type Command = (argv: readonly string[], io: CommandIo) => Promise<number>;
