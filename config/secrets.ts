import type { AppError } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { fail } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import { readCertificates } from "./certificate.ts";
import type { Document, Role, SecretSource } from "./document.ts";
import { isKey32 } from "./schema/wireguard.ts";
import { decodeJoinToken, NO_AUTHORITY, serverElsewhere } from "./token.ts";

/** Exactly one of inline and source. */
export interface SecretField {
  /** Its key wherever secrets are passed on, entries by name: `ha.authPass`, `wireguard[wg0].privateKeyFrom`. */
  readonly path: string;
  readonly inline?: Secret;
  readonly source?: SecretSource;
}

/**
 * Every secret of the document, in its order. `<secret:PATH>` in a rendered file stands for the one with that path.
 * A key that the node makes itself (`generateKey`) is none of them, nor is the operator CA: that is public.
 */
export function secretFields(document: Document): readonly SecretField[] {
  const fields: SecretField[] = [];
  const add = (path: string, inline: string | undefined, source: SecretSource | undefined): void => {
    if (inline !== undefined) fields.push({ path, inline: new Secret(path, inline) });
    else if (source !== undefined) fields.push({ path: `${path}From`, source });
  };
  add("join.token", document.join?.token, document.join?.tokenFrom);
  add("ha.authPass", document.ha.authPass, document.ha.authPassFrom);
  for (const { name, passphrase, passphraseFrom } of document.luks) {
    add(`luks[${name}].passphrase`, passphrase, passphraseFrom);
  }
  for (const { name, privateKey, privateKeyFrom, peers } of document.wireguard) {
    add(`wireguard[${name}].privateKey`, privateKey, privateKeyFrom);
    for (const [index, { presharedKey, presharedKeyFrom }] of peers.entries()) {
      add(`wireguard[${name}].peers[${index}].presharedKey`, presharedKey, presharedKeyFrom);
    }
  }
  return fields;
}

/** Those that the document holds itself, by field path. */
export const inlineSecrets = (document: Document): ReadonlyMap<string, Secret> =>
  new Map(
    secretFields(document).flatMap(({ path, inline }) => (inline === undefined ? [] : [[path, inline] as const])),
  );

interface SecretContext {
  readonly role?: Role;
  readonly endpoint?: string;
  readonly nowMs: number;
}

/**
 * What the document's own rules say of an inline secret, said of one that came from a source. A value is a warning.
 */
export function checkResolvedSecret(
  path: string,
  secret: Secret,
  context: SecretContext,
): Result<string | undefined, AppError> {
  const text = secret.reveal().trim();
  const name = /(?:^|\.)([A-Za-z]+?)(?:From)?$/.exec(path)?.[1];
  if (text === "") return fail("secret-empty", `${path} is empty`);
  if (name === "authPass" && !/^[\x21-\x7e]{1,8}$/.test(text)) {
    return fail("secret-form", `${path} is not 1 to 8 printable ASCII characters without spaces`, {
      hint: "keepalived cuts the rest off",
    });
  }
  if ((name === "privateKey" || name === "presharedKey") && !isKey32(text)) {
    return fail("secret-form", `${path} is not base64 of 32 bytes`, {
      hint: "44 characters, as `wg genkey` prints it",
    });
  }
  return name === "token" ? checkToken(path, text, context) : ok(undefined);
}

const TOKEN_HINT = { hint: "the one line that `cctl join-token` prints" };

function checkToken(
  path: string,
  text: string,
  { role, endpoint, nowMs }: SecretContext,
): Result<string | undefined, AppError> {
  const token = decodeJoinToken(text);
  if ("why" in token) return fail("secret-form", `${path} is no k0s join token: ${token.why}`, TOKEN_HINT);
  const wanted = role === "worker" ? "worker" : "controller";
  if (role !== undefined && token.role !== wanted) {
    return fail("secret-role", `${path} holds a token for a ${token.role}, this node is a ${role}`, {
      hint: `make one with \`cctl join-token CONTROLLER --role ${wanted}\``,
    });
  }
  const [authority] = readCertificates(token.certificateAuthority ?? "");
  if (authority === undefined) {
    return fail("secret-form", `${path} is no k0s join token: ${NO_AUTHORITY}`, TOKEN_HINT);
  }
  if (authority.validToMs < nowMs) {
    return fail("secret-expired", `the cluster CA in ${path} has expired`, {
      hint: "make a new token on a controller",
    });
  }
  const elsewhere = serverElsewhere(token, endpoint);
  return ok(elsewhere === undefined ? undefined : `${path}: ${elsewhere.message}; ${elsewhere.hint ?? ""}`);
}
