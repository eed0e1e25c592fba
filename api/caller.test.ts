import { beforeAll, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";

import { realRandom } from "../host/random.ts";
import { issueClient, mintAuthority } from "../pki/driver.ts";
import type { KeyPair } from "../pki/model.ts";
import type { State } from "../state/open.ts";
import { memoryState } from "../state/open.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import type { Credentials } from "./caller.ts";
import { createDoor } from "./caller.ts";

const NOW = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;
let ca: KeyPair;
let alice: Uint8Array;
beforeAll(async () => {
  ca = await mintAuthority({ commonName: "ops", nowMs: NOW, random: realRandom });
  const issued = await issueClient({ authority: ca, name: "alice", role: "operator", nowMs: NOW, random: realRandom });
  alice = new Uint8Array(new X509Certificate(issued.certificate).raw);
});

const claim = (state: State, operatorCA = ca.certificate): void =>
  void state.claim.record({ operatorCA, fingerprint: "SHA256:x", atMs: NOW, by: "enroll" });

test("one connection, asked again and again: unclaimed, let in, past its end, revoked", () => {
  const state = memoryState();
  const fake = fakeHost({ nowMs: NOW });
  const door = createDoor(state, fake.clock);
  const connection: Credentials = { certificate: alice, address: "10.0.0.9" };
  expect(door(connection).kind).toBe("unclaimed");
  claim(state);
  expect(door(connection)).toMatchObject({
    kind: "operator",
    role: "operator",
    requester: { name: "alice", address: "10.0.0.9" },
  });
  // The clock was set back, but the node remembers a later time.
  fake.setNow(NOW - 300 * DAY_MS);
  expect(door(connection).kind).toBe("operator");
  state.meta.raiseTimeFloor(NOW + 91 * DAY_MS);
  expect(door(connection)).toMatchObject({ kind: "refused", error: { code: "certificate-expired" } });
  const fresh = memoryState();
  claim(fresh);
  const other = createDoor(fresh, fake.clock);
  const verdict = other(connection);
  if (verdict.kind !== "operator" || connection.verdict?.identity.ok !== true) throw new Error("not let in");
  fresh.claim.revoke(connection.verdict.identity.value.issuer, connection.verdict.identity.value.serial, NOW);
  expect(other(connection)).toMatchObject({ kind: "refused", error: { code: "revoked" } });
});

test("no certificate on a claimed node is told apart from a wrong one", () => {
  const state = memoryState();
  claim(state);
  const door = createDoor(state, fakeHost({ nowMs: NOW }).clock);
  expect(door({ address: "" })).toMatchObject({ kind: "refused", error: { code: "no-certificate" } });
  expect(door({ address: "", certificate: new Uint8Array([1]) })).toMatchObject({
    kind: "refused",
    error: { code: "certificate-unreadable" },
  });
});

test("whose node it is can't be read: nobody is let in, also not to claim it", () => {
  const state = memoryState();
  claim(state, "no certificate at all");
  const { clock } = fakeHost({ nowMs: NOW });
  expect(createDoor(state, clock)({ address: "", certificate: alice })).toMatchObject({
    kind: "undecided",
    error: { code: "pinned-ca" },
  });
  const get = (): never => {
    throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR" });
  };
  const broken: State = { ...state, claim: { ...state.claim, get } };
  expect(createDoor(broken, clock)({ address: "" })).toMatchObject({ kind: "undecided", error: { code: "state" } });
});

test("while a new CA waits to be confirmed both let in, and the door says whose it was; then one of them alone", async () => {
  const state = memoryState();
  claim(state);
  const next = await mintAuthority({ commonName: "next", nowMs: NOW, random: realRandom });
  const issued = await issueClient({ authority: next, name: "bob", role: "admin", nowMs: NOW, random: realRandom });
  const bob: Credentials = { address: "", certificate: new Uint8Array(new X509Certificate(issued.certificate).raw) };
  const old: Credentials = { address: "", certificate: alice };
  let waiting: string | undefined;
  const door = createDoor(state, fakeHost({ nowMs: NOW }).clock, () => waiting);
  const kinds = () => [old, bob].map((credentials) => door(credentials).kind);
  expect(kinds()).toEqual(["operator", "refused"]);
  waiting = next.certificate;
  expect(kinds()).toEqual(["operator", "operator"]);
  expect([door(old), door(bob)].map((caller) => caller.kind === "operator" && caller.isOfNewCa === true)).toEqual([
    false,
    true,
  ]);
  // Taken back: the very connection that was let in is not any more.
  waiting = undefined;
  expect(kinds()).toEqual(["operator", "refused"]);
  state.claim.replace({ operatorCA: next.certificate, fingerprint: "SHA256:y", atMs: NOW, by: "document" });
  expect(kinds()).toEqual(["refused", "operator"]);
});

test("a new CA that waits opens nothing on a node that nobody has claimed", async () => {
  const next = await mintAuthority({ commonName: "next", nowMs: NOW, random: realRandom });
  const door = createDoor(memoryState(), fakeHost({ nowMs: NOW }).clock, () => next.certificate);
  expect(door({ address: "", certificate: alice }).kind).toBe("unclaimed");
});
