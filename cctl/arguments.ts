/** Command lines: flags before or after positionals, global flags anywhere, `--` ends them. */
import { type Result, err, ok } from "../kit/result.ts";

export interface FlagSpec {
  /** Without the dashes. */
  readonly name: string;
  readonly short?: string;
  /** What the value is called in the help; absent for a switch. */
  readonly value?: string;
  readonly help: string;
}

export interface Arguments {
  readonly positionals: readonly string[];
  /** A switch that was given has the value `""`. */
  readonly flags: ReadonlyMap<string, string>;
}

/** The reason alone; the caller adds how the command is used. */
export function parseArguments(argv: readonly string[], specs: readonly FlagSpec[]): Result<Arguments, string> {
  const positionals: string[] = [];
  const flags = new Map<string, string>();
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? "";
    if (word === "--") {
      positionals.push(...argv.slice(at + 1));
      break;
    }
    // A lone dash is a file name that means standard input.
    if (!word.startsWith("-") || word === "-") {
      positionals.push(word);
      continue;
    }
    const equals = word.startsWith("--") ? word.indexOf("=") : -1;
    const given = equals === -1 ? word : word.slice(0, equals);
    const spec = specs.find(
      ({ name, short }) => given === `--${name}` || (short !== undefined && given === `-${short}`),
    );
    if (spec === undefined) return err(`no such flag: ${given}`);
    if (flags.has(spec.name)) return err(`${given} is given twice`);
    if (spec.value === undefined) {
      if (equals !== -1) return err(`${given} takes no value`);
      flags.set(spec.name, "");
      continue;
    }
    const value = equals === -1 ? argv[(at += 1)] : word.slice(equals + 1);
    if (value === undefined || (equals === -1 && value.startsWith("--"))) return err(`${given} needs ${spec.value}`);
    flags.set(spec.name, value);
  }
  return ok({ positionals, flags });
}
