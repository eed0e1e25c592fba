/** Plans and their state as text. Everything in them came from a node. */
import type { ApplyAnswer, ConfigStatusAnswer, FieldChange } from "../../api/contract.ts";
import { formatFinding } from "../../kit/finding.ts";
import { type Paint, printable } from "../printable.ts";

export function planText(answer: ApplyAnswer, label: string, paint: Paint): string {
  if (answer.status === "unchanged") return `${label}: unchanged, nothing to do\n`;
  const lines = [`plan for ${label}`];
  for (const field of answer.fields) lines.push(fieldLine(field, paint));
  for (const file of answer.files) {
    lines.push("", `  ${printable(file.path)}`);
    lines.push(...diffLines(file.diff, paint));
  }
  lines.push("");
  const restarts = answer.restarted.map((unit) => printable(unit)).join(", ");
  lines.push(restarts === "" ? "  restarts nothing" : paint(`  restarts ${restarts}`, "yellow"));
  for (const consequence of answer.consequences) lines.push(`  ${printable(consequence)}`);
  for (const warning of answer.warnings) {
    lines.push(
      ...formatFinding(warning)
        .split("\n")
        .map((line) => `  ${printable(line)}`),
    );
  }
  return `${lines.join("\n")}\n`;
}

function fieldLine({ path, class: kind, old, new: wanted }: FieldChange, paint: Paint): string {
  const shown = printable(path);
  if (old === undefined) return paint(`  + ${shown}`, "green") + ` (${printable(kind)})${value(wanted)}`;
  if (wanted === undefined) return paint(`  - ${shown}`, "red") + ` (${printable(kind)})${value(old)}`;
  return paint(`  ~ ${shown}`, "yellow") + ` (${printable(kind)})${value(old)} →${value(wanted)}`;
}

/** Large values are in the files' diffs, and certificates nobody reads; here a scalar says enough. */
function value(of: unknown): string {
  if (of === undefined || typeof of === "object" || (typeof of === "string" && of.includes("\n"))) return "";
  return ` ${printable(String(JSON.stringify(of)))}`;
}

const diffLines = (diff: string, paint: Paint): readonly string[] =>
  diff.split("\n").flatMap((line) => (line === "" ? [] : [`    ${diffLine(line, paint)}`]));

function diffLine(line: string, paint: Paint): string {
  const text = printable(line);
  if (line.startsWith("+")) return paint(text, "green");
  if (line.startsWith("-")) return paint(text, "red");
  return line.startsWith("@@") ? paint(text, "dim") : text;
}

export function configStatusText(answer: ConfigStatusAnswer, paint: Paint): string {
  const lines: string[] = [answer.state];
  for (const { code, message, class: effect, diff = "" } of answer.reasons) {
    lines.push(`  ${printable(code)}${effect === undefined ? "" : ` (${printable(effect)})`}: ${printable(message)}`);
    lines.push(...diffLines(diff, paint));
  }
  return `${lines.join("\n")}\n`;
}
