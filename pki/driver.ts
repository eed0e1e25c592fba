import type { OperatorRole } from "../kit/operator-role.ts";
import { ROLE_PREFIX } from "../kit/operator-role.ts";
import type { Random } from "../kit/ports.ts";
import type { KeyPair } from "./model.ts";
import { x509 } from "./x509.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;
const YEAR_MS = 365.25 * DAY_MS;
/** Nodes' clocks lag, and so do operators'. */
const BACKDATE_MS = DAY_MS;

export const AUTHORITY_YEARS = 10;
export const SERVER_YEARS = 20;
export const CLIENT_LIFETIME_MS = 90 * DAY_MS;

/** The operators' authority: path length 0, so that it can only sign clients. */
export async function mintAuthority(input: {
  readonly commonName: string;
  readonly nowMs: number;
  readonly random: Random;
}): Promise<KeyPair> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [input.commonName] }],
    serialNumber: newSerial(input.random),
    notBefore: new Date(input.nowMs - BACKDATE_MS),
    notAfter: new Date(input.nowMs + AUTHORITY_YEARS * YEAR_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return toPem(certificate, keys.privateKey);
}

export interface ClientRequest {
  readonly authority: KeyPair;
  readonly name: string;
  readonly role: OperatorRole;
  readonly nowMs: number;
  readonly lifetimeMs?: number;
  readonly random: Random;
}

/** An operator's certificate. Rejects when the authority's PEM is not what `mintAuthority` gave. */
export async function issueClient(request: ClientRequest): Promise<KeyPair> {
  const keys = await generateKeys();
  const issuer = new x509.X509Certificate(request.authority.certificate);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [request.name] }, { O: [`${ROLE_PREFIX}${request.role}`] }],
    issuer: issuer.subjectName,
    serialNumber: newSerial(request.random),
    notBefore: new Date(request.nowMs - BACKDATE_MS),
    notAfter: new Date(Math.min(request.nowMs + (request.lifetimeMs ?? CLIENT_LIFETIME_MS), issuer.notAfter.getTime())),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: await importKey(request.authority.privateKey),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth], false),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return toPem(certificate, keys.privateKey);
}

/** The node's own certificate: clients pin its fingerprint, names and dates are not consulted. */
export async function mintServer(input: {
  readonly hostname: string;
  readonly nowMs: number;
  readonly random: Random;
}): Promise<KeyPair> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [input.hostname] }],
    serialNumber: newSerial(input.random),
    notBefore: new Date(input.nowMs - BACKDATE_MS),
    notAfter: new Date(input.nowMs + SERVER_YEARS * YEAR_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth], false),
      new x509.SubjectAlternativeNameExtension([{ type: "dns", value: input.hostname }]),
    ],
  });
  return toPem(certificate, keys.privateKey);
}

/** P-256, exportable. */
export async function generateKeys(): Promise<CryptoKeyPair> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  if (!("privateKey" in keys)) throw new Error("ECDSA gave no key pair");
  return keys;
}

async function importKey(pem: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("pkcs8", x509.PemConverter.decodeFirst(pem), ALGORITHM, false, ["sign"]);
}

/** 16 random bytes with a first byte of 0x40–0x7f: positive, and never shortened by DER. */
export function newSerial(random: Random): string {
  const bytes = random.bytes(16);
  bytes[0] = 0x40 | ((bytes[0] ?? 0) & 0x3f);
  return Buffer.from(bytes).toString("hex");
}

export async function toPem(certificate: { toString(format: "pem"): string }, key: CryptoKey): Promise<KeyPair> {
  const der = await crypto.subtle.exportKey("pkcs8", key);
  return {
    certificate: `${certificate.toString("pem")}\n`,
    privateKey: `${x509.PemConverter.encode(der, "PRIVATE KEY")}\n`,
  };
}
