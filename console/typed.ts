/** One line that came from a terminal, read with suspicion: serial ports bring noise, pastes and escape sequences. */

export type Typed =
  | { readonly kind: "text"; readonly text: string }
  /** Escape alone, or several. */
  | { readonly kind: "cancel" }
  | { readonly kind: "empty" }
  /** Nobody typed that: control characters (arrow keys, answers of a terminal), not ASCII, too long. */
  | { readonly kind: "junk" };

/** No name that is asked for is longer. */
const LONGEST = 128;

export function readTyped(line: string): Typed {
  const text = line.replace(/[\r\n]+$/, "").trim();
  // trim() keeps Escape: it is no white space.
  if (text.startsWith("\u001b") && [...text].every((char) => char === "\u001b")) return { kind: "cancel" };
  if (text === "") return { kind: "empty" };
  if (text.length > LONGEST || !/^[ -~]+$/.test(text)) return { kind: "junk" };
  return { kind: "text", text };
}
