import { beforeAll, describe, expect, test } from "bun:test";

import { realRandom } from "../host/random.ts";
import { issueClient, mintAuthority } from "../pki/driver.ts";
import { fingerprintOfPem } from "../pki/fingerprint.ts";
import type { FakeApi, FakeAnswer } from "../test/support/fake-api.ts";
import { fakeApi, fakeCode } from "../test/support/fake-api.ts";
import { consentOf } from "../supervisor/own-consent.ts";
import { isReKeyed, reKey } from "../supervisor/re-key.ts";
import { openEnrolment } from "./enrolment.ts";

const NOW = Date.UTC(2026, 0, 1);
let operatorCA = "";
let otherCA = "";
let clientPem = "";
let caKey = "";
beforeAll(async () => {
  const ca = await mintAuthority({ commonName: "ops", nowMs: NOW, random: realRandom });
  operatorCA = ca.certificate;
  caKey = ca.privateKey;
  otherCA = (await mintAuthority({ commonName: "ops", nowMs: NOW, random: realRandom })).certificate;
  clientPem = (await issueClient({ authority: ca, name: "a", role: "admin", nowMs: NOW, random: realRandom }))
    .certificate;
});

const enroll = (api: FakeApi, json: object): Promise<FakeAnswer> =>
  api.call("POST", "/v1/enroll", { as: { kind: "unclaimed" }, json });
const reasonOf = async (answer: Promise<FakeAnswer>): Promise<readonly unknown[]> => {
  const { status, json } = await answer;
  return [status, json["reason"]];
};
const isUntouched = ({ state, fake }: FakeApi): void => {
  expect(state.claim.get()).toBeUndefined();
  expect(fake.text("/etc/corium/config.yaml")).toBeUndefined();
};

test("the code is 0600 in /run, eight symbols without look-alikes", async () => {
  const { fake } = await fakeApi();
  expect(fakeCode(fake)).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}$/);
  expect(fake.node("/run/corium/enrolment.json")?.mode).toBe(0o600);
});

test("the right code and a CA claim the node, once; the code leaves the console and bootstrap is started", async () => {
  const api = await fakeApi();
  const code = fakeCode(api.fake).toLowerCase().replace("-", " - ");
  const answer = await enroll(api, { code, operatorCA });
  expect([answer.status, answer.json]).toEqual([
    200,
    { enrolled: true, operatorCA: fingerprintOfPem(operatorCA) ?? "" },
  ]);
  expect(api.state.claim.get()).toMatchObject({ by: "enroll" });
  expect(api.fake.text("/run/corium/enrolment.json")).toBeUndefined();
  expect(api.pokes.count).toBe(1);
  expect(await reasonOf(enroll(api, { code, operatorCA: otherCA }))).toEqual([409, "claimed"]);
  const log = JSON.stringify([api.state.audit.last(), api.state.events.last()]);
  expect(log).toContain("claimed");
  expect(log).not.toContain(fakeCode(api.fake) === "" ? code : "");
});

test("--wipe-own is agreed to by the one who claims, and by nobody who does not", async () => {
  const api = await fakeApi();
  await enroll(api, { code: "WRONG", operatorCA, wipeOwn: true });
  await enroll(api, { code: fakeCode(api.fake), operatorCA: "no CA", wipeOwn: true });
  expect(consentOf(api.state)).toBeUndefined();
  const code = fakeCode(api.fake);
  expect((await enroll(api, { code, operatorCA, wipeOwn: true })).status).toBe(200);
  expect(consentOf(api.state)).toMatchObject({ by: "who claimed it from 192.0.2.1" });
  expect(consentOf(api.state)?.disks).toBeUndefined();
  const second = await fakeApi();
  await enroll(second, { code: fakeCode(second.fake), operatorCA });
  expect(consentOf(second.state)).toBeUndefined();
});

test("two at once: exactly one wins", async () => {
  const api = await fakeApi();
  const code = fakeCode(api.fake);
  const answers = await Promise.all([enroll(api, { code, operatorCA }), enroll(api, { code, operatorCA: otherCA })]);
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  const winner = answers.find(({ status }) => status === 200)?.json["operatorCA"];
  expect(api.state.claim.get()?.fingerprint).toBe(String(winner));
});

test("the document of a claim that came second was carried out under the first one's CA", async () => {
  const api = await fakeApi();
  const code = fakeCode(api.fake);
  const documents = ["role: single\ncluster: {name: first}\n", "role: single\ncluster: {name: second}\n"];
  const answers = await Promise.all(
    documents.map((document, at) => enroll(api, { code, operatorCA: at === 0 ? operatorCA : otherCA, document })),
  );
  const winner = answers.findIndex(({ status }) => status === 200);
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(1);
  expect(api.fake.text("/etc/corium/config.yaml")).toBe(documents[winner] ?? "");
  expect(api.state.documents.latest()?.text).toBe(documents[winner] ?? "");
});

