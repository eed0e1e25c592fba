/** POST /v1/ca/rotate: whose proof counts, and what becomes of the document. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { parseDocument } from "../config/load.ts";
import { withOperatorCa } from "../config/with-operator-ca.ts";
import { realRandom } from "../host/random.ts";
import type { OperatorRole } from "../kit/operator-role.ts";
import { issueClient, mintAuthority } from "../pki/driver.ts";
import { fingerprintOfPem } from "../pki/fingerprint.ts";
import type { KeyPair } from "../pki/model.ts";
import { signProof } from "../pki/proof.ts";
import { fakeApi, type FakeApi, operator } from "../test/support/fake-api.ts";
import { recordBaseline } from "../test/support/in-service.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(60_000);

const NOW = Date.UTC(2026, 0, 1);
const OWN = "role: single\nnode: {name: n1}\n";
let [old, next]: readonly KeyPair[] = [];
const mint = (): Promise<KeyPair> => mintAuthority({ commonName: "ca", nowMs: NOW, random: realRandom });
const issue = (authority: KeyPair, role: OperatorRole = "admin"): Promise<KeyPair> =>
  issueClient({ authority, name: "bob", role, nowMs: NOW, random: realRandom });
beforeAll(async () => {
  [old, next] = await Promise.all([mint(), mint()]);
});
const of = (pair: KeyPair | undefined): KeyPair => pair ?? { certificate: "", privateKey: "" };

async function inService(): Promise<FakeApi> {
  const api = await fakeApi({ nowMs: NOW });
  recordBaseline(api.state, OWN);
  const { certificate } = of(old);
  api.state.claim.record({
    operatorCA: certificate,
    fingerprint: fingerprintOfPem(certificate) ?? "",
    atMs: 1,
    by: "enroll",
  });
  return api;
}
const nonceOf = async (api: FakeApi): Promise<string> => String((await api.call("GET", "/v1/ca/rotate")).json["nonce"]);

describe("a proof", () => {
  test("of an admin of the new CA goes to the gate, as a document that names it", async () => {
    const api = await inService();
    const proof = signProof(await nonceOf(api), await issue(of(next)));
    await api.call("POST", "/v1/ca/rotate", { json: { operatorCA: of(next).certificate, proof } });
    expect(api.applied).toMatchObject([{ isConfirmedByConnection: true, confirmWithinMs: 600_000, isDryRun: false }]);
    const { document } = parseDocument(api.applied[0]?.document ?? "", { nowMs: NOW });
    expect(document?.api).toMatchObject({ enabled: true, operatorCA: of(next).certificate });
    // Used up.
    const again = await api.call("POST", "/v1/ca/rotate", { json: { operatorCA: of(next).certificate, proof } });
    expect([again.status, again.json["reason"]]).toEqual([409, "no-nonce"]);
  });

  test.each([
    ["over another nonce", async (nonce: string) => signProof(`${nonce}x`, await issue(of(next)))],
    [
      "by another key",
      async (nonce: string) => ({
        ...signProof(nonce, await issue(of(next))),
        certificate: (await issue(of(next))).certificate,
      }),
    ],
    ["of the old CA", async (nonce: string) => signProof(nonce, await issue(of(old)))],
    ["of who may only look", async (nonce: string) => signProof(nonce, await issue(of(next), "readonly"))],
    ["that is none", async () => ({ certificate: "x", signature: "x" })],
  ])("%s is refused, and nothing is asked of the gate", async (_, make) => {
    const api = await inService();
    const proof = await make(await nonceOf(api));
    const answer = await api.call("POST", "/v1/ca/rotate", { json: { operatorCA: of(next).certificate, proof } });
    expect([answer.status, answer.json["reason"], api.applied]).toEqual([400, "proof", []]);
  });

  test("is asked of admins only, and worth nothing when it is late or another nonce was given", async () => {
    const api = await inService();
    for (const method of ["GET", "POST"]) {
      expect((await api.call(method, "/v1/ca/rotate", { as: operator("operator"), json: {} })).status).toBe(403);
    }
    const early = signProof(await nonceOf(api), await issue(of(next)));
    await nonceOf(api);
    const body = { json: { operatorCA: of(next).certificate, proof: early } };
    expect((await api.call("POST", "/v1/ca/rotate", body)).json["reason"]).toBe("proof");
    const late = signProof(await nonceOf(api), await issue(of(next)));
    await api.fake.clock.sleep(600_001);
    const answer = await api.call("POST", "/v1/ca/rotate", { json: { operatorCA: of(next).certificate, proof: late } });
    expect(answer.json["reason"]).toBe("no-nonce");
  });

  test("for the CA that the node obeys already changes nothing", async () => {
    const api = await inService();
    const proof = signProof(await nonceOf(api), await issue(of(old)));
    const answer = await api.call("POST", "/v1/ca/rotate", { json: { operatorCA: of(old).certificate, proof } });
    expect([answer.status, answer.json["reason"]]).toEqual([409, "same-ca"]);
  });
});

describe("a document with another CA", () => {
  test.each([
    ["none", "role: single # here\n"],
    ["one by URL", "role: single # here\napi: {enabled: true, operatorCAFrom: {url: 'https://ca.example.com'}}\n"],
    ["no code", "role: single # here\napi:\n  enabled: true\n  insecure: true # bench\n"],
    ["a cloud-config", "#cloud-config\ncorium:\n  role: single # here\n"],
  ])("of one that had %s is valid, and keeps the rest", (_, text) => {
    const changed = withOperatorCa(text, of(next).certificate);
    const parsed = parseDocument(changed.ok ? changed.value : "", { nowMs: NOW });
    expect(parsed.findings).toEqual([]);
    expect(parsed.document?.api).toEqual({
      enabled: true,
      insecure: false,
      awaitConfig: false,
      operatorCA: of(next).certificate,
    });
    expect([parsed.document?.role, changed.ok && changed.value.includes("# here")]).toEqual(["single", true]);
  });
});
