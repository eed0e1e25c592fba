/** Clients that must never be let in, and good ones, each with what the node must answer. */
import { realRandom } from "../../host/random.ts";
import type { OperatorRole } from "../../kit/operator-role.ts";
import { issueClient, mintAuthority } from "../../pki/driver.ts";
import type { KeyPair } from "../../pki/model.ts";
import { x509 } from "../../pki/x509.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;

export interface Rogue {
  readonly kind: string;
  readonly credentials?: KeyPair;
  /** The `reason` of its 401. */
  readonly reason: string;
}

export interface Good {
  readonly name: string;
  readonly role: OperatorRole;
  readonly credentials: KeyPair;
}

export interface Cast {
  readonly authority: KeyPair;
  readonly rogues: readonly Rogue[];
  readonly good: readonly Good[];
  /** Good by all but its revocation. */
  readonly revoked: KeyPair;
}

interface Crafted {
  readonly signer: KeyPair;
  readonly subject?: string;
  readonly issuer?: string;
  readonly notAfterMs?: number;
  readonly purposes?: readonly string[];
  readonly isAuthority?: boolean;
}

/** A certificate by hand: whatever the signer's key signs. */
async function craft(nowMs: number, crafted: Crafted): Promise<KeyPair> {
  const keys = (await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"])) as CryptoKeyPair;
  const signerKey = x509.PemConverter.decodeFirst(crafted.signer.privateKey);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: crafted.subject ?? "CN=mallory, O=corium:admin",
    issuer: crafted.issuer ?? new x509.X509Certificate(crafted.signer.certificate).subject,
    notBefore: new Date(nowMs - 2 * DAY_MS),
    notAfter: new Date(crafted.notAfterMs ?? nowMs + DAY_MS),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: await crypto.subtle.importKey("pkcs8", signerKey, ALGORITHM, false, ["sign"]),
    extensions: [
      new x509.ExtendedKeyUsageExtension([...(crafted.purposes ?? [x509.ExtendedKeyUsage.clientAuth])]),
      new x509.BasicConstraintsExtension(crafted.isAuthority === true, undefined, true),
    ],
  });
  return {
    certificate: `${certificate.toString("pem")}\n`,
    privateKey: x509.PemConverter.encode(await crypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY"),
  };
}

export async function makeCast(nowMs: number): Promise<Cast> {
  const authority = await mintAuthority({ commonName: "operators", nowMs, random: realRandom });
  // Of the same name: only its key tells it apart.
  const other = await mintAuthority({ commonName: "operators", nowMs, random: realRandom });
  const issue = (signer: KeyPair, name: string, role: OperatorRole): Promise<KeyPair> =>
    issueClient({ authority: signer, name, role, nowMs, random: realRandom });
  const good = await Promise.all(
    (["readonly", "operator", "admin"] as const).flatMap((role) =>
      [1, 2].map(async (number): Promise<Good> => {
        const name = `${role}${number}`;
        return { name, role, credentials: await issue(authority, name, role) };
      }),
    ),
  );
  const revoked = await issue(authority, "revoked", "admin");
  const lone = await mintAuthority({ commonName: "admin1", nowMs, random: realRandom });
  const admin = good.find(({ role }) => role === "admin")?.credentials ?? revoked;
  const purpose = x509.ExtendedKeyUsage;
  const rogues: readonly Rogue[] = [
    { kind: "no certificate", reason: "no-certificate" },
    { kind: "another CA of the same name", credentials: await issue(other, "admin1", "admin"), reason: "wrong-ca" },
    { kind: "self-signed", credentials: await craft(nowMs, { signer: lone }), reason: "wrong-ca" },
    { kind: "signed by an operator", credentials: await craft(nowMs, { signer: admin }), reason: "wrong-ca" },
    {
      kind: "expired",
      credentials: await craft(nowMs, { signer: authority, notAfterMs: nowMs - 1_000 }),
      reason: "certificate-expired",
    },
    {
      kind: "without clientAuth",
      credentials: await craft(nowMs, { signer: authority, purposes: [purpose.serverAuth] }),
      reason: "no-client-auth",
    },
    {
      kind: "a CA below the operators' CA",
      credentials: await craft(nowMs, { signer: authority, isAuthority: true }),
      reason: "not-a-client",
    },
    { kind: "revoked", credentials: revoked, reason: "revoked" },
  ];
  return { authority, rogues, good, revoked };
}
