// budget: 300 s
/**
 * The virtual address on three controllers, as k0s has keepalived run it: who gets it, who keeps it, and what a client on the
 * link believes. Real keepalived in network namespaces behind a bridge.
 */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keepalivedConfig } from "../qemu/k0s-sim/keepalived.ts";
import { isMet, testNeeding } from "../runner/needs.ts";

setDefaultTimeout(240_000);

const VIP = "10.0.0.50";
const needs = ["network namespaces", "keepalived"];
const tag = `cor${process.pid % 100_000}`;
const client = `${tag}c`;
/** With addresses that grow. */
const nodes = [1, 2, 3].map((at) => `${tag}n${at}`);
const [lowest = "", middle = "", highest = ""] = nodes;
const folder = mkdtempSync(join(tmpdir(), "keepalived-"));
const env = { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin` };

function ip(...argv: readonly string[]): string {
  const ran = spawnSync("ip", argv, { encoding: "utf8", env });
  if (ran.status !== 0) throw new Error(`ip ${argv.join(" ")}: ${ran.stderr}`);
  return ran.stdout;
}

beforeAll(() => {
  if (!needs.every((need) => isMet(need))) return;
  for (const space of [client, ...nodes]) ip("netns", "add", space);
  ip("-n", client, "link", "add", "eth0", "type", "bridge");
  ip("-n", client, "link", "set", "eth0", "up");
  ip("-n", client, "addr", "add", "10.0.0.1/24", "dev", "eth0");
  nodes.forEach((space, at) => {
    ip("-n", client, "link", "add", `v${at}`, "type", "veth", "peer", "name", "eth0", "netns", space);
    ip("-n", client, "link", "set", `v${at}`, "master", "eth0", "up");
    ip("-n", space, "link", "set", "eth0", "up");
    ip("-n", space, "addr", "add", `10.0.0.${at + 2}/24`, "dev", "eth0");
  });
});
afterAll(() => {
  for (const space of [client, ...nodes]) spawnSync("ip", ["netns", "del", space], { env });
  rmSync(folder, { recursive: true, force: true });
});

const running = new Map<string, Bun.Subprocess>();
const stop = async (...spaces: readonly string[]): Promise<void> => {
  for (const space of spaces) {
    running.get(space)?.kill("SIGTERM");
    await running.get(space)?.exited;
    running.delete(space);
  }
};
afterEach(() => stop(...nodes));

const K0S = {
  apiVersion: "k0s.k0sproject.io/v1beta1",
  kind: "ClusterConfig",
  metadata: { name: "k0s", namespace: "kube-system" },
};

function start(...spaces: readonly string[]): void {
  const instance = { virtualIPs: [`${VIP}/24`], interface: "eth0", authPass: "abc", virtualRouterID: 51 };
  const controlPlaneLoadBalancing = { enabled: true, keepalived: { vrrpInstances: [instance] } };
  for (const space of spaces) {
    const config = join(folder, `${space}.conf`);
    writeFileSync(config, keepalivedConfig({ ...K0S, spec: { network: { controlPlaneLoadBalancing } } }));
    const pids = ["--pid", "--vrrp_pid"].flatMap((flag) => [flag, join(folder, `${space}${flag}`)]);
    const argv = ["keepalived", "--dont-fork", "--use-file", config, "--no-syslog", ...pids];
    const path = Bun.which("ip", env) ?? "ip";
    const child = Bun.spawn([path, "netns", "exec", space, ...argv], { env, stdout: "ignore", stderr: "ignore" });
    running.set(space, child);
  }
}

const holders = (): readonly string[] =>
  nodes.filter((space) => ip("-n", space, "addr", "show", "dev", "eth0").includes(`${VIP}/24`));

/** Exactly one of these; for as long as it takes. */
async function holder(...among: readonly string[]): Promise<string> {
  for (;;) {
    const [one, ...more] = holders();
    if (one !== undefined && more.length === 0 && among.includes(one)) return one;
    await Bun.sleep(100);
  }
}

/** Who held it in the next seconds, each look: several rounds of advertisements. */
async function holdersOverTime(): Promise<readonly string[]> {
  const seen = new Set<string>();
  for (let look = 0; look < 60; look += 1) {
    seen.add(holders().join("+"));
    await Bun.sleep(100);
  }
  return [...seen];
}

const macOf = (space: string): string => /ether (\S+)/.exec(ip("-n", space, "link", "show", "eth0"))?.[1] ?? "";
/** Without a packet to it: what it was told last. */
const clientBelieves = (): string => /lladdr (\S+)/.exec(ip("-n", client, "neigh", "show", VIP))?.[1] ?? "";
const ask = (): number | null =>
  spawnSync("ip", ["netns", "exec", client, "ping", "-c1", "-W1", VIP], { env, stdio: "ignore" }).status;

describe("B044, B045, B053: the virtual address as k0s has it", () => {
  testNeeding(
    needs,
    "a controller that starts, or starts again, takes it from nobody, whatever its address",
    async () => {
      start(lowest);
      expect(await holder(lowest)).toBe(lowest);
      start(middle, highest);
      expect(await holdersOverTime()).toEqual([lowest]);
      // An upgrade of the holder moves it once, not twice.
      await stop(lowest);
      const next = await holder(middle, highest);
      start(lowest);
      expect(await holdersOverTime()).toEqual([next]);
    },
  );

  testNeeding(needs, "after all were off, any two of three have it between them", async () => {
    for (const missing of nodes) {
      const present = nodes.filter((space) => space !== missing);
      start(missing);
      await holder(missing);
      await stop(missing);
      start(...present);
      expect(present).toContain(await holder(...present));
      await stop(...present);
    }
  });

  for (const [what, first, others] of [
    ["the highest address", highest, [lowest, middle]],
    ["the lowest address", lowest, [middle, highest]],
  ] as const) {
    testNeeding(
      needs,
      `the holder, with ${what}, stands still and goes on: clients end up at the one that has it`,
      async () => {
        start(first);
        await holder(first);
        start(...others);
        expect(ask()).toBe(0);
        expect(clientBelieves()).toBe(macOf(first));
        const pid = running.get(first)?.pid ?? 0;
        const signal = (name: string): void => {
          const children = spawnSync("pgrep", ["-P", String(pid)], { encoding: "utf8" }).stdout.split("\n");
          spawnSync("kill", [`-${name}`, String(pid), ...children.filter((each) => each !== "")]);
        };
        signal("STOP");
        // Its kernel has the address still, and would answer.
        while (!others.some((space) => holders().includes(space))) await Bun.sleep(100);
        await Bun.sleep(2_000);
        signal("CONT");
        await Bun.sleep(2_000);
        const last = await holder(...nodes);
        while (clientBelieves() !== macOf(last)) await Bun.sleep(100);
        expect(ask()).toBe(0);
      },
    );
  }
});
