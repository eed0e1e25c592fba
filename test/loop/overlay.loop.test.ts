/**
 * Peers of an overlay on a real wire: two network namespaces, and WireGuard as a program where the kernel has none. What
 * status says of a wrong key, a dead peer, preshared keys that differ, a way that carries less, a hub that moves.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realHost } from "../../host/real.ts";
import type { Exec, Host } from "../../kit/ports.ts";
import { memoryState } from "../../state/open.ts";
import { overlayWatcher } from "../../supervisor/overlay-watch.ts";
import { readOverlay } from "../../wireguard/driver.ts";
import type { PeerReport } from "../../wireguard/report.ts";
import type { PeerState } from "../../wireguard/peers.ts";
import type { WatchedOverlay } from "../../wireguard/watch.ts";
import { isMet, testNeeding } from "../runner/needs.ts";

setDefaultTimeout(300_000);

const needs = ["network namespaces", "wireguard-go", "wg", "ping"];
const isPossible = needs.every((need) => isMet(need));
const tag = `${process.pid % 10_000}`;
const [here, there] = [`coro${tag}h`, `coro${tag}t`];
// wg finds a program's interfaces by name, whatever namespace they are in.
const [mine, theirs] = [`wgh${tag}`, `wgt${tag}`];
const folder = mkdtempSync(join(tmpdir(), "overlay-"));

const PATH = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;
function run(argv: readonly string[], input = ""): string {
  const [program = "", ...rest] = argv;
  const ran = spawnSync(program, rest, { input, encoding: "utf8", env: { PATH } });
  if (ran.status !== 0) throw new Error(`${argv.join(" ")}: ${ran.stderr}`);
  return ran.stdout.trim();
}
const inside = (space: string, ...argv: readonly string[]): string => run(["ip", "netns", "exec", space, ...argv]);

const newKey = (): string => run(["wg", "genkey"]);
const publicOf = (key: string): string => run(["wg", "pubkey"], key);
function fileOf(name: string, secret: string): string {
  const path = join(folder, name);
  writeFileSync(path, secret, { mode: 0o600 });
  return path;
}

let myKey = "";
let theirKey = "";
let theirPublic = "";

function raise(space: string, device: string, key: string, address: string): void {
  inside(space, "wireguard-go", device);
  inside(space, "wg", "set", device, "private-key", fileOf(device, key), "listen-port", "51820");
  run(["ip", "-n", space, "addr", "add", address, "dev", device]);
  run(["ip", "-n", space, "link", "set", device, "mtu", "1420", "up"]);
}

function give(space: string, device: string, key: string, range: string, ...more: readonly string[]): void {
  inside(space, "wg", "set", device, "peer", key, "allowed-ips", range, "persistent-keepalive", "1", ...more);
}

beforeAll(() => {
  if (!isPossible) return;
  [myKey, theirKey] = [newKey(), newKey()];
  theirPublic = publicOf(theirKey);
  for (const space of [here, there]) run(["ip", "netns", "add", space]);
  run(["ip", "-n", here, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", there]);
  for (const [space, ...addresses] of [
    [here, "10.0.0.1/24"],
    [there, "10.0.0.2/24", "10.0.0.3/24"],
  ] as const) {
    run(["ip", "-n", space, "link", "set", "eth0", "up"]);
    for (const address of addresses) run(["ip", "-n", space, "addr", "add", address, "dev", "eth0"]);
  }
  raise(here, mine, myKey, "10.9.0.1/24");
  raise(there, theirs, theirKey, "10.9.0.2/24");
  give(here, mine, theirPublic, "10.9.0.2/32", "endpoint", "10.0.0.2:51820");
});
afterAll(() => {
  for (const [space, device] of [
    [here, mine],
    [there, theirs],
  ]) {
    spawnSync("ip", ["-n", space ?? "", "link", "del", device ?? ""], { env: { PATH } });
    spawnSync("ip", ["netns", "del", space ?? ""], { env: { PATH } });
  }
  rmSync(folder, { recursive: true, force: true });
});

/** The real machine from within a namespace; its clock can be put ahead, and its resolver is this list. */
function node(endpoint: string) {
  const real = realHost();
  const set = { aheadMs: 0, names: [] as readonly string[] };
  const exec: Exec = (request) => {
    if (request.argv[0] !== "getent")
      return real.exec({ ...request, argv: ["ip", "netns", "exec", here, ...request.argv] });
    return real.exec({ ...request, argv: ["printf", "%s STREAM\n", ...set.names] });
  };
  const host: Host = { ...real, exec, clock: { ...real.clock, nowMs: () => Date.now() + set.aheadMs } };
  const overlay: WatchedOverlay = {
    name: mine,
    address: ["10.9.0.1/24"],
    peers: [{ publicKey: theirPublic, endpoint, allowedIPs: ["10.9.0.2/32"] }],
  };
  const state = memoryState();
  const say = (line: string): void => {
    throw new Error(line);
  };
  const memoryPath = join(folder, "memory.json");
  const watcher = overlayWatcher({ host, state, overlays: () => [overlay], memoryPath, say });
  const look = async (): Promise<PeerReport | undefined> => {
    await watcher.round();
    return (await readOverlay(host, [overlay], watcher.memory()))[0]?.peers[0];
  };
  return {
    set,
    events: () => state.events.last().map(({ message }) => message),
    /** Looks until it is so; what it was at last. */
    async until(state: PeerState): Promise<PeerReport | undefined> {
      let found = await look();
      for (let round = 0; round < 60 && found?.state !== state; round += 1) {
        await Bun.sleep(1_000);
        found = await look();
      }
      return found;
    },
  };
}

