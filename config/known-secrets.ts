/** Secrets of the document itself, pasted into another field too: no message shows them, whatever it quotes. */
import { redactPlain } from "./redact.ts";

/** Shorter ones are in other words by chance. */
const SHORTEST = 6;

/** The values of its secret fields, the longest first; the document may be wrong. */
export function secretTexts(root: unknown): readonly string[] {
  const found = new Set<string>();
  redactPlain(root, {
    mark: (_, value) => {
      if (typeof value === "string" && value.trim().length >= SHORTEST) found.add(value.trim());
      return undefined;
    },
  });
  return [...found].toSorted((a, b) => b.length - a.length);
}

/** What a message quotes, without any part of a secret; its own words stay. */
export function withoutKnown(text: string, secrets: readonly string[]): string {
  if (secrets.length === 0) return text;
  return text.replace(/"(?:[^"\\]|\\.)*"/g, (quoted) => {
    const shown = unquote(quoted);
    return shown === undefined ? quoted : JSON.stringify(secrets.reduce(withoutParts, shown));
  });
}

function unquote(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Each run that both have in common is left out. */
function withoutParts(shown: string, secret: string): string {
  let rest = "";
  for (let at = 0; at < shown.length;) {
    const length = commonRun(shown, at, secret);
    const next = length === 0 ? (shown[at] ?? "") : "…";
    if (next !== "…" || !rest.endsWith("…")) rest += next;
    at += Math.max(1, length);
  }
  return rest;
}

function commonRun(shown: string, at: number, secret: string): number {
  let end = at + SHORTEST;
  if (end > shown.length || !secret.includes(shown.slice(at, end))) return 0;
  while (end < shown.length && secret.includes(shown.slice(at, end + 1))) end += 1;
  return end - at;
}
