/** With what a joining node asks its cluster. Kept in memory, for minutes: k0s makes its own afterwards. */
import { createPrivateKey } from "node:crypto";
import type { Random } from "../../kit/ports.ts";
import { generateKeys, newSerial, toPem } from "../driver.ts";
import type { KeyPair } from "../model.ts";
import { x509 } from "../x509.ts";

const LIFETIME_MS = 10 * 60_000;
/** This node's clock may be ahead of the cluster's. */
const BACKDATE_MS = 60 * 60_000;

/** A client that may read everything, signed by the cluster's own CA, which a controller's token gives. */
export async function issueReader(input: {
  /** k0s's: RSA as PKCS 1, or any other that OpenSSL reads. */
  readonly authority: KeyPair;
  readonly name: string;
  readonly nowMs: number;
  readonly random: Random;
}): Promise<KeyPair> {
  const keys = await generateKeys();
  const issuer = new x509.X509Certificate(input.authority.certificate);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [input.name] }, { O: ["system:masters"] }],
    issuer: issuer.subjectName,
    serialNumber: newSerial(input.random),
    notBefore: new Date(input.nowMs - BACKDATE_MS),
    notAfter: new Date(input.nowMs + LIFETIME_MS),
    publicKey: keys.publicKey,
    signingKey: await importAuthorityKey(input.authority.privateKey),
    extensions: [
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth], false),
    ],
  });
  return toPem(certificate, keys.privateKey);
}

async function importAuthorityKey(pem: string): Promise<CryptoKey> {
  const key = createPrivateKey(pem);
  const algorithm =
    key.asymmetricKeyType === "rsa"
      ? { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }
      : { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const der = new Uint8Array(key.export({ type: "pkcs8", format: "der" }));
  return crypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
}

/** What a kubelet of this name asks the cluster to sign, in the form that the cluster approves by itself. */
export async function requestNode(name: string): Promise<{ readonly request: string; readonly privateKey: string }> {
  const keys = await generateKeys();
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ O: ["system:nodes"] }, { CN: [`system:node:${name}`] }],
    keys,
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
  });
  const { privateKey } = await toPem(request, keys.privateKey);
  return { request: `${request.toString("pem")}\n`, privateKey };
}
