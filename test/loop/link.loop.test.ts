/**
 * A link with real machines on it: network namespaces behind a bridge. What is heard there, and who answers. Alone: a
 * namespace holds the mounts of whoever runs beside it.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realHost } from "../../host/real.ts";
import type { Exec, Host } from "../../kit/ports.ts";
import { ok } from "../../kit/result.ts";
import { memoryState } from "../../state/open.ts";
import { vipWatcher } from "../../supervisor/vip-watch.ts";
import { makeDocument } from "../support/document-fixture.ts";
import { hearAdvertisements, whoAnswers } from "../../k0s/vip/driver.ts";
import { isMet, testNeeding } from "../runner/needs.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const tag = `cor${process.pid % 100_000}`;
const spaces = ["a", "b", "c"].map((letter) => `${tag}${letter}`);
const [first = "", second = "", third = ""] = spaces;
const needs = ["network namespaces", "arping"];
const isPossible = needs.every((need) => isMet(need));

function ip(...argv: readonly string[]): number | null {
  return spawnSync("ip", argv, { stdio: "ignore" }).status;
}

const must = (...argv: readonly string[]): void => {
  if (ip(...argv) !== 0) throw new Error(`ip ${argv.join(" ")} failed`);
};

beforeAll(() => {
  if (!isPossible) return;
  for (const space of spaces) must("netns", "add", space);
  must("-n", first, "link", "add", "eth0", "type", "bridge");
  must("-n", first, "link", "set", "eth0", "up");
  [second, third].forEach((space, at) => {
    must("-n", first, "link", "add", `v${at}`, "type", "veth", "peer", "name", "eth0", "netns", space);
    must("-n", first, "link", "set", `v${at}`, "master", "eth0", "up");
    must("-n", space, "link", "set", "eth0", "up");
  });
  spaces.forEach((space, at) => {
    must("-n", space, "addr", "add", `10.0.0.${at + 1}/24`, "dev", "eth0");
    must("-n", space, "addr", "add", `fd00::${at + 1}/64`, "dev", "eth0", "nodad");
  });
});
afterAll(() => {
  for (const space of spaces) ip("netns", "del", space);
});

/** The real machine, seen from within a namespace; `corium` is run from source. */
function hostIn(space: string) {
  const host = realHost();
  const exec: Exec = (request) => {
    const [program = "", ...rest] = request.argv;
    const own = program.endsWith("/corium") ? [process.execPath, join(root, "main.ts")] : [program];
    return host.exec({ ...request, argv: ["ip", "netns", "exec", space, ...own, ...rest] });
  };
  return { ...host, exec };
}

const macOf = (space: string): string =>
  /ether (\S+)/.exec(spawnSync("ip", ["-n", space, "link", "show", "eth0"], { encoding: "utf8" }).stdout)?.[1] ?? "";

const cases = [
  { family: "IPv4", vip: "10.0.0.50", prefix: 24, own: (at: number) => `10.0.0.${at}` },
  { family: "IPv6", vip: "fd00::50", prefix: 64, own: (at: number) => `fd00::${at}` },
] as const;

describe("a virtual address on a real link", () => {
  for (const { family, vip, prefix, own } of cases) {
    testNeeding(needs, `B042: ${family}: none, one, two holders; the one that asks may be one of them`, async () => {
      const ask = (space: string, at: number) =>
        whoAnswers(hostIn(space), { device: "eth0", address: vip, own: own(at) });
      const give = (space: string, what: "add" | "del"): void =>
        must("-n", space, "addr", what, `${vip}/${prefix}`, "dev", "eth0", ...(what === "add" ? ["nodad"] : []));
      // Duplicate address detection of the links' own addresses must be over.
      for (let round = 0; round < 50 && (await ask(first, 1)) === undefined; round += 1) await Bun.sleep(100);
      expect(await ask(first, 1)).toEqual([]);
      give(second, "add");
      expect(await ask(first, 1)).toEqual([macOf(second)]);
      expect(await ask(second, 2)).toEqual([]);
      give(third, "add");
      expect((await ask(first, 1))?.toSorted()).toEqual([macOf(second), macOf(third)].toSorted());
      expect(await ask(second, 2)).toEqual([macOf(third)]);
      for (const space of [second, third]) give(space, "del");
    });
  }

  testNeeding(
    needs,
    "B052: VRRP of another cluster is heard within four seconds, of both families; silence is silence",
    async () => {
      expect(await hearAdvertisements(hostIn(first), "eth0")).toEqual([]);
      const sender = Bun.spawn(
        ["ip", "netns", "exec", second, process.execPath, join(import.meta.dir, "send-vrrp.ts"), "51"],
        { stdout: "pipe", stderr: "inherit" },
      );
      // On a busy machine it takes longer to start than is listened.
      await sender.stdout.getReader().read();
      const heard = await hearAdvertisements(hostIn(first), "eth0");
      sender.kill();
      await sender.exited;
      expect(heard?.map(({ virtualRouterId, priority }) => [virtualRouterId, priority])).toEqual([
        [51, 200],
        [51, 200],
      ]);
      expect(heard?.map(({ from }) => from).toSorted()).toEqual(["10.0.0.2", expect.stringMatching(/^fe80::/)]);
      expect(await hearAdvertisements(hostIn(first), "nope")).toBeUndefined();
    },
  );
});