describe("the throttle", () => {
  test("five wrong codes, then one try in ten seconds for all together, and never closed", async () => {
    const api = await fakeApi();
    const code = fakeCode(api.fake);
    // A script that forgot it does not use up the tries of whoever has it.
    for (let at = 0; at < 9; at += 1) expect(await reasonOf(enroll(api, { operatorCA }))).toEqual([401, "no-code"]);
    for (let at = 0; at < 5; at += 1)
      expect(await reasonOf(enroll(api, { code: "AAAA-AAAA", operatorCA }))).toEqual([401, "wrong-code"]);
    expect(await reasonOf(enroll(api, { code, operatorCA }))).toEqual([429, "throttled"]);
    await api.fake.clock.sleep(10_000);
    const both = await Promise.all([enroll(api, { code: "BBBB", operatorCA }), enroll(api, { code, operatorCA })]);
    expect(both.map(({ status }) => status)).toEqual([401, 429]);
    await api.fake.clock.sleep(10_000);
    expect((await enroll(api, { code, operatorCA })).status).toBe(200);
  });

  test("B141: restarting the daemon mints no second code and forgives nothing (5 wrong, restart, wrong)", async () => {
    const api = await fakeApi();
    const code = fakeCode(api.fake);
    for (let at = 0; at < 5; at += 1) await enroll(api, { code: "x", operatorCA });
    const again = await openEnrolment(api.fake, "/run/corium/enrolment.json", "SHA256:server");
    if (!again.ok) throw new Error(again.error.message);
    expect(fakeCode(api.fake)).toBe(code);
    expect((await again.value.attempt(code)).kind).toBe("throttled");
    api.fake.boot();
    const rebooted = await openEnrolment(api.fake, "/run/corium/enrolment.json", "SHA256:server");
    if (!rebooted.ok) throw new Error(rebooted.error.message);
    expect(fakeCode(api.fake)).not.toBe(code);
    expect((await rebooted.value.attempt(fakeCode(api.fake))).kind).toBe("right");
  });

  test("tries that arrive together are counted one by one", async () => {
    const api = await fakeApi();
    const answers = await Promise.all(Array.from({ length: 40 }, () => enroll(api, { code: "nope", operatorCA })));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(35);
  });
});

test("nothing of the body is judged before the code", async () => {
  const api = await fakeApi();
  expect(await reasonOf(enroll(api, { code: "wrong", operatorCA: 7, extra: true }))).toEqual([401, "wrong-code"]);
  expect(await reasonOf(enroll(api, { operatorCA: 7 }))).toEqual([401, "no-code"]);
  expect(await reasonOf(enroll(api, { code: fakeCode(api.fake), operatorCA, extra: 1 }))).toEqual([
    400,
    "invalid-body",
  ]);
  isUntouched(api);
});

test("what is no CA leaves the node unclaimed; a private key is called compromised", async () => {
  const api = await fakeApi();
  const code = fakeCode(api.fake);
  expect(await reasonOf(enroll(api, { code, operatorCA: clientPem }))).toEqual([400, "ca-not-ca"]);
  expect(await reasonOf(enroll(api, { code, operatorCA: operatorCA + caKey }))).toEqual([400, "ca-private-key"]);
  api.fake.setNow(NOW + 11 * 366 * 86_400_000);
  expect(await reasonOf(enroll(api, { code, operatorCA }))).toEqual([400, "ca-expired"]);
  isUntouched(api);
});

describe("a document sent along", () => {
  test("is validated first, and a bad one leaves the node unclaimed", async () => {
    const api = await fakeApi();
    const code = fakeCode(api.fake);
    const bad = await enroll(api, { code, operatorCA, document: "role: king\n" });
    expect([bad.status, bad.json["reason"]]).toEqual([400, "invalid-document"]);
    isUntouched(api);
    expect((await enroll(api, { code, operatorCA, document: "role: single\n" })).status).toBe(200);
    expect(api.fake.text("/etc/corium/config.yaml")).toBe("role: single\n");
    expect(api.state.documents.latest()?.origin).toBe("enroll");
  });

  test("may not name another CA than the one that claims", async () => {
    const api = await fakeApi();
    const code = fakeCode(api.fake);
    const naming = (pem: string): string =>
      `role: single\napi:\n  operatorCA: |\n${pem
        .trim()
        .split("\n")
        .map((line) => `    ${line}\n`)
        .join("")}`;
    expect(await reasonOf(enroll(api, { code, operatorCA, document: naming(otherCA) }))).toEqual([400, "other-ca"]);
    isUntouched(api);
    expect((await enroll(api, { code, operatorCA, document: naming(operatorCA) })).status).toBe(200);
  });

  test("is on disk before the claim is: power lost in between leaves no claim without its document", async () => {
    const api = await fakeApi();
    const code = fakeCode(api.fake);
    api.fake.dieAt(2, "before");
    await enroll(api, { code, operatorCA, document: "role: single\n" });
    isUntouched(api);
  });
});

