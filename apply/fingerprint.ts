import { createHmac } from "node:crypto";

/** Fields of the document that hold a secret themselves (not a source of one). */
const SECRET_FIELD = /^(?:token|authPass|passphrase|privateKey|presharedKey)$/;

/** Keys in chart values, patches and manifests whose text is most likely one. */
const SECRET_LIKE = /(?:password|passwd|passphrase|secret|token|api[_-]?key|private[_-]?key)$/i;

/** Keyed: a VRRP password of eight characters would be guessed from a plain hash within minutes. */
export function fingerprint(key: string, secret: string): string {
  return `hmac-sha256:${createHmac("sha256", key).update(secret).digest("hex").slice(0, 16)}`;
}

type IsSecret = (name: string) => boolean;

function replaceSecrets(value: unknown, name: string, isSecret: IsSecret, key: string): unknown {
  if (typeof value === "string") return isSecret(name) ? fingerprint(key, value) : value;
  if (Array.isArray(value)) return value.map((item) => replaceSecrets(item, name, isSecret, key));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([inner, item]) => [inner, replaceSecrets(item, inner, isSecret, key)]),
  );
}

/** For hashing: exactly the secrets of the schema become fingerprints; `name` is the field that holds the value. */
export const withSecretFingerprints = (value: unknown, name: string, key: string): unknown =>
  replaceSecrets(value, name, (field) => SECRET_FIELD.test(field), key);

/** For showing: whatever looks like a secret becomes a fingerprint too. */
export const withFingerprints = (value: unknown, name: string, key: string): unknown =>
  replaceSecrets(value, name, (field) => SECRET_FIELD.test(field) || SECRET_LIKE.test(field), key);

/** A line `password: …` in rendered YAML, for a diff. */
const SECRET_LINE = /^([ \t]*(?:- )*"?([\w.-]+)"?: )(\S.*)$/gm;

/** Rendered text as a diff may show it. */
export function maskText(text: string, key: string): string {
  return text.replace(SECRET_LINE, (line, head: string, name: string, value: string) =>
    SECRET_LIKE.test(name) && !value.startsWith('"<secret:') ? `${head}${fingerprint(key, value)}` : line,
  );
}
