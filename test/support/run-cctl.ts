/** The whole client in this process: real TLS, a store and documents in memory. */
import { run } from "../../cctl/cctl.main.ts";
import { realRandom } from "../../host/random.ts";
import type { CommandIo } from "../../kit/command.ts";
import type { FakeHost } from "./fake-host.ts";

export interface Ran {
  readonly status: number;
  readonly out: string;
  readonly err: string;
  /** Both, in the order in which they were printed. */
  readonly all: string;
}

export interface RunOptions {
  /** A person is there and says this, one line per question; absent: nobody is. */
  readonly answers?: readonly string[];
  readonly stdin?: string;
  readonly home?: string;
  readonly isTerminal?: boolean;
  /** Ctrl-C. */
  readonly signal?: AbortSignal;
}

export async function runCctl(host: FakeHost, argv: readonly string[], options: RunOptions = {}): Promise<Ran> {
  let out = "";
  let err = "";
  let all = "";
  const left = [...(options.answers ?? [])];
  const print = (text: string): void => {
    out += text;
    all += text;
  };
  const complain = (text: string): void => {
    err += text;
    all += text;
  };
  const io: CommandIo = {
    out: print,
    err: complain,
    readStdin: async () => options.stdin ?? "",
    ...(options.answers === undefined
      ? {}
      : {
          ask: async (question: string) => {
            const answer = left.shift();
            complain(`${question}${answer ?? ""}\n`);
            return answer;
          },
          askSecret: async (question: string) => {
            complain(`${question}\n`);
            return left.shift();
          },
        }),
    env: { HOME: options.home ?? "/home/ann", USER: "ann" },
    isTerminal: options.isTerminal ?? false,
    columns: 80,
    signal: options.signal ?? new AbortController().signal,
  };
  const status = await run(argv, io, { files: host.files, clock: host.clock, random: realRandom });
  return { status, out, err, all };
}
