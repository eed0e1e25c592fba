/**
 * The one binary. Its own name, or else the first argument, picks the entry point; nothing else in the program
 * reads argv or the environment. Each command is imported only when it is asked for, so that `bootstate` in the
 * boot path does not pay for the API.
 */
import { basename } from "node:path";
import type { Command, CommandIo } from "./kit/command.ts";
import { version } from "./kit/version.ts";

const commands: Readonly<Record<string, () => Promise<Command>>> = {
  bootstate: async () => (await import("./supervisor/bootstate.main.ts")).bootstateCommand,
  bootstrap: async () => (await import("./supervisor/bootstrap.main.ts")).bootstrapCommand,
  cctl: async () => (await import("./cctl/cctl.main.ts")).cctl,
  console: async () => (await import("./console/console.main.ts")).consoleCommand,
  diff: async () => (await import("./supervisor/diff.main.ts")).diffCommand,
  install: async () => (await import("./supervisor/install.main.ts")).installCommand,
  link: async () => (await import("./supervisor/link.main.ts")).linkCommand,
  render: async () => (await import("./supervisor/render.main.ts")).renderCommand,
  explain: async () => (await import("./supervisor/offline.main.ts")).explainCommand,
  rescue: async () => (await import("./console/rescue.main.ts")).rescueCommand,
  reset: async () => (await import("./supervisor/reset.main.ts")).resetCommand,
  schema: async () => (await import("./supervisor/offline.main.ts")).schemaCommand,
  serve: async () => (await import("./api/serve.main.ts")).serveCommand,
  validate: async () => (await import("./supervisor/offline.main.ts")).validateCommand,
  version: async () => printVersion,
};

/** Names that the binary may have been given; every other name means `corium`. */
const ownNames: readonly string[] = ["cctl"];

const printVersion: Command = async (argv, io) => {
  const isJson = argv.join(" ") === "--output json" || argv.join(" ") === "--output=json";
  if (argv.length > 0 && !isJson) {
    io.err("corium: usage: corium version [--output json]\n");
    return 2;
  }
  io.out(isJson ? `${JSON.stringify({ version })}\n` : `corium ${version}\n`);
  return 0;
};

function usage(): string {
  return `usage: corium COMMAND [ARGUMENT…]\n\ncommands: ${Object.keys(commands).join(", ")}\n`;
}

/** `process.argv[0]` is always `bun`, also in a compiled binary: only `process.argv0` tells the name. */
async function main(io: CommandIo): Promise<number> {
  const name = basename(process.argv0);
  const given = process.argv.slice(2);
  const argv = ownNames.includes(name) ? [name, ...given] : given;
  const [command, ...rest] = argv;
  if (command === undefined || command === "help" || command === "--help" || command === "-h") {
    const isAsked = command !== undefined;
    (isAsked ? io.out : io.err)(usage());
    return isAsked ? 0 : 2;
  }
  const load = Object.hasOwn(commands, command) ? commands[command] : undefined;
  if (load === undefined) {
    io.err(`corium: no command '${command}'\n${usage()}`);
    return 2;
  }
  return (await load())(rest, io);
}

function processIo(): CommandIo {
  const stopping = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    // The second time the person means it: a command that does not watch the signal must still be stoppable.
    process.on(name, () => {
      if (stopping.signal.aborted) process.exit(130);
      stopping.abort();
    });
  }
  for (const stream of [process.stdout, process.stderr]) stream.on("error", onWriteError);
  const isInteractive = process.stdin.isTTY === true && process.stderr.isTTY === true;
  return {
    out: (text) => write(process.stdout, text),
    err: (text) => write(process.stderr, text),
    readStdin,
    ...(isInteractive ? { ask, askSecret } : {}),
    env: process.env,
    isTerminal: process.stdout.isTTY === true,
    columns: process.stdout.columns ?? 80,
    signal: stopping.signal,
  };
}

/** No more than shows that it is too long: what comes in may have no end. */
async function readStdin(): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of Bun.stdin.stream()) {
    chunks.push(chunk);
    length += chunk.byteLength;
    if (length > 2 * 1024 * 1024) break;
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

const ask = async (question: string): Promise<string | undefined> => askOn(question, process.stderr);

/** A terminal of readline's own echoes nothing but what it writes, and that goes nowhere. */
async function askSecret(question: string): Promise<string | undefined> {
  const { Writable } = await import("node:stream");
  process.stderr.write(question);
  const answer = await askOn("", new Writable({ write: (_chunk, _encoding, done) => done() }), true);
  process.stderr.write("\n");
  return answer;
}

async function askOn(
  question: string,
  output: NodeJS.WritableStream,
  isTerminal = process.env["TERM"] !== "dumb",
): Promise<string | undefined> {
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output, terminal: isTerminal });
  const over = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
  try {
    return await Promise.race([lines.question(question), over]);
  } finally {
    lines.close();
  }
}

/**
 * Pipes are written asynchronously; leaving before a slow reader has all of it cuts the output. Only the callback of a
 * write itself tells: that of an empty one behind it is called at once.
 */
const unwritten = new Set<Promise<void>>();
let writeFailure: NodeJS.ErrnoException | undefined;

function write(stream: NodeJS.WriteStream, text: string): void {
  if (text === "") return;
  const written = new Promise<void>((resolve) => {
    stream.write(text, (error) => {
      if (error) onWriteError(error);
      resolve();
    });
  }).finally(() => unwritten.delete(written));
  unwritten.add(written);
}

function onWriteError(error: NodeJS.ErrnoException): void {
  // `cctl logs | head`: a reader that went away is no failure of ours.
  if (error.code === "EPIPE") process.exit(0);
  writeFailure ??= error;
}

const io = processIo();
let status: number;
try {
  status = await main(io);
} catch (error) {
  // Expected failures are values: whatever arrives here is a bug, and says where.
  io.err(`corium: internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  status = 70;
}
while (unwritten.size > 0) await Promise.all(unwritten);
if (writeFailure !== undefined) {
  process.stderr.write(`corium: the output could not be written: ${writeFailure.code ?? writeFailure.message}\n`);
  if (status === 0) status = 1;
}
process.exit(status);
