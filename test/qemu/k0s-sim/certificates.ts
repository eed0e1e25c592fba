/** The cluster's own certificate authority and what it signs. */
import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { webcrypto } from "node:crypto";
import { isIP } from "node:net";
import { dirname } from "node:path";

x509.cryptoProvider.set(webcrypto as unknown as Crypto);

export interface Pair {
  readonly cert: string;
  readonly key: string;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;

const generateKeys = (): Promise<CryptoKeyPair> =>
  webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]) as Promise<CryptoKeyPair>;

const serial = (): string =>
  Buffer.from(webcrypto.getRandomValues(new Uint8Array(16)))
    .toString("hex")
    .replace(/^./, "1");

async function pemKey(key: CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey("pkcs8", key);
  return `${x509.PemConverter.encode(der, "PRIVATE KEY")}\n`;
}

async function importKey(pem: string): Promise<CryptoKey> {
  const der = x509.PemConverter.decodeFirst(pem);
  return (await webcrypto.subtle.importKey("pkcs8", der, ALGORITHM, true, ["sign"])) as CryptoKey;
}

export async function createAuthority(commonName: string, days = 3650): Promise<Pair> {
  const keys = await generateKeys();
  const now = Date.now();
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: `CN=${commonName}`,
    notBefore: new Date(now - 300_000),
    notAfter: new Date(now + days * DAY_MS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
    ],
  });
  return { cert: `${cert.toString("pem")}\n`, key: await pemKey(keys.privateKey) };
}

export interface Subject {
  readonly commonName: string;
  readonly organization?: string;
  /** IP addresses and names; given: a server's certificate. */
  readonly sans?: readonly string[];
}

export async function issue(authority: Pair, subject: Subject, days = 365): Promise<Pair> {
  const ca = new x509.X509Certificate(authority.cert);
  const keys = await generateKeys();
  const now = Date.now();
  const name = subject.organization === undefined ? "" : `O=${subject.organization},`;
  const usages = [x509.ExtendedKeyUsage.clientAuth, x509.ExtendedKeyUsage.serverAuth];
  const sans = (subject.sans ?? []).map((value) => ({
    type: isIP(value) === 0 ? ("dns" as const) : ("ip" as const),
    value,
  }));
  const cert = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: `${name}CN=${subject.commonName}`,
    issuer: ca.subject,
    notBefore: new Date(now - 300_000),
    notAfter: new Date(now + days * DAY_MS),
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.ExtendedKeyUsageExtension(usages),
      ...(sans.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(sans)]),
    ],
  });
  return { cert: `${cert.toString("pem")}\n`, key: await pemKey(keys.privateKey) };
}

/** Undefined for what is no request of a kubelet for its own client certificate. */
export async function signNodeRequest(authority: Pair, pem: string): Promise<string | undefined> {
  const request = new x509.Pkcs10CertificateRequest(pem);
  const subject = new x509.Name(request.subject);
  const isNode = subject.getField("CN")[0]?.startsWith("system:node:") === true;
  if (!isNode || subject.getField("O").join(",") !== "system:nodes" || !(await request.verify())) return undefined;
  const now = Date.now();
  const cert = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: request.subject,
    issuer: new x509.X509Certificate(authority.cert).subject,
    notBefore: new Date(now - 300_000),
    notAfter: new Date(now + DAY_MS),
    publicKey: request.publicKey,
    signingKey: await importKey(authority.key),
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth])],
  });
  return `${cert.toString("pem")}\n`;
}

export const sansOf = (pem: string): readonly string[] => {
  const extension = new x509.X509Certificate(pem).getExtension("2.5.29.17");
  return extension === null
    ? []
    : new x509.SubjectAlternativeNameExtension(extension.rawData).names.items.map((item) => item.value);
};

export const readPair = (base: string): Pair | undefined =>
  existsSync(`${base}.key`) && existsSync(`${base}.crt`)
    ? { cert: readFileSync(`${base}.crt`, "utf8"), key: readFileSync(`${base}.key`, "utf8") }
    : undefined;

export function writePair(base: string, pair: Pair): void {
  mkdirSync(dirname(base), { recursive: true, mode: 0o751 });
  writeFileSync(`${base}.crt`, pair.cert, { mode: 0o644 });
  writeFileSync(`${base}.key`, pair.key, { mode: 0o640 });
}

export async function keepPair(base: string, make: () => Promise<Pair>): Promise<Pair> {
  const kept = readPair(base);
  if (kept !== undefined) return kept;
  const pair = await make();
  writePair(base, pair);
  return pair;
}
