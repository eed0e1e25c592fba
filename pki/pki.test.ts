import { createPrivateKey, X509Certificate } from "node:crypto";

import type * as types from "@peculiar/x509";
import { beforeAll, expect, test } from "bun:test";

import { realRandom } from "../host/random.ts";
import { includesRole } from "../kit/operator-role.ts";
import { checkAuthority, parseAuthority } from "./authority.ts";
import { issueClient, mintAuthority, mintServer } from "./driver.ts";
import { fingerprintOfPem } from "./fingerprint.ts";
import type { KeyPair } from "./model.ts";
import { checkStanding, readClient } from "./verify.ts";
import { x509 } from "./x509.ts";

const NOW = Date.UTC(2026, 5, 1);
const YEAR = 365.25 * 86_400_000;
let ca: KeyPair;
let other: KeyPair;
let client: KeyPair;

beforeAll(async () => {
  ca = await mintAuthority({ commonName: "operators", nowMs: NOW, random: realRandom });
  // The same name: only the key tells them apart.
  other = await mintAuthority({ commonName: "operators", nowMs: NOW, random: realRandom });
  client = await issueClient({ authority: ca, name: "alice", role: "admin", nowMs: NOW, random: realRandom });
});

const der = (pem: string): Uint8Array => new Uint8Array(new X509Certificate(pem).raw);
const authority = (pem = ca.certificate) => {
  const parsed = parseAuthority(pem);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
};
const codeOf = (result: { ok: true } | { ok: false; error: { code: string } }): string =>
  result.ok ? "ok" : result.error.code;

/** A certificate of our CA made without our rules. */
async function craft(more: Partial<types.X509CertificateCreateParams>): Promise<Uint8Array> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = (await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"])) as CryptoKeyPair;
  const certificate = await x509.X509CertificateGenerator.create({
    subject: "CN=mallory, O=corium:admin",
    issuer: new x509.X509Certificate(ca.certificate).subjectName,
    notBefore: new Date(NOW),
    notAfter: new Date(NOW + YEAR),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: await crypto.subtle.importKey("pkcs8", x509.PemConverter.decodeFirst(ca.privateKey), algorithm, false, [
      "sign",
    ]),
    ...more,
  });
  return new Uint8Array(certificate.rawData);
}

test("the authority is a P-256 CA of path length 0 for ten years", () => {
  const parsed = new x509.X509Certificate(ca.certificate);
  expect(parsed.getExtension<types.BasicConstraintsExtension>("2.5.29.19")).toMatchObject({ ca: true, pathLength: 0 });
  expect(parsed.notAfter.getTime()).toBe(NOW + 10 * YEAR);
  expect(createPrivateKey(ca.privateKey).asymmetricKeyDetails?.namedCurve).toBe("prime256v1");
});

test("a client certificate gives its name and role, and is backdated a day", () => {
  const identity = readClient(der(client.certificate), authority());
  expect(identity.ok && identity.value).toMatchObject({ name: "alice", role: "admin" });
  expect(identity.ok && identity.value.fingerprint).toBe(fingerprintOfPem(client.certificate) ?? "");
  expect(new X509Certificate(client.certificate).validFromDate.getTime()).toBe(NOW - 86_400_000);
});

test("the server certificate carries the hostname for twenty years", async () => {
  const server = new x509.X509Certificate(
    (await mintServer({ hostname: "node-a", nowMs: NOW, random: realRandom })).certificate,
  );
  expect(server.subjectName.getField("CN")).toEqual(["node-a"]);
  expect(server.notAfter.getTime()).toBe(NOW + 20 * YEAR);
});

test("the fingerprint is what openssl prints, in base64 without padding", () => {
  const hex = new X509Certificate(ca.certificate).fingerprint256.replaceAll(":", "");
  const expected = `SHA256:${Buffer.from(hex, "hex").toString("base64").replaceAll("=", "")}`;
  expect(fingerprintOfPem(ca.certificate)).toBe(expected);
  expect(authority().fingerprint).toBe(expected);
});

test("another CA of the same name is refused by its signature", async () => {
  const rogue = await issueClient({ authority: other, name: "alice", role: "admin", nowMs: NOW, random: realRandom });
  expect(codeOf(readClient(der(rogue.certificate), authority()))).toBe("wrong-ca");
});

