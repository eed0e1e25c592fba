/** What a node does after a reset: nothing, until it is claimed and given a document. */
import { describe, expect, test } from "bun:test";
import { findOwnDocument, readApiMode } from "./own-document.ts";
import { mintAuthority } from "../pki/driver.ts";
import { realRandom } from "../host/random.ts";
import { paths, plain, services, statusOf, world } from "../test/support/first-boot.ts";
import { bootstrap } from "./bootstrap.ts";
import { nodeCollectors } from "./collectors.ts";
import { HELD } from "./obtain-document.ts";
import { storageInUse } from "./storage-in-use.ts";

const wiping = plain.replace("level: 1,", "level: 1, wipe: true,");

function held(document: string) {
  const of = world(document);
  of.state.meta.set("held", "1");
  return of;
}
const claim = (of: ReturnType<typeof world>): void =>
  void of.state.claim.record({ operatorCA: "x", fingerprint: "SHA256:x", atMs: 1, by: "enroll" });

describe("held after a reset", () => {
  test("its own document is not acted on, nor looked for, and the console says what is waited for", async () => {
    const of = held(wiping);
    const found: string[] = [];
    const findDocument = async () => {
      found.push("looked");
      return { kind: "none" as const, notes: [] };
    };
    expect(await bootstrap(services(of, { findDocument }))).toBe(0);
    expect(statusOf(of)).toMatchObject({ state: "idle", message: HELD });
    expect([found, of.destroyed, of.state.operations.list()]).toEqual([[], [], []]);
  });

  test("a claim without a document leaves it waiting", async () => {
    const of = held(wiping);
    claim(of);
    expect(await bootstrap(services(of))).toBe(0);
    expect(statusOf(of)).toMatchObject({ state: "idle", message: HELD });
    expect(of.destroyed).toEqual([]);
  });

  test("a document without a claim is waited with, and claims nothing itself", async () => {
    const of = held(plain);
    const { certificate } = await mintAuthority({ commonName: "ops", nowMs: Date.UTC(2026, 0, 1), random: realRandom });
    const text = `${plain}api:\n  enabled: true\n  operatorCA: |\n    ${certificate.trim().replaceAll("\n", "\n    ")}\n`;
    of.host.put(paths.config, text);
    const stopping = new AbortController();
    setTimeout(() => stopping.abort(), 50);
    expect(await bootstrap(services(of, { signal: stopping.signal }))).toBe(1);
    expect(of.state.claim.get()).toBeUndefined();
    expect(of.state.operations.list()).toEqual([]);
  });

  test("claimed and given a document it bootstraps, takes over what was kept, wipe or not, and is held no more", async () => {
    const first = world(wiping);
    expect(await bootstrap(services(first))).toBe(0);
    expect(first.destroyed).toEqual(["A", "B"]);

    const of = held(wiping);
    // What a reset leaves: the disks as they are, and the record that they are this node's.
    for (const [serial, uuid] of first.members) of.members.set(serial, uuid);
    of.filesystem = first.filesystem;
    for (const each of first.state.owned.list()) of.state.owned.put(each);
    claim(of);
    of.host.put(paths.config, wiping);
    expect(await bootstrap(services(of))).toBe(0);
    expect([of.destroyed, of.isMounted, of.filesystem]).toEqual([[], true, first.filesystem]);
    expect(of.state.meta.get("held")).toBeUndefined();
    expect(of.state.baseline.get()).toBeDefined();
  });

  test("kept arrays that do not run are neither shown as failed nor watched, until a document has taken them over", async () => {
    const of = held(plain);
    const disks = ["A", "B"].map((serial) => ({ serial, sizeBytes: 1 }));
    of.state.owned.put({ kind: "raid", name: "data", uuid: "a", disks });
    const names = () => storageInUse(of.state).map(({ name }) => name);
    const collectors = nodeCollectors(of.host, of.state, {
      hardware: async () => ({}),
      volumes: { read: Object.assign(async () => [], { forget: () => undefined }) },
      identities: async () => new Map(),
      peers: () => [],
      vip: () => ({}),
    });
    expect([names(), await collectors.arrays(undefined)]).toEqual([[], []]);
    of.state.meta.remove("held");
    expect([names(), (await collectors.arrays(undefined)).map(({ name }) => name)]).toEqual([["data"], ["data"]]);
  });

  test("no source of its own claims it or closes its port", async () => {
    const look = async (text: string, isClaimed: boolean) => {
      const of = held(text);
      if (isClaimed) claim(of);
      const own = await findOwnDocument({ host: of.host, paths, state: of.state });
      return readApiMode(of.host, own, { isClaimed });
    };
    const closed = "role: single\napi: { enabled: false }\n";
    for (const isClaimed of [false, true]) expect((await look(closed, isClaimed)).isEnabled).toBe(true);
    expect((await look("role: single\napi: { enabled: true, insecure: true }\n", false)).isInsecure).toBe(false);
  });
});
