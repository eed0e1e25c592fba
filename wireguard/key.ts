import { createPrivateKey, createPublicKey } from "node:crypto";

/** 32 random bytes → a private key in base64, clamped as `wg genkey` does (RFC 7748, section 5). */
export function privateKeyFrom(random: Uint8Array): string {
  const key = Uint8Array.from(random.subarray(0, 32));
  key[0] = (key[0] ?? 0) & 248;
  key[31] = ((key[31] ?? 0) & 127) | 64;
  return Buffer.from(key).toString("base64");
}

/** The PKCS #8 wrapping of a raw X25519 key (RFC 8410): node:crypto takes no bare one. */
const pkcs8Prefix = Buffer.from("302e020100300506032b656e04220420", "hex");

/** As `wg pubkey`, without the private key passing through another process; undefined when it is no key. */
export function publicKeyOf(privateKey: string): string | undefined {
  const text = privateKey.trim();
  if (!isKey(text)) return undefined;
  const der = Buffer.concat([pkcs8Prefix, Buffer.from(text, "base64")]);
  const key = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
  return key.export({ format: "der", type: "spki" }).subarray(-32).toString("base64");
}

/** Base64 of 32 bytes. */
export const isKey = (text: string): boolean => /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(text);
