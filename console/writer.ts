/** From one state of the screen to the next with as few bytes as possible: a 9600 baud line has 960 a second. */

/** For terminals without cursor control: only the lines that are new, in the frame's order; `all` repeats everything. */
export function appendChanges(before: readonly string[], after: readonly string[]): string {
  const known = new Set(before);
  const fresh = after.filter((line) => line !== "" && !known.has(line));
  return fresh.map((line) => `${line}\r\n`).join("");
}

export const appendAll = (lines: readonly string[]): string =>
  `\r\n${lines
    .filter((line) => line !== "")
    .map((line) => `${line}\r\n`)
    .join("")}`;

/** Clear, home, and every line; used at first and after something else wrote on the screen. */
export const paintAll = (lines: readonly string[]): string => `\x1b[2J\x1b[H${lines.join("\r\n")}`;

/** Rows that differ are written over and cleared to their end (ECMA-48 CUP and EL, as in a VT100). */
export function paintChanges(before: readonly string[], after: readonly string[]): string {
  if (before.length !== after.length) return paintAll(after);
  return after
    .map((line, row) => (line === before[row] ? "" : `\x1b[${row + 1};1H${line}${line.length < 80 ? "\x1b[K" : ""}`))
    .join("");
}
