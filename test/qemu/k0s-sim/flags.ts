/** Flags as spf13/pflag reads them, with its error texts. */
import { SimError } from "./stand-in.ts";

export interface FlagSpec {
  readonly name: string;
  readonly short?: string;
  readonly type: "string" | "bool" | "list" | "int" | "duration";
  readonly fallback?: string;
  readonly help: string;
}

export interface Parsed {
  readonly positional: readonly string[];
  /** Only flags that were given, each value as pflag prints it. */
  readonly given: ReadonlyMap<string, string>;
  text(name: string): string;
  isSet(name: string): boolean;
  list(name: string): readonly string[];
}

const DURATION = /^[-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+)$/;
const TRUE = new Set(["1", "t", "T", "TRUE", "true", "True"]);
const FALSE = new Set(["0", "f", "F", "FALSE", "false", "False"]);

function normalize(spec: FlagSpec, label: string, value: string): string {
  const invalid = (reason: string): SimError =>
    new SimError(`invalid argument ${JSON.stringify(value)} for "${label}" flag: ${reason}`);
  switch (spec.type) {
    case "string":
    case "list":
      return value;
    case "bool":
      if (TRUE.has(value)) return "true";
      if (FALSE.has(value)) return "false";
      throw invalid(`strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`);
    case "int":
      if (/^[-+]?\d+$/.test(value)) return value;
      throw invalid(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`);
    case "duration":
      if (DURATION.test(value)) return value;
      throw invalid(`time: invalid duration ${JSON.stringify(value)}`);
  }
}

export function parseFlags(specs: readonly FlagSpec[], argv: readonly string[]): Parsed {
  const byName = new Map(specs.map((spec) => [spec.name, spec]));
  const byShort = new Map(specs.flatMap((spec) => (spec.short === undefined ? [] : [[spec.short, spec] as const])));
  const given = new Map<string, string>();
  const positional: string[] = [];
  const set = (spec: FlagSpec, label: string, value: string): void => {
    const next = normalize(spec, label, value);
    const before = given.get(spec.name);
    given.set(spec.name, spec.type === "list" && before !== undefined ? `${before},${next}` : next);
  };

  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? "";
    if (word === "--") {
      positional.push(...argv.slice(at + 1));
      break;
    }
    if (word.startsWith("--")) {
      const equals = word.indexOf("=");
      const name = word.slice(2, equals < 0 ? undefined : equals);
      const spec = byName.get(name);
      if (spec === undefined) throw new SimError(`unknown flag: --${name}`);
      const label = spec.short === undefined ? `--${name}` : `-${spec.short}, --${name}`;
      if (equals >= 0) set(spec, label, word.slice(equals + 1));
      else if (spec.type === "bool") set(spec, label, "true");
      else if (at + 1 < argv.length) set(spec, label, argv[(at += 1)] ?? "");
      else throw new SimError(`flag needs an argument: --${name}`);
    } else if (word.startsWith("-") && word.length > 1) {
      const short = word.slice(1, 2);
      const spec = byShort.get(short);
      if (spec === undefined) throw new SimError(`unknown shorthand flag: '${short}' in ${word}`);
      const label = `-${short}, --${spec.name}`;
      const rest = word.slice(2).replace(/^=/, "");
      if (spec.type === "bool") set(spec, label, rest === "" ? "true" : rest);
      else if (rest !== "") set(spec, label, rest);
      else if (at + 1 < argv.length) set(spec, label, argv[(at += 1)] ?? "");
      else throw new SimError(`flag needs an argument: '${short}' in ${word}`);
    } else positional.push(word);
  }
  const text = (name: string): string => given.get(name) ?? byName.get(name)?.fallback ?? "";
  return {
    positional,
    given,
    text,
    isSet: (name) => text(name) === "true",
    list: (name) =>
      text(name)
        .split(",")
        .filter((part) => part !== ""),
  };
}

export const helpText = (usage: string, specs: readonly FlagSpec[]): string =>
  [
    "Usage:",
    `  ${usage}`,
    "",
    "Flags:",
    ...specs.map(
      (spec) => `  ${spec.short === undefined ? "    " : `-${spec.short}, `}--${spec.name.padEnd(36)} ${spec.help}`,
    ),
    "",
  ].join("\n");