test("B138: what our CA signed for another purpose is refused, naming the usage that it lacks", async () => {
  const server = new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]);
  const client_ = new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]);
  const isCa = new x509.BasicConstraintsExtension(true, 0, true);
  const strange = new x509.Extension("1.2.3.4.5", true, new Uint8Array([5, 0]));
  const lacking = readClient(await craft({ extensions: [] }), authority());
  expect(codeOf(lacking)).toBe("no-client-auth");
  expect(JSON.stringify(lacking)).toContain("clientAuth");
  expect(JSON.stringify(lacking)).toContain("cctl pki issue");
  expect(codeOf(readClient(await craft({ extensions: [server] }), authority()))).toBe("no-client-auth");
  expect(codeOf(readClient(await craft({ extensions: [client_, isCa] }), authority()))).toBe("not-a-client");
  expect(codeOf(readClient(await craft({ extensions: [client_, strange] }), authority()))).toBe("unknown-extension");
  expect(codeOf(readClient(await craft({ extensions: [client_] }), authority()))).toBe("ok");
  expect(codeOf(readClient(der(ca.certificate), authority()))).toBe("not-a-client");
  expect(codeOf(readClient(new Uint8Array([1, 2, 3]), authority()))).toBe("certificate-unreadable");
});

test("one that our CA signed and somebody changed is refused", () => {
  const bytes = der(client.certificate);
  const at = Buffer.from(bytes).indexOf("alice");
  bytes[at] = "b".charCodeAt(0);
  expect(codeOf(readClient(bytes, authority()))).toBe("wrong-ca");
});

test("the highest role counts, a similar one does not", async () => {
  const eku = new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]);
  const roleOf = async (subject: types.JsonName): Promise<string | undefined> => {
    const identity = readClient(await craft({ subject, extensions: [eku] }), authority());
    return identity.ok ? identity.value.role : undefined;
  };
  expect(await roleOf([{ CN: ["x"] }, { O: ["corium:readonly", "corium:operator"] }])).toBe("operator");
  expect(await roleOf([{ CN: ["x"] }, { O: ["corium:operator"] }, { O: ["corium:readonly"] }])).toBe("operator");
  expect(await roleOf([{ CN: ["x"] }, { O: ["corium:root", "Corium:admin", "corium:admin "] }])).toBeUndefined();
  expect(await roleOf([{ CN: ["O=corium:admin\nO=corium:admin, O=corium:admin"] }])).toBeUndefined();
  expect(includesRole("operator", "readonly") && !includesRole("operator", "admin")).toBe(true);
});

test("B063: end, floor and revocation are judged anew each time; notBefore is not", () => {
  const identity = readClient(der(client.certificate), authority());
  if (!identity.ok) throw new Error("unreadable");
  const at = (nowMs: number, revoked = false): string =>
    codeOf(checkStanding(identity.value, authority(), { nowMs, isRevoked: () => revoked }));
  expect(at(NOW - 10 * YEAR)).toBe("ok");
  expect(at(NOW + 91 * 86_400_000)).toBe("certificate-expired");
  expect(at(NOW, true)).toBe("revoked");
});

test("a CA that may not be pinned is refused by reason, and its key is called compromised", async () => {
  expect(codeOf(checkAuthority(ca.certificate, NOW))).toBe("ok");
  expect(codeOf(checkAuthority(ca.certificate, NOW + 11 * YEAR))).toBe("ca-expired");
  expect(codeOf(checkAuthority(client.certificate, NOW))).toBe("ca-not-ca");
  expect(codeOf(checkAuthority(ca.certificate + other.certificate, NOW))).toBe("ca-count");
  expect(codeOf(checkAuthority("hello", NOW))).toBe("ca-count");
  expect(codeOf(checkAuthority("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", NOW))).toBe(
    "ca-unreadable",
  );
  const withKey = checkAuthority(ca.certificate + ca.privateKey, NOW);
  expect(codeOf(withKey)).toBe("ca-private-key");
  expect(JSON.stringify(withKey)).toContain("compromised");
  expect(JSON.stringify(withKey)).not.toContain(ca.privateKey.split("\n")[1] ?? "-");
});