test("a node that would bootstrap at once is not claimed without a word", async () => {
  const api = await fakeApi();
  const code = fakeCode(api.fake);
  api.own = { kind: "found", text: "role: single\nnode: {name: n7}\ncluster: {name: shop}\n", origin: "config.yaml" };
  const refused = await enroll(api, { code, operatorCA });
  expect([refused.status, refused.json["reason"]]).toEqual([409, "would-bootstrap"]);
  for (const word of ["single", "n7", "shop"]) expect(refused.json["error"]).toContain(word);
  isUntouched(api);
  expect((await enroll(api, { code, operatorCA, acknowledge: true })).status).toBe(200);
});

test("a member of a cluster can't be claimed over the network", async () => {
  const api = await fakeApi();
  const code = fakeCode(api.fake);
  const document = api.state.documents.add({
    text: "role: single\n",
    atMs: 1,
    requester: { kind: "document" },
    origin: "x",
  });
  api.state.baseline.set({
    document,
    hostname: "n",
    machineId: "m",
    addresses: {},
    k0sVersion: "v",
    inputHash: "h",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: {},
    atMs: 1,
  });
  expect(await reasonOf(enroll(api, { code, operatorCA }))).toEqual([409, "in-service"]);
  isUntouched(api);
});

test("one that was re-keyed at its console is claimed by code again; its document's CA does not, and nothing else changes", async () => {
  const api = await fakeApi();
  const code = fakeCode(api.fake);
  const document = api.state.documents.add({
    text: "role: single\n",
    atMs: 1,
    requester: { kind: "document" },
    origin: "x",
  });
  const baseline = {
    document,
    hostname: "n",
    machineId: "m",
    addresses: {},
    k0sVersion: "v",
    inputHash: "h",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: {},
    atMs: 1,
  };
  api.state.baseline.set(baseline);
  api.state.claim.record({ operatorCA: otherCA, fingerprint: "SHA256:lost", atMs: 1, by: "document" });
  expect(reKey(api.state, 2).ok).toBe(true);
  api.own = { kind: "found", text: "role: single\n", origin: "x" };
  expect(await reasonOf(enroll(api, { code: "WRONG", operatorCA }))).toEqual([401, "wrong-code"]);
  for (const more of [{ document: "role: worker\n" }, { wipeOwn: true }]) {
    expect(await reasonOf(enroll(api, { code, operatorCA, ...more }))).toEqual([409, "in-service"]);
  }
  isUntouched(api);
  expect((await enroll(api, { code, operatorCA })).status).toBe(200);
  expect(api.state.claim.get()?.fingerprint).toBe(fingerprintOfPem(operatorCA) ?? "");
  expect([isReKeyed(api.state), api.pokes.count]).toEqual([false, 0]);
  expect(api.state.baseline.get()).toEqual(baseline);
  expect(await reasonOf(enroll(api, { code, operatorCA: otherCA }))).toEqual([409, "claimed"]);
});

test("nor one whose k0s was started, however bootstrap ended; and a document does not come between", async () => {
  const api = await fakeApi();
  const code = fakeCode(api.fake);
  api.bootstrap = "running";
  expect(await reasonOf(enroll(api, { code, operatorCA, document: "role: single\n" }))).toEqual([409, "busy"]);
  const begun = api.state.operations.begin({
    kind: "bootstrap",
    requester: { kind: "document" },
    version: "1",
    steps: [{ id: "k0s:start", title: "start k0s", state: "pending" }],
    atMs: 1,
  });
  if (!begun.ok) throw new Error("busy");
  api.state.operations.step(begun.value.id, { id: "k0s:start", title: "start k0s", state: "running" }, 2);
  api.state.operations.end(begun.value.id, { phase: "failed" }, 3);
  expect(await reasonOf(enroll(api, { code, operatorCA }))).toEqual([409, "in-service"]);
  isUntouched(api);
});

describe("power lost at any call of the host", () => {
  test("leaves a node that is unclaimed, or claimed with the document that came along", async () => {
    let calls = 1;
    for (; ; calls += 1) {
      for (const when of ["before", "after"] as const) {
        const api = await fakeApi();
        const code = fakeCode(api.fake);
        api.fake.dieAt(calls, when);
        const answer = await enroll(api, { code, operatorCA, document: "role: single\n" });
        api.fake.boot();
        const isClaimed = api.state.claim.get() !== undefined;
        // What was answered is on disk; a claim never comes without its document.
        if (answer.status === 200) expect(isClaimed).toBe(true);
        if (isClaimed) expect(api.fake.text("/etc/corium/config.yaml")).toBe("role: single\n");
        if (answer.status === 200) {
          expect(calls).toBeGreaterThan(2);
          if (when === "after") return;
        }
      }
    }
  });
});

test("insecure: no code is asked for, none is shown, and the claim says so for ever", async () => {
  const api = await fakeApi();
  await api.enrolment.setInsecure(true);
  expect(fakeCode(api.fake)).toBe("");
  expect((await enroll(api, { operatorCA })).status).toBe(200);
  expect(api.state.claim.get()?.by).toBe("insecure");
  expect(api.state.events.last()[0]?.severity).toBe("warning");
});
