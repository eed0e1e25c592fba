import { shorten } from "../path.ts";
import { oneOf, problem, quote, type Problem } from "./codes.ts";

/** What can be wrong with the text and with the kinds of values. Parser messages are never shown: they quote secrets. */
export const decodeSays = {
  /** The error code of the system: ENOENT, EISDIR … */
  unreadable: (code: string): Problem => {
    if (code === "ENOENT") return problem("unreadable", "there is no such file", "check its path");
    if (code === "EISDIR") return problem("unreadable", "it cannot be read: it is a folder", "name a file in it");
    return problem("unreadable", `it cannot be read (${code})`, "check what it is and its permissions");
  },
  tooLarge: (): Problem =>
    problem("not-yaml", "the document has more than 1 MiB", "put large manifests elsewhere, e.g. in a chart"),
  halfCharacter: (code: "not-yaml" | "value" = "not-yaml"): Problem =>
    problem(
      code,
      "half of a character stands here (a lone surrogate)",
      "write the whole character: no file can keep this",
    ),
  nul: (): Problem => problem("not-yaml", "a NUL byte stands in the text", "take it out: save the file as plain text"),
  notUtf8: (): Problem => problem("not-yaml", "the document is not UTF-8 text", "save it as UTF-8; UTF-16 is not read"),
  tab: (): Problem => problem("not-yaml", "a tab is used as indentation", "indent with spaces"),
  directive: (): Problem =>
    problem(
      "not-yaml",
      "YAML directives (%YAML, %TAG) are not accepted",
      "take the line out; YAML 1.2 is what is read",
    ),
  secondDocument: (): Problem =>
    problem(
      "not-yaml",
      "a second YAML document follows",
      "one file describes one node: take out the --- and what follows",
    ),
  aliasWithoutAnchor: (): Problem =>
    problem("not-yaml", "an alias (*name) refers to an anchor that is not there", "quote text that starts with *"),
  aliasBomb: (): Problem => problem("not-yaml", "aliases expand to more than 10,000 values", "write the values out"),
  tooDeep: (code: "not-yaml" | "value" = "not-yaml"): Problem =>
    problem(code, "values are nested more than 100 deep", "take levels out"),
  syntax: (code: string): Problem => {
    const [message, hint] = SYNTAX[code] ?? ["this is not valid YAML"];
    return problem("not-yaml", message, hint);
  },
  moreProblems: (count: number): Problem =>
    problem("more-problems", `and ${count} more, which are not shown`, "mend the first ones, and look again"),
  emptyDocument: (): Problem =>
    problem("no-configuration", "no corium configuration in this document: it is empty", "the least is: role: single"),
  notAMap: (kind: string): Problem =>
    problem(
      "no-configuration",
      `no corium configuration in this document: it is ${kind}, not a map`,
      "the least is: role: single",
    ),
  noConfiguration: (key: string | undefined, known: string | undefined): Problem =>
    problem(
      "no-configuration",
      "no corium configuration in this document",
      known === undefined
        ? "put it under a top-level corium: key, or write its fields (role, cluster, …) at the top level"
        : `did you mean ${quote(known)} instead of ${quote(shorten(key ?? ""))}?`,
    ),
  coriumNotAMap: (kind: string): Problem =>
    problem("type", `corium: must be a map, got ${kind}`, "indent its fields below it, or write corium: {}"),
  coriumTwice: (line: number): Problem =>
    problem("duplicate-key", `corium: is given twice, first on line ${line}`, "merge the two blocks"),
  foreignKeys: (keys: readonly string[]): Problem => {
    const shown = keys.slice(0, 8).map(shorten).join(", ");
    const more = keys.length > 8 ? ` and ${keys.length - 8} more` : "";
    return problem(
      "foreign-keys",
      `beside corium: nobody carries out ${shown}${more}: this image runs no cloud-init`,
      "what the node is to do belongs below corium:, its host name as node.name",
    );
  },
  duplicateKey: (line: number): Problem =>
    problem("duplicate-key", `it is given twice, first on line ${line}`, "keep one of them"),
  nonStringKey: (): Problem => problem("type", "a key must be text", "quote it"),
  tag: (): Problem => problem("type", "a tag (!name) is not known", "quote text that starts with !"),
  /** Without the key where it may be a secret. */
  unknownKey: (
    key: string | undefined,
    near: string | undefined,
    known: readonly string[],
    owner: string | undefined,
  ): Problem => {
    const hint =
      key === "<<"
        ? "merge keys are YAML 1.1: write the fields out"
        : near !== undefined
          ? `did you mean ${quote(near)}?`
          : owner !== undefined
            ? owner
            : `known here: ${known.join(", ")}`;
    const shown = key === undefined ? "unknown key, which is not shown" : `unknown key ${quote(shorten(key))}`;
    return problem("unknown-key", shown, hint);
  },
  missing: (what: string): Problem => problem("missing", `${what} is required`, `give it: ${what}: …`),
  wrongType: (wanted: string, got: string, hint?: string): Problem =>
    problem("type", `wanted ${wanted}, got ${got}`, hint),
  notOneOf: (values: readonly (string | number)[], got: string, near: string | undefined): Problem =>
    problem("value", `wanted ${oneOf(values)}, got ${got}`, near === undefined ? undefined : `did you mean ${near}?`),
  numberForm: (source: string, value: number): Problem =>
    problem("number-form", `${quote(source)} is read as ${value}`, `write ${value}`),
};

const SYNTAX: Readonly<Record<string, readonly [message: string, hint?: string]>> = {
  BAD_ALIAS: ["an alias (*name) is not well formed", "quote text that starts with *"],
  BAD_COLLECTION_TYPE: ["a tag does not fit the value"],
  BAD_DQ_ESCAPE: ["an unknown escape in a double-quoted text", "use single quotes, or write \\\\ for a backslash"],
  BAD_INDENT: ["the indentation does not fit the lines above", "keys of one map stand in the same column"],
  BAD_PROP_ORDER: ["anchors and tags stand before the value"],
  BAD_SCALAR_START: ["text cannot start with this character", "quote it"],
  BLOCK_AS_IMPLICIT_KEY: [
    "a value starts where a key was expected",
    "check indentation, or quote text that holds a colon",
  ],
  BLOCK_IN_FLOW: ["a block value stands inside brackets"],
  COMMENT_SPACE: ["a comment needs a space before its #"],
  OPEN_BRACKET: [
    "a bracket is not closed, or a line in it is not indented",
    "close it with ] or }, and indent the lines in it more than the key it belongs to",
  ],
  IMPOSSIBLE: ["this is not valid YAML"],
  KEY_OVER_1024_CHARS: ["a key is longer than 1024 characters"],
  MISSING_CHAR: [
    "a quote, bracket or colon is missing",
    "check that quotes and brackets are closed and keys end in a colon",
  ],
  MULTILINE_IMPLICIT_KEY: ["a key goes over several lines", "check quotes and indentation"],
  MULTIPLE_ANCHORS: ["a value has two anchors"],
  MULTIPLE_DOCS: ["a second YAML document follows"],
  MULTIPLE_TAGS: ["a value has two tags"],
  TAG_RESOLVE_FAILED: ["a tag is not known", "quote text that starts with !"],
  UNEXPECTED_TOKEN: ["something stands here that YAML does not expect", "check indentation and quotes"],
  BAD_DIRECTIVE: ["YAML directives are not accepted", "take the line out"],
};
