/** What `corium explain` prints: at most 80 columns, since it is read on serial consoles. Pure. */
import { stringify } from "yaml";
import type { FieldClass } from "../api/contract.ts";
import type { Explanation } from "../config/explain.ts";

const COLUMNS = 80;

/** What `cctl apply` does with a change of the field on a node in service. */
export const CLASS_MEANING: Readonly<Record<FieldClass, string>> = {
  safe: "a change is applied",
  host: "a change is applied; it touches this machine only",
  guarded: "a change is applied, and taken back unless it is confirmed in time",
  spent: "it was used at first boot; a change has no effect any more",
  immutable: "a change is refused; only a reset makes the node another one",
  "own-verb": "a change is refused; a command of its own does it",
};

export function explainText(field: Explanation, fieldClass: FieldClass | undefined): string {
  const rows: (readonly [string, string])[] = [["type", field.isRequired ? `${field.kind}, required` : field.kind]];
  if (field.default !== undefined) rows.push(["default", JSON.stringify(field.default)]);
  if (field.rule !== undefined) rows.push(["rule", field.rule]);
  if (field.isSecret) rows.push(["secret", "never shown: not in errors, logs, status or rendered files"]);
  if (fieldClass !== undefined) rows.push(["in service", `${fieldClass}: ${CLASS_MEANING[fieldClass]}`]);
  rows.push(["since", field.since]);
  const lines = [field.pattern, ...wrap(field.description, 2), "", ...table(rows)];
  lines.push("", ...examples(field));
  if (field.fields.length > 0) lines.push("", ...below(field));
  return `${lines.join("\n")}\n`;
}

function examples({ pattern, examples: values }: Explanation): readonly string[] {
  const name = pattern.split(".").at(-1)?.replace("[]", "") ?? pattern;
  const texts = values.map((value) => stringify({ [name]: value }, { lineWidth: 0 }).trimEnd());
  return [texts.length > 1 ? "  examples" : "  example", ...texts.flatMap((text) => text.split("\n")).map(indent)];
}

const indent = (line: string): string => `    ${line}`;

function below({ pattern, fields }: Explanation): readonly string[] {
  const isMarked = fields.some(({ isRequired }) => isRequired);
  const head = `  fields: corium explain ${pattern.replaceAll("[]", "")}.FIELD says more${isMarked ? "; * is required" : ""}`;
  const rows = fields.map(
    ({ name, isRequired, description }) => [isRequired ? `${name}*` : name, description] as const,
  );
  return [...wrap(head.trim(), 2), ...table(rows, 4)];
}

/** Two columns, the second wrapped below itself. */
function table(rows: readonly (readonly [string, string])[], margin = 2): readonly string[] {
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  return rows.flatMap(([name, text]) => {
    const [first = "", ...rest] = wrap(text, margin + width);
    return [`${" ".repeat(margin)}${name.padEnd(width)}${first.trimStart()}`.trimEnd(), ...rest];
  });
}

/** A word that is longer than the line stays whole: it may be pasted. */
function wrap(text: string, margin: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && margin + line.length + 1 + word.length > COLUMNS) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].map((part) => `${" ".repeat(margin)}${part}`);
}
