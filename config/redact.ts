import type { Document } from "./document.ts";
import { fromEntries } from "./schema/walk.ts";

/** The fields whose value is a secret; entries of lists stand for all of them. */
export const SECRET_PATTERNS: readonly string[] = [
  "join.token",
  "ha.authPass",
  "luks[].passphrase",
  "wireguard[].privateKey",
  "wireguard[].peers[].presharedKey",
];

/** No secret by its name, but whatever people put there: shown to admins only. */
const PRIVATE_PATTERNS: readonly string[] = ["addons[].values", "k0s.patch"];

export interface RedactOptions {
  /** What stands in the place of a value. Default `<secret:PATH>`, which is what rendered files have. */
  readonly mark?: (path: string, value: unknown) => unknown;
  /** Also add-on values, patches, and manifest files that hold a Secret. */
  readonly isForReaders?: boolean;
}

/** A copy of the document without its secrets. */
export function redact(document: Document, options: RedactOptions = {}): Document {
  return redactPlain(document, options) as Document;
}

/** The same for a document as it was given (`raw` of parseDocument), which may be wrong. */
export function redactPlain(value: unknown, options: RedactOptions = {}): unknown {
  const mark = options.mark ?? ((path: string): unknown => `<secret:${path}>`);
  const hidden = [...SECRET_PATTERNS, ...(options.isForReaders === true ? PRIVATE_PATTERNS : [])];
  function copy(item: unknown, pattern: string, path: string): unknown {
    const isSecret = hidden.includes(pattern) && item !== undefined && item !== null;
    const isSecretManifest =
      options.isForReaders === true && pattern === "manifests[].files[].content" && holdsSecret(item);
    if (isSecret || isSecretManifest) return mark(path, item);
    if (Array.isArray(item)) {
      return item.map((entry: unknown, index) =>
        copy(entry, `${pattern}[]`, `${path}[${nameOf(pattern, entry) ?? index}]`),
      );
    }
    if (typeof item !== "object" || item === null) return item;
    const prefix = (base: string): string => (base === "" ? "" : `${base}.`);
    return fromEntries(
      Object.entries(item).map(([key, inner]) => [key, copy(inner, prefix(pattern) + key, prefix(path) + key)]),
    );
  }
  return copy(value, "", "");
}

/** Lists of the schema's root are of named things; peers are not. */
function nameOf(pattern: string, entry: unknown): string | undefined {
  if (pattern.includes(".") && pattern !== "manifests[].files") return undefined;
  const name = typeof entry === "object" && entry !== null ? (entry as { readonly name?: unknown }).name : undefined;
  return typeof name === "string" ? name : undefined;
}

/** Rather once too often: the word may stand in a comment. */
const holdsSecret = (content: unknown): boolean =>
  typeof content !== "string" || /\bkind["']?\s*:\s*["']?Secret\b|"Secret"/.test(content);
