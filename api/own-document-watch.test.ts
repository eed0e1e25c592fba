import { beforeAll, expect, test } from "bun:test";

import { realRandom } from "../host/random.ts";
import { mintAuthority } from "../pki/driver.ts";
import type { State } from "../state/open.ts";
import { findOwnDocument, readApiMode } from "../supervisor/own-document.ts";
import { isReKeyed, reKey } from "../supervisor/re-key.ts";
import type { FakeApi } from "../test/support/fake-api.ts";
import { fakeApi, fakeCode } from "../test/support/fake-api.ts";
import { joinToken } from "../test/support/first-boot.ts";
import { recordBaseline } from "../test/support/in-service.ts";
import { watchOwnDocument } from "./own-document-watch.ts";

let pem = "";
beforeAll(async () => {
  pem = (await mintAuthority({ commonName: "ops", nowMs: Date.UTC(2026, 0, 1), random: realRandom })).certificate;
});

interface Watched {
  readonly api: FakeApi;
  readonly ended: Promise<boolean>;
  readonly looks: () => number;
  readonly stop: () => void;
}

async function watch(text?: string, prepare?: (state: State) => void): Promise<Watched> {
  const api = await fakeApi();
  prepare?.(api.state);
  if (text !== undefined) api.fake.put("/etc/corium/config.yaml", text);
  const { services, state, fake } = api;
  const stopping = new AbortController();
  let looks = 0;
  const findOwn = () => {
    looks += 1;
    return findOwnDocument({ host: fake, paths: services.paths, state });
  };
  const mode = await readApiMode(fake, await findOwn(), { isClaimed: isReKeyed(state) });
  const ended = watchOwnDocument({ services, state, mode, findOwn, say: () => {}, signal: stopping.signal });
  return { api, ended, looks: () => looks, stop: () => stopping.abort() };
}

/** Some of the fake machine's time, which passes as fast as it is asked for. */
const pass = (): Promise<void> => Bun.sleep(30);
const withCa = (): string => `role: single\napi:\n  operatorCA: |\n    ${pem.trim().replaceAll("\n", "\n    ")}\n`;

test("a CA in the document claims the node, and the code leaves the consoles", async () => {
  const { api, ended, stop } = await watch(withCa());
  await pass();
  stop();
  expect(await ended).toBe(false);
  expect(api.state.claim.get()).toMatchObject({ by: "document" });
  expect(fakeCode(api.fake)).toBe("");
  expect(api.state.events.last().map(({ kind }) => kind)).toEqual(["claimed"]);
});

test("after re-keying the lost CA in the document claims nothing, and the code stays on the consoles", async () => {
  const { api, ended, stop } = await watch(withCa(), (state) => {
    state.claim.record({ operatorCA: pem, fingerprint: "SHA256:lost", atMs: 1, by: "document" });
    reKey(state, 2);
  });
  await pass();
  api.fake.put("/etc/corium/config.yaml", `${withCa()}# touched\n`);
  await pass();
  expect(api.state.claim.get()).toBeUndefined();
  expect(fakeCode(api.fake)).not.toBe("");
  stop();
  expect(await ended).toBe(false);
});

test("a document written later is seen; one that stays is looked at once", async () => {
  const { api, ended, looks, stop } = await watch();
  await pass();
  expect(looks()).toBe(1);
  expect(fakeCode(api.fake)).not.toBe("");
  api.fake.put("/etc/corium/config.yaml", "role: single\napi: {enabled: true, insecure: true}\n");
  await pass();
  expect(fakeCode(api.fake)).toBe("");
  expect(looks()).toBe(2);
  api.fake.put("/etc/corium/config.yaml", "role: single\napi: {enabled: false}\n");
  expect(await ended).toBe(true);
  stop();
});

test("one that claims by somebody else's hand ends the code too", async () => {
  const { api, ended, stop } = await watch();
  api.state.claim.record({ operatorCA: pem, fingerprint: "SHA256:x", atMs: 1, by: "document" });
  await pass();
  expect(fakeCode(api.fake)).toBe("");
  stop();
  expect(await ended).toBe(false);
});

test("a state disk that is full when the time is noted ended the daemon", async () => {
  let tries = 0;
  const { api, ended, stop } = await watch("role: single\n", (state) => {
    Object.assign(state.meta, {
      raiseTimeFloor: () => {
        tries += 1;
        throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
      },
    });
  });
  api.fake.put("/run/systemd/timesync/synchronized", "");
  while (tries < 2) await pass();
  stop();
  expect(await ended).toBe(false);
});

test("an API that was turned off stays off when the CA in the token that the node joined with has ended", async () => {
  const { state, fake, services } = await fakeApi();
  const token = joinToken("kubelet-bootstrap", pem);
  const off = `role: worker\ncluster: {endpoint: 192.0.2.10}\njoin: {token: "${token}"}\napi: {enabled: false}\n`;
  recordBaseline(state, off, { atMs: fake.clock.nowMs() });
  fake.setNow(Date.UTC(2040, 0, 1));
  const own = await findOwnDocument({ host: fake, paths: services.paths, state });
  expect(await readApiMode(fake, own, { isClaimed: true })).toMatchObject({ isEnabled: false });
});