/** What k0s would make of `ha` (test/qemu/k0s-sim/keepalived.ts), for both families. */
const keepalived = `global_defs {
  script_user root
}
vrrp_instance four {
  state BACKUP
  interface eth0
  virtual_router_id 51
  priority 200
  advert_int 1
  authentication {
    auth_type PASS
    auth_pass abc
  }
  virtual_ipaddress {
    10.0.0.50/24
  }
}
vrrp_instance six {
  state BACKUP
  interface eth0
  virtual_router_id 60
  priority 200
  advert_int 1
  virtual_ipaddress {
    fd00::50/64
  }
}
`;

describe("B043: real keepalived, on a link that lets multicast pass and on one that filters it", () => {
  const running: Bun.Subprocess[] = [];
  const folder = mkdtempSync(join(tmpdir(), "keepalived-"));
  afterAll(async () => {
    for (const program of running) program.kill();
    await Promise.all(running.map(({ exited }) => exited));
    rmSync(folder, { recursive: true, force: true });
  });

  function start(space: string): void {
    const config = join(folder, `${space}.conf`);
    writeFileSync(config, keepalived);
    const pids = ["--pid", "--vrrp_pid"].flatMap((flag) => [flag, join(folder, `${space}${flag}`)]);
    const argv = ["keepalived", "--dont-fork", "--use-file", config, "--no-syslog", ...pids];
    const env = { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin` };
    const path = Bun.which("ip", env) ?? "ip";
    running.push(Bun.spawn([path, "netns", "exec", space, ...argv], { env, stdout: "ignore", stderr: "ignore" }));
  }

  /** What a node's daemon makes of it; its time goes ten times as fast, the wire's does not. */
  function watch(space: string, vip: string, signal: AbortSignal) {
    const real = hostIn(space);
    const host: Host = {
      ...real,
      clock: {
        nowMs: () => real.clock.nowMs(),
        monotonicMs: () => real.clock.monotonicMs() * 10,
        sleep: (ms, until) => real.clock.sleep(ms / 10, until),
      },
      files: {
        ...real.files,
        // Of the namespace that one is in.
        readText: async (path) => ok((await real.exec({ argv: ["cat", path] })).stdout),
        write: async () => ok(undefined),
      },
    };
    const document = makeDocument({
      role: "controller",
      cluster: { name: "c", endpoint: vip, subjectAltNames: [] },
      ha: { enabled: true, virtualIP: `${vip}/24`, interface: "eth0", authPass: "abc", unicastPeers: [] },
    });
    const state = memoryState();
    const say = (line: string): void => void process.stderr.write(`${line}\n`);
    const watcher = vipWatcher({ host, state, document: () => document, memoryPath: "/run/none", say });
    const over = watcher.watch(signal);
    return { over, told: () => watcher.memory().told, kinds: () => state.events.last().map(({ kind }) => kind) };
  }

  async function until(isSo: () => boolean): Promise<boolean> {
    for (let round = 0; round < 600 && !isSo(); round += 1) await Bun.sleep(100);
    return isSo();
  }

  const one = ["elsewhere", "elsewhere", "held"];

  /** Three nodes that watch it, until what they say is this, in any order. */
  function nodesWatching(vip: string) {
    const ending = new AbortController();
    if (running.length === 0) [second, third].forEach(start);
    const nodes = [first, second, third].map((space) => watch(space, vip, ending.signal));
    const told = (): readonly string[] => nodes.map((each) => String(each.told())).toSorted();
    return {
      kinds: () => nodes.map((each) => each.kinds()),
      async agreeOn(wanted: readonly string[]): Promise<readonly string[]> {
        await until(() => told().join(" ") === wanted.join(" "));
        return told();
      },
      async stop(): Promise<void> {
        ending.abort();
        await Promise.all(nodes.map((each) => each.over));
      },
    };
  }

  for (const { family, vip } of cases) {
    testNeeding(
      [...needs, "keepalived"],
      `${family}: one of two holds the address, and three nodes agree on it`,
      async () => {
        const nodes = nodesWatching(vip);
        expect(await nodes.agreeOn(one)).toEqual(one);
        await nodes.stop();
      },
    );
  }

  testNeeding(
    [...needs, "keepalived"],
    "B042, B043: two that do not hear each other both hold the address: each says so, a third one too, and when it is over",
    async () => {
      const nodes = nodesWatching("10.0.0.50");
      expect(await nodes.agreeOn(one)).toEqual(one);
      // Multicast is filtered, as some switches do; ARP is broadcast.
      const filter = (how: "on" | "off"): void =>
        ["v0", "v1"].forEach((port) =>
          must("-n", first, "link", "set", port, "type", "bridge_slave", "mcast_flood", how),
        );
      filter("off");
      const all = ["contested", "contested", "contested"];
      expect(await nodes.agreeOn(all)).toEqual(all);
      filter("on");
      expect(await nodes.agreeOn(one)).toEqual(one);
      await nodes.stop();
      for (const kinds of nodes.kinds()) {
        expect(kinds).toContain("vip-contested");
        expect(kinds.at(-1)).toBe("vip-settled");
      }
    },
  );
});
