import { X509Certificate } from "node:crypto";

export interface Certificate {
  readonly isCa: boolean;
  /** Absent keyUsage allows everything: RFC 5280, 4.2.1.3. */
  readonly canSign: boolean;
  readonly validFromMs: number;
  readonly validToMs: number;
}

/** Every PEM certificate of the text; `undefined` for one that cannot be read. */
export function readCertificates(pem: string): readonly (Certificate | undefined)[] {
  return pemBlocks(pem).map((block) => {
    try {
      const certificate = new X509Certificate(block);
      return {
        isCa: certificate.ca,
        canSign: canSign(certificate.raw),
        validFromMs: Date.parse(certificate.validFrom),
        validToMs: Date.parse(certificate.validTo),
      };
    } catch {
      return undefined;
    }
  });
}

const BEGIN = "-----BEGIN CERTIFICATE-----";
const END = "-----END CERTIFICATE-----";

/** As a regular expression it would look for the end anew from each beginning. */
function pemBlocks(pem: string): readonly string[] {
  const blocks: string[] = [];
  for (let at = pem.indexOf(BEGIN); at >= 0;) {
    const end = pem.indexOf(END, at);
    if (end < 0) break;
    blocks.push(pem.slice(at, end + END.length));
    at = pem.indexOf(BEGIN, end);
  }
  return blocks;
}

/** Of any kind: PKCS #8, RSA, EC, encrypted, OpenSSH. */
export const hasPrivateKey = (text: string): boolean => /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(text);

/**
 * keyCertSign, bit 5 of keyUsage (2.5.29.15). `X509Certificate.keyUsage` is the *extended* usage, so the extension
 * is read here: an OCTET STRING with a BIT STRING, after the OID and an optional `critical` BOOLEAN.
 */
function canSign(der: Uint8Array): boolean {
  const tbs = children(der, element(der, 0))[0];
  const extensions = tbs === undefined ? undefined : children(der, tbs).find(({ tag }) => tag === 0xa3);
  const list = extensions === undefined ? undefined : children(der, extensions)[0];
  if (list === undefined) return true;
  for (const extension of children(der, list)) {
    const [oid, ...rest] = children(der, extension);
    if (oid === undefined || Buffer.from(der.subarray(oid.start, oid.end)).toString("hex") !== "551d0f") continue;
    const octets = rest.find(({ tag }) => tag === 0x04);
    const bits = octets === undefined ? undefined : element(der, octets.start);
    // First byte: number of unused bits; bit 0 is the highest of the next.
    return bits?.tag === 0x03 && ((der[bits.start + 1] ?? 0) & 0x04) !== 0;
  }
  return true;
}

interface Element {
  readonly tag: number;
  readonly start: number;
  readonly end: number;
}

/** One DER tag-length-value; node:crypto has read it before, so it is well formed. */
function element(der: Uint8Array, at: number): Element {
  const tag = der[at] ?? 0;
  const first = der[at + 1] ?? 0;
  const count = first < 0x80 ? 0 : first & 0x7f;
  let length = first < 0x80 ? first : 0;
  for (let i = 0; i < count; i++) length = length * 256 + (der[at + 2 + i] ?? 0);
  const start = at + 2 + count;
  return { tag, start, end: Math.min(start + length, der.length) };
}

function children(der: Uint8Array, parent: Element): readonly Element[] {
  const found: Element[] = [];
  for (let at = parent.start; at < parent.end;) {
    const next = element(der, at);
    if (next.end <= at) break;
    found.push(next);
    at = next.end;
  }
  return found;
}
