/** The operator's client. Runs on the operator's machine, never on a node: it holds the CA key. */
import { type AppError, appError, fail, formatError } from "../kit/app-error.ts";
import type { Command, CommandIo } from "../kit/command.ts";
import type { Clock, Files, Random } from "../kit/ports.ts";
import { type Result, ok } from "../kit/result.ts";
import { version } from "../kit/version.ts";
import { realClock } from "../host/clock.ts";
import { realFiles } from "../host/files.ts";
import { realRandom } from "../host/random.ts";
import { accessCommands } from "./access.ts";
import { actingCommands } from "./acting.ts";
import { caCommand } from "./ca.ts";
import { confirmCommands } from "./confirm.ts";
import { applyCommands } from "./apply.ts";
import { type Arguments, parseArguments } from "./arguments.ts";
import { baselineCommand } from "./baseline.ts";
import { clientFor } from "./client.ts";
import { type CctlCommand, type Output, exitStatus, globalFlags, operandRange, statusOf } from "./context.ts";
import { enrollCommand } from "./enroll.ts";
import { handoverCommand } from "./handover.ts";
import { commandHelp, completion, overview } from "./help.ts";
import { luksCommands } from "./luks.ts";
import { pkiCommands } from "./pki.ts";
import { coloured, plain, printable } from "./printable.ts";
import { readingCommands } from "./reading.ts";
import { resetCommand } from "./reset.ts";
import { skewOf } from "./skew.ts";
import { openStore } from "./store.ts";
import { trustCommand } from "./trust.ts";

/** The node's own code, under the same names; offline. */
const offline: Readonly<Record<string, () => Promise<Command>>> = {
  validate: async () => (await import("../supervisor/offline.main.ts")).validateCommand,
  render: async () => (await import("../supervisor/render.main.ts")).renderCommand,
  schema: async () => (await import("../supervisor/offline.main.ts")).schemaCommand,
  explain: async () => (await import("../supervisor/offline.main.ts")).explainCommand,
};

const offlineSummaries: Readonly<Record<keyof typeof offline, string>> = {
  "validate FILE…": "check documents offline, with the node's own code",
  "render FILE": "print every file that a document makes of a node, offline",
  schema: "the JSON Schema of the document, for editors",
  "explain FIELD": "what a field of the document is",
};

const versionCommand: CctlCommand = {
  words: ["version"],
  operands: "[ADDR]",
  summary: "of this program, and of a node with what that means",
  flags: [],
  async run(context, given) {
    const node = given.positionals[0];
    let theirs: string | undefined;
    if (node !== undefined) {
      const client = await clientFor(context, node);
      if (!client.ok) return client;
      const health = await client.value.get("/v1/health");
      if (!health.ok) return health;
      theirs = health.value.headers.get("corium-version");
    }
    const skew = skewOf(version, theirs);
    if (context.output === "json") context.io.out(`${JSON.stringify({ version, node: theirs })}\n`);
    else context.io.out(`cctl ${version}\n${theirs === undefined ? "" : `node ${printable(theirs)}\n`}`);
    return skew === undefined ? ok(exitStatus.done) : { ok: false, error: skew };
  },
};

const completionCommand: CctlCommand = {
  words: ["completion"],
  operands: "SHELL",
  summary: "for bash, zsh or fish: load its output",
  flags: [],
  async run(context, given) {
    const text = completion(given.positionals[0] ?? "", commands, Object.keys(offline));
    if (text === undefined) return fail("usage", "completions are there for bash, zsh and fish");
    context.io.out(text);
    return ok(exitStatus.done);
  },
};

export const commands: readonly CctlCommand[] = [
  ...pkiCommands,
  enrollCommand,
  trustCommand,
  caCommand,
  ...applyCommands,
  baselineCommand,
  ...readingCommands,
  ...confirmCommands,
  ...actingCommands,
  handoverCommand,
  ...accessCommands,
  resetCommand,
  ...luksCommands,
  versionCommand,
  completionCommand,
];

const allFlags = [...globalFlags, ...commands.flatMap(({ flags }) => flags)].filter(
  ({ name }, at, all) => all.findIndex((other) => other.name === name) === at,
);

export interface Machine {
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
}

export const cctl: Command = (argv, io) =>
  run(argv, io, { files: realFiles({ takesPipes: true }), clock: realClock, random: realRandom });

