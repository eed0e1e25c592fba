import { createHash } from "node:crypto";

/** `SHA256:` + unpadded base64 of the SHA-256 of the DER certificate, as OpenSSH writes fingerprints. */
export function fingerprintOfDer(der: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(der).digest("base64").replaceAll("=", "")}`;
}

/** Of the first certificate in a PEM text; undefined when there is none. */
export function fingerprintOfPem(pem: string): string | undefined {
  const block = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/.exec(pem)?.[1];
  return block === undefined ? undefined : fingerprintOfDer(Buffer.from(block, "base64"));
}
