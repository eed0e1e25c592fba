/**
 * Every code a finding about a document can have. A contract (docs/reference/findings.md is made of it): a code
 * keeps its meaning for ever.
 */
export const CODES = {
  unreadable: { severity: "error", meaning: "the file is not there or cannot be read" },
  "not-yaml": { severity: "error", meaning: "the text cannot be read as one YAML 1.2 document" },
  "no-configuration": { severity: "error", meaning: "the text is YAML, but holds no corium configuration" },
  "duplicate-key": { severity: "error", meaning: "a key is given twice in one map" },
  "unknown-key": { severity: "error", meaning: "the schema has no such key here" },
  missing: { severity: "error", meaning: "something required is not given" },
  type: { severity: "error", meaning: "the value is of the wrong kind: text for a number, a list for a map" },
  value: { severity: "error", meaning: "the value is of the right kind, but not one that can be used" },
  conflict: { severity: "error", meaning: "two things in the document contradict each other" },
  reference: { severity: "error", meaning: "something is named that the document does not declare" },
  role: { severity: "error", meaning: "this role does not have this" },
  expired: { severity: "error", meaning: "a certificate is outside its time of validity, by the clock given" },
  compromised: { severity: "error", meaning: "a private key stands where only a certificate belongs" },
  "number-form": { severity: "warning", meaning: "a number is written in a form that YAML 1.1 reads otherwise" },
  "ambiguous-text": { severity: "warning", meaning: "text that other programs read as a boolean or a number" },
  "host-bits": { severity: "warning", meaning: "a range has host bits, which are masked" },
  repeated: { severity: "warning", meaning: "the same thing stands twice in one list" },
  "unstable-device": { severity: "warning", meaning: "a device name that may belong to another disk at the next boot" },
  "other-server": { severity: "warning", meaning: "the join token names another server than the endpoint" },
  "unlisted-version": { severity: "warning", meaning: "a Kubernetes version that this release does not list" },
  "foreign-keys": { severity: "warning", meaning: "keys of a cloud-config that nobody carries out on this image" },
  "read-as-comment": { severity: "warning", meaning: "text that the program it is for takes for a comment" },
  "not-yet": { severity: "warning", meaning: "something that this release does not do yet" },
  "more-problems": {
    severity: "warning",
    meaning: "so many findings more that are not shown; an error if one of them is",
  },
  "no-effect": { severity: "warning", meaning: "something that does nothing for this role" },
} as const satisfies Readonly<Record<string, { readonly severity: "error" | "warning"; readonly meaning: string }>>;

export type Code = keyof typeof CODES;

/** A finding that does not know its place yet. */
export interface Problem {
  readonly code: Code;
  readonly message: string;
  readonly hint?: string;
}

export const problem = (code: Code, message: string, hint?: string): Problem =>
  hint === undefined ? { code, message } : { code, message, hint };

/**
 * Text of the user in quotes, cut so that a pasted file does not fill the screen. A line that lost its place may carry
 * a secret with its name into another field: what follows such a name is left out, and so is every line but the first.
 * A token or key that was pasted into the wrong field has no name: no word that looks like base64 is shown.
 */
export function quote(text: string): string {
  // More is never shown, and the pattern tries every way to share out a long run of blanks.
  const start = text.slice(0, 200);
  const line = start.replace(/\n[^]*/, "…");
  const safe = line.replace(/((?:token|pass|passphrase|key)["']?\s*[:\s]\s*)\S[^]*/i, "$1…");
  // `ID.SECRET` is the token that a join token holds.
  const bare = safe.replace(/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, "…");
  // `user:password@` of an address.
  const nameless = bare.replace(/:\/\/\S*@(?!sha256:)/g, "://…@");
  const shown = nameless.replace(ENCODED, (word) => (isEncoded(word) ? "…" : word));
  return JSON.stringify(shown.length <= 60 ? shown : `${shown.slice(0, 56)}…`);
}

const ENCODED = /[A-Za-z0-9+/=]{32,}/g;

/** Base64 of 32 bytes is a key whatever is in it, and so are 32 bytes in hexadecimal. */
const isEncoded = (word: string): boolean =>
  /[A-Za-z0-9+/]{43}=|(?<![0-9A-Za-z])[0-9A-Fa-f]{64}(?![0-9A-Za-z])/.test(word) ||
  [/[A-Z]/, /[a-z]/, /\d/].every((kind) => kind.test(word));

/** A word of the user that messages leave out. */
export const looksLikeKey = (text: string): boolean => (text.match(ENCODED) ?? []).some(isEncoded);

export const oneOf = (values: readonly (string | number)[]): string =>
  values.length < 2 ? values.join("") : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
