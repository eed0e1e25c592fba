/** What an editor, a bad cable or a merge does to a text: bytes and lines gone, doubled, moved, joined. */
import { pick, type Draw } from "./secrets.ts";

const MARKUP = [":", " ", "- ", "\n", "\t", "{", "}", "[", "]", "*", "&", "!", "'", '"', "#", "null", "%", "@", "|", ">", "? ", "---\n", "<<: ", ",", "\\", "~", "\u0000", "\u001b", "\ufeff", "\u2028", "&a ", "*a"]; // prettier-ignore

type Mutation = (draw: Draw, text: string) => string;

const cut: Mutation = (draw, text) => {
  const at = draw(text.length);
  return text.slice(0, at) + text.slice(at + 1 + draw(8));
};
const insert: Mutation = (draw, text) => {
  const at = draw(text.length);
  return text.slice(0, at) + pick(draw, MARKUP).repeat(1 + draw(1) * draw(40)) + text.slice(at);
};
const replace: Mutation = (draw, text) => {
  const at = draw(text.length);
  return text.slice(0, at) + pick(draw, MARKUP) + text.slice(at + 1);
};
const repeat: Mutation = (draw, text) => {
  const at = draw(text.length);
  const part = text.slice(at, at + 1 + draw(20));
  return text.slice(0, at) + part.repeat(1 + draw(60)) + text.slice(at);
};
const truncate: Mutation = (draw, text) => text.slice(0, draw(text.length));

const onLines =
  (change: (draw: Draw, lines: string[], at: number) => string[]): Mutation =>
  (draw, text) => {
    const lines = text.split("\n");
    return change(draw, lines, draw(lines.length - 1)).join("\n");
  };
const lineGone = onLines((_, lines, at) => lines.toSpliced(at, 1));
const lineTwice = onLines((draw, lines, at) => lines.toSpliced(draw(lines.length), 0, lines[at] ?? ""));
const lineMoved = onLines((draw, lines, at) =>
  lines.toSpliced(at, 1).toSpliced(draw(lines.length - 1), 0, lines[at] ?? ""),
);
const lineIndented = onLines((draw, lines, at) => lines.with(at, `${" ".repeat(1 + draw(3))}${lines[at] ?? ""}`));
const lineOutdented = onLines((_, lines, at) => lines.with(at, (lines[at] ?? "").replace(/^ {1,4}/, "")));
const linesJoined = onLines((_, lines, at) => lines.toSpliced(at, 2, `${lines[at] ?? ""}${lines[at + 1] ?? ""}`));

const MUTATIONS: readonly Mutation[] = [
  cut, cut, insert, insert, replace, repeat, truncate, lineGone, lineTwice, lineMoved, lineIndented, lineOutdented, linesJoined,
]; // prettier-ignore

/** One to four of them; at times bits flip as well, so that the result may be no UTF-8. */
export function mutate(draw: Draw, text: string): string | Uint8Array {
  let mutated = text;
  for (let left = 1 + draw(3); left > 0; left--) mutated = pick(draw, MUTATIONS)(draw, mutated);
  if (draw(7) > 0 || mutated === "") return mutated;
  const bytes = new TextEncoder().encode(mutated);
  for (let left = 1 + draw(3); left > 0; left--) {
    const at = draw(bytes.length - 1);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << draw(7));
  }
  return bytes;
}
