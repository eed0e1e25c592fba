/** A link with real machines on it: network namespaces behind a bridge. What is heard there, and who answers. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { realHost } from "../../host/real.ts";
import type { Exec } from "../../kit/ports.ts";
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
