/** How the offline commands read what follows their name, as `corium` and as `cctl` are called. */
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import type { CommandIo } from "../kit/command.ts";

export interface OfflineSpec {
  readonly name: "validate" | "render" | "diff" | "schema" | "explain";
  /** What follows the name: `FILE… | -`. */
  readonly operands: string;
  readonly summary: string;
  /** Beside `--output`. */
  readonly options?: readonly OfflineOption[];
  /** Positional arguments: least and most. */
  readonly count: readonly [number, number];
}

export interface OfflineOption {
  readonly name: string;
  /** Absent: a flag. */
  readonly value?: string;
  readonly help: string;
  /** What is wrong with the value given: `is no IP address`. */
  readonly problem?: (value: string) => string | undefined;
}

export type OfflineOutput = "text" | "json" | "yaml";

export interface OfflineArguments {
  readonly positionals: readonly string[];
  readonly output: OfflineOutput;
  readonly values: Readonly<Record<string, string | undefined>>;
  readonly flags: ReadonlySet<string>;
}

const OUTPUTS: readonly string[] = ["text", "json", "yaml"];

/** A number is the exit status: what there was to say is said. */
export function readArguments(argv: readonly string[], io: CommandIo, spec: OfflineSpec): OfflineArguments | number {
  const program = io.program ?? "corium";
  const wrong = (what: string): number => {
    io.err(`${program}: ${what}\n${usageOf(spec, program)}`);
    return 2;
  };
  const own = spec.options ?? [];
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        output: { type: "string", short: "o", default: "text" },
        help: { type: "boolean", short: "h" },
        // The client's, which mean nothing here: one may have them in an alias.
        ...(program === "cctl" ? { dir: { type: "string" }, yes: { type: "boolean", short: "y" } } : {}),
        ...Object.fromEntries(
          own.map(({ name, value }) => [name, { type: value === undefined ? "boolean" : "string" }]),
        ),
      },
    });
    if (values["help"] === true) {
      io.out(`${usageOf(spec, program)}\n${spec.summary}\n\n${optionLines(own)}`);
      return 0;
    }
    const { output } = values;
    if (typeof output !== "string" || !OUTPUTS.includes(output))
      return wrong(`--output is text, json or yaml, got "${String(output)}"`);
    for (const { name, problem } of own) {
      const value = (values as Readonly<Record<string, unknown>>)[name];
      const found = typeof value === "string" ? problem?.(value) : undefined;
      if (found !== undefined) return wrong(`--${name}: ${JSON.stringify(value)} ${found}`);
    }
    const [least, most] = spec.count;
    if (positionals.length < least) return wrong(`${spec.name} needs ${spec.operands}`);
    if (positionals.length > most)
      return wrong(`${spec.name} takes ${spec.operands === "" ? "nothing" : spec.operands}`);
    if (positionals.includes("")) return wrong("a file without a name");
    if (positionals.filter((file) => file === "-").length > 1) return wrong("standard input can be read only once");
    const texts = Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === "string");
    return {
      positionals,
      output: output as OfflineOutput,
      values: Object.fromEntries(texts),
      flags: new Set(Object.keys(values).filter((name) => values[name as keyof typeof values] === true)),
    };
  } catch (error) {
    // parseArgs says what it did not know, and then how dashes are quoted.
    const said = error instanceof Error ? (error.message.split(/[.\n]/)[0] ?? "") : "wrong arguments";
    return wrong(said.charAt(0).toLowerCase() + said.slice(1));
  }
}

export function showData(value: unknown, output: "json" | "yaml"): string {
  return output === "json" ? `${JSON.stringify(value, null, 2)}\n` : stringify(value, { lineWidth: 0 });
}

const usageOf = ({ name, operands, options = [] }: OfflineSpec, program: string): string =>
  `usage: ${[program, name, ...["output text|json|yaml", ...options.map(shownOption)].map((each) => `[--${each}]`), operands].join(" ").trimEnd()}\n`;

const shownOption = ({ name, value }: OfflineOption): string => (value === undefined ? name : `${name} ${value}`);

function optionLines(own: readonly OfflineOption[]): string {
  const all = [...own, { name: "output", value: "text|json|yaml", help: "how the answer is printed" }];
  const width = Math.max(...all.map((each) => shownOption(each).length));
  return all.map((each) => `  --${shownOption(each).padEnd(width)}  ${each.help}\n`).join("");
}
