/**
 * Which source gave the join token that is stored for k0s. A source may give it once, so that a later attempt makes do
 * with the stored one; but never in place of what another source, which was named since, has yet to give.
 */
import { fingerprint } from "../apply/fingerprint.ts";
import { nodeFingerprintKey } from "../apply/fingerprint-key.ts";
import type { SecretSource } from "../config/document.ts";
import type { Random } from "../kit/ports.ts";
import type { Secret } from "../kit/secret.ts";
import type { Meta } from "../state/meta.ts";

export const JOIN_TOKEN_FROM = "join.tokenFrom";

type Noted = Pick<Meta, "get" | "set">;

/** Before it is stored: until the file holds it, what the file holds is of no known source. */
export function noteJoinToken(meta: Noted, random: Random, source: SecretSource, token: Secret): void {
  meta.set("join-token", pairOf(meta, random, source, token.reveal()));
}

export const isTokenOf = (meta: Noted, random: Random, source: SecretSource, token: string): boolean =>
  meta.get("join-token") === pairOf(meta, random, source, token);

/** How long it is waited for, and who one is there, makes no other source. A token is stored without its line breaks. */
const pairOf = (meta: Noted, random: Random, { url, file }: SecretSource, token: string): string =>
  fingerprint(nodeFingerprintKey(meta, random), JSON.stringify([url, file, token.replaceAll(/\s/g, "")]));
