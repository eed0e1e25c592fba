/** Secrets of the document itself, pasted into another field too: no message shows them, whatever it quotes. */
import { redactPlain } from "./redact.ts";

/** As long as a message may quote by chance. */
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

/** Messages quote as JSON does. */
export function withoutKnown(text: string, secrets: readonly string[]): string {
  return secrets.reduce(
    (shown, secret) => shown.replaceAll(secret, "…").replaceAll(JSON.stringify(secret).slice(1, -1), "…"),
    text,
  );
}