/** The whole client on the given machine; stories run it on a machine in memory. */
export async function run(argv: readonly string[], io: CommandIo, machine: Machine): Promise<number> {
  const word = argv.findIndex((text) => Object.hasOwn(offline, text));
  if (word !== -1 && argv.slice(0, word).every((text) => text.startsWith("-") || isValue(argv, text))) {
    const load = offline[argv[word] ?? ""];
    if (load !== undefined) return (await load())(argv.toSpliced(word, 1), { ...io, program: "cctl" });
  }
  const read = interpret(argv);
  if (!read.ok) return complain(io, read.error);
  if ("help" in read.value) {
    const { help, isAsked } = read.value;
    (isAsked ? io.out : io.err)(help);
    return isAsked ? exitStatus.done : exitStatus.usage;
  }
  const { command, given, output } = read.value;
  const { flags } = given;
  const home = io.env["HOME"];
  const dir = flags.get("dir") ?? io.env["CORIUM_DIR"] ?? (home === undefined ? undefined : `${home}/.corium`);
  if (dir === undefined || dir === "") return complain(io, appError("usage", "there is no $HOME: give --dir FOLDER"));
  const hasColour = io.isTerminal && (io.env["NO_COLOR"] ?? "") === "";
  const result = await command.run(
    {
      io,
      ...machine,
      store: openStore(machine.files, dir),
      output,
      isAgreed: flags.has("yes"),
      paint: hasColour ? coloured : plain,
    },
    given,
  );
  return result.ok ? result.value : complain(io, result.error);
}

const isValue = (argv: readonly string[], text: string): boolean => {
  const before = argv[argv.indexOf(text) - 1];
  return before === "--output" || before === "-o" || before === "--dir";
};

type Meaning =
  | { readonly help: string; readonly isAsked: boolean }
  | { readonly command: CctlCommand; readonly given: Arguments; readonly output: Output };

/** What a command line asks for; nothing is done yet. */
export function interpret(argv: readonly string[]): Result<Meaning, AppError> {
  const parsed = parseArguments(argv, allFlags);
  if (!parsed.ok) return fail("usage", parsed.error, { hint: "cctl --help" });
  const { positionals, flags } = parsed.value;
  const command = commands.find(({ words }) => words.every((word, at) => positionals[at] === word));
  if (command === undefined) {
    const isAsked = flags.has("help") || positionals[0] === "help";
    const others = Object.entries(offlineSummaries);
    // `disk` alone is none, and is half of one.
    const longer = commands.filter(({ words }) => words.length > 1 && words[0] === positionals[0]);
    if (isAsked && longer.length > 0) return ok({ help: overview(longer, []), isAsked });
    if (positionals.length === 1 && longer.length > 0)
      return fail(
        "usage",
        `${positionals[0]} needs ${longer.map(({ words }) => words.slice(1).join(" ")).join(" or ")}`,
        {
          hint: `cctl ${positionals[0]} --help`,
        },
      );
    if (isAsked || positionals.length === 0) return ok({ help: overview(commands, others), isAsked });
    return fail("usage", `no command '${positionals.join(" ")}'`, { hint: "cctl --help" });
  }
  if (flags.has("help")) return ok({ help: commandHelp(command), isAsked: true });
  const given = { positionals: positionals.slice(command.words.length), flags };
  const output = checkUsage(command, given);
  return output.ok ? ok({ command, given, output: output.value }) : output;
}

function checkUsage(command: CctlCommand, given: Arguments): Result<Output, AppError> {
  const name = command.words.join(" ");
  const hint = `cctl ${name} --help`;
  const { min, max } = operandRange(command.operands);
  const count = given.positionals.length;
  if (count < min) return fail("usage", `${name} needs ${command.operands}`, { hint });
  if (count > max) return fail("usage", `${name} takes ${command.operands || "no operands"}`, { hint });
  const known = [...globalFlags, ...command.flags].map((flag) => flag.name);
  for (const flag of given.flags.keys()) {
    if (!known.includes(flag)) return fail("usage", `${name} has no flag --${flag}`, { hint });
  }
  const output = given.flags.get("output") ?? "text";
  if (output === "text" || output === "json" || output === "yaml") return ok(output);
  return fail("usage", `'${output}' is no output: wanted text, json or yaml`);
}

/** What a node said may be in it, so it is made printable here, once for all. */
function complain(io: CommandIo, error: AppError): number {
  io.err(`cctl: ${printable(formatError(error), "line-feeds")}\n`);
  return statusOf(error);
}
