import { type AppError, fail } from "../kit/app-error.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { ok, type Result } from "../kit/result.ts";
import type { Secret } from "../kit/secret.ts";
import { K0S_CONFIG, K0S_JOIN_TOKEN } from "./paths.ts";
import { quote } from "./yaml.ts";

/** The only fields whose secrets k0s's files may hold; the same text in a manifest or in chart values stays text. */
const FIELDS = /^(?:ha\.authPass(?:From)?|join\.token(?:From)?)$/;

/** What is written to disk: k0s.yaml and the token with their secrets, everything else as it was rendered. */
export function fillSecrets(file: RenderedFile, secrets: ReadonlyMap<string, Secret>): Result<RenderedFile, AppError> {
  if (file.path !== K0S_CONFIG && file.path !== K0S_JOIN_TOKEN) return ok(file);
  const missing: string[] = [];
  const put = (write: (secret: string) => string) => (placeholder: string, field: string) => {
    if (!FIELDS.test(field)) return placeholder;
    const secret = secrets.get(field);
    if (secret === undefined) missing.push(field);
    return secret === undefined ? placeholder : write(secret.reveal());
  };
  // A password may hold quotes and backslashes, so it goes in as a whole YAML scalar. A token is wrapped by mail
  // programs and ends in a line break when it comes from a file: base64 has no white space.
  const content =
    file.path === K0S_CONFIG
      ? file.content.replace(
          /"<secret:([^>]+)>"/g,
          put((pass) => quote(pass.trim())),
        )
      : file.content.replace(
          /<secret:([^>]+)>/g,
          put((token) => token.replace(/\s+/g, "")),
        );
  const [first] = missing;
  if (first !== undefined) return fail("secret-missing", `the secret of ${first} is not known`);
  return ok({ ...file, content });
}

const escapeRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A tool's own words without any secret that it was given, plain or as it stood in YAML. */
export function withoutSecrets(text: string, secrets: ReadonlyMap<string, Secret>): string {
  let masked = text;
  for (const secret of secrets.values()) {
    for (const form of new Set([secret.reveal(), quote(secret.reveal()).slice(1, -1)])) {
      if (form === "") continue;
      // A short one is masked where it stands alone, else hardly a word would be left.
      const pattern = form.length < 4 ? `(?<![\\w])${escapeRegExp(form)}(?![\\w])` : escapeRegExp(form);
      masked = masked.replace(new RegExp(pattern, "g"), () => secret.toString());
    }
  }
  return masked;
}