describe("a peer on a real wire", () => {
  const myPublic = (): string => publicOf(myKey);

  testNeeding(needs, "that does not know this node's key is silent, and its machine answers ping", async () => {
    give(there, theirs, publicOf(newKey()), "10.9.0.1/32");
    const found = await node("10.0.0.2:51820").until("silent");
    expect(found).toMatchObject({ state: "silent", receivedBytes: 0 });
    expect(found?.sentBytes).toBeGreaterThan(0);
    expect(found?.cause).toContain("a wrong key on either side");
  });

  testNeeding(needs, "with another preshared key calls, and no handshake is ever completed", async () => {
    const [one, two] = ["one", "two"].map((name) => fileOf(name, run(["wg", "genpsk"])));
    give(here, mine, theirPublic, "10.9.0.2/32", "preshared-key", one ?? "");
    give(there, theirs, myPublic(), "10.9.0.1/32", "preshared-key", two ?? "", "endpoint", "10.0.0.1:51820");
    expect(await node("10.0.0.2:51820").until("unfinished")).toMatchObject({
      state: "unfinished",
      cause: expect.stringContaining("the preshared keys differ"),
    });
    inside(there, "wg", "set", theirs, "peer", myPublic(), "preshared-key", one ?? "");
    expect((await node("10.0.0.2:51820").until("up"))?.state).toBe("up");
  });

  testNeeding(needs, "B041: behind a way that carries less is heard, and found to be narrow", async () => {
    run(["ip", "-n", there, "link", "set", "eth0", "mtu", "1300"]);
    expect((await node("10.0.0.2:51820").until("narrow"))?.cause).toContain("packets of 1420 bytes do not get through");
    run(["ip", "-n", there, "link", "set", "eth0", "mtu", "1500"]);
    expect((await node("10.0.0.2:51820").until("up"))?.state).toBe("up");
  });

  testNeeding(needs, "B035, B036: that moves is found under its name's new address", async () => {
    // It listens on one address only: packets to the first one are dropped from now on.
    run(["ip", "-n", there, "addr", "del", "10.0.0.2/24", "dev", "eth0"]);
    // The second address of a network goes with the first.
    run(["ip", "-n", there, "addr", "replace", "10.0.0.3/24", "dev", "eth0"]);
    inside(there, "wg", "set", theirs, "peer", myPublic(), "remove");
    give(there, theirs, myPublic(), "10.9.0.1/32", "preshared-key", join(folder, "one"));
    const moved = node("hub.example.net:51820");
    moved.set.names = ["10.0.0.3"];
    moved.set.aheadMs = 200_000;
    for (let round = 0; round < 3 && moved.events().length === 0; round += 1) await moved.until("stale");
    expect(moved.events()).toContain(`overlay ${mine}: peer hub.example.net moved from 10.0.0.2 to 10.0.0.3`);
    moved.set.aheadMs = 0;
    expect(await moved.until("up")).toMatchObject({ state: "up", endpoint: "10.0.0.3:51820" });
  });

  testNeeding(needs, "that dies is stale, with what its machine says to ping", async () => {
    run(["ip", "-n", there, "link", "del", theirs]);
    const dead = node("10.0.0.3:51820");
    dead.set.aheadMs = 200_000;
    expect((await dead.until("stale"))?.cause).toMatch(
      /^not heard for \d+ min although this node sends to 10\.0\.0\.3:51820/,
    );
    expect((await dead.until("stale"))?.cause).toContain("whose machine answers ping");
    run(["ip", "-n", there, "link", "set", "eth0", "down"]);
    const gone = node("10.0.0.3:51820");
    gone.set.aheadMs = 200_000;
    await gone.until("stale");
    expect((await gone.until("stale"))?.cause).toContain("does not answer ping either");
  });
});
