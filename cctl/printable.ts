/** What a node sends is shown, never obeyed: a terminal acts on control characters, so they are made visible. */

/** Escapes C0, DEL, C1, and the characters that reorder or hide text. Line feeds and tabs stay when asked. */
export function printable(text: string, keep: "line-feeds" | "nothing" = "nothing"): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (character) => {
    if (keep === "line-feeds" && (character === "\n" || character === "\t")) return character;
    const code = character.charCodeAt(0);
    if (character === "\n") return "\\n";
    if (character === "\t") return "\\t";
    if (character === "\r") return "\\r";
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** JSON as it came, and of the same meaning: what a terminal would obey is written as the escapes that JSON has. */
export function jsonPrintable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  const obeyed = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
  return text.replace(obeyed, (character) =>
    // The one of them that JSON allows between its tokens.
    character === "\r" ? " " : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The same for a value that was parsed from JSON, keys included. */
export function printableValue(value: unknown): unknown {
  if (typeof value === "string") return printable(value, "line-feeds");
  if (Array.isArray(value)) return value.map(printableValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [printable(key), printableValue(inner)]));
}

export type Paint = (text: string, colour: "red" | "green" | "yellow" | "dim" | "bold") => string;

const codes = { red: 31, green: 32, yellow: 33, dim: 2, bold: 1 } as const;

export const plain: Paint = (text) => text;
export const coloured: Paint = (text, colour) => `\u001b[${codes[colour]}m${text}\u001b[0m`;

/** Columns as wide as their widest cell; the last one is not padded. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows.map((row) => row.map((cell) => printable(cell)))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => Bun.stringWidth(row[column] ?? ""))));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(cell))))
      .join("  ")
      .trimEnd();
  return cells.map((row) => `${line(row)}\n`).join("");
}

export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = count;
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ""}`;
}

export function duration(seconds: number): string {
  const parts = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  const [days = 0, hours = 0, minutes = 0] = parts;
  if (days > 0) return `${days}d${hours}h`;
  if (hours > 0) return `${hours}h${minutes}m`;
  return minutes > 0 ? `${minutes}m${Math.floor(seconds % 60)}s` : `${Math.floor(seconds)}s`;
}
