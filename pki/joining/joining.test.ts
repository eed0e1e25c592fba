import { X509Certificate, generateKeyPairSync } from "node:crypto";
import { expect, test } from "bun:test";
import { realRandom } from "../../host/random.ts";
import { mintAuthority } from "../driver.ts";
import type { KeyPair } from "../model.ts";
import { x509 } from "../x509.ts";
import { issueReader, requestNode } from "./driver.ts";

const nowMs = Date.UTC(2026, 0, 1);

/** As k0s makes its own: RSA, the key as PKCS 1. */
async function rsaAuthority(): Promise<KeyPair> {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const read = (format: "pkcs8" | "spki", der: Buffer, use: "sign" | "verify") =>
    crypto.subtle.importKey(format, new Uint8Array(der), algorithm, true, [use]);
  const keys = {
    privateKey: await read("pkcs8", privateKey.export({ type: "pkcs8", format: "der" }), "sign"),
    publicKey: await read("spki", publicKey.export({ type: "spki", format: "der" }), "verify"),
  };
  const name = "CN=kubernetes-ca";
  const made = await x509.X509CertificateGenerator.createSelfSigned({ name, keys, signingAlgorithm: algorithm });
  return {
    certificate: made.toString("pem"),
    privateKey: String(privateKey.export({ type: "pkcs1", format: "pem" })),
  };
}

test("the cluster's CA signs a reader for minutes, whether it is RSA, as k0s makes it, or ECDSA", async () => {
  for (const authority of [await rsaAuthority(), await mintAuthority({ commonName: "c", nowMs, random: realRandom })]) {
    const { certificate } = await issueReader({ authority, name: "corium:joining:n2", nowMs, random: realRandom });
    const made = new X509Certificate(certificate);
    expect(made.verify(new X509Certificate(authority.certificate).publicKey)).toBe(true);
    expect(made.subject.split("\n").toSorted()).toEqual(["CN=corium:joining:n2", "O=system:masters"]);
    expect(Date.parse(made.validTo) - nowMs).toBe(600_000);
  }
});

test("what a kubelet asks for is in the form that the cluster approves by itself", async () => {
  const { request, privateKey } = await requestNode("n2");
  const read = new x509.Pkcs10CertificateRequest(request);
  expect(await read.verify()).toBe(true);
  expect([read.subjectName.getField("O"), read.subjectName.getField("CN")]).toEqual([
    ["system:nodes"],
    ["system:node:n2"],
  ]);
  // Names beside it would make it one for a person to approve.
  expect(read.extensions).toEqual([]);
  expect(privateKey).toStartWith("-----BEGIN PRIVATE KEY-----");
});
