import { expect, test } from "bun:test";
import type { Document } from "../config/document.ts";
import { memoryState } from "../state/open.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { type Timeline, withTimeline } from "../test/support/timeline.ts";
import { readHa, vipWatcher } from "./vip-watch.ts";

const vip = "10.0.0.50";
const other = "52:54:00:00:00:02";
const document: Document = makeDocument({
  role: "controller",
  cluster: { name: "c", endpoint: vip, subjectAltNames: [] },
  ha: { enabled: true, virtualIP: `${vip}/24`, authPass: "x", unicastPeers: [] },
});
const links = JSON.stringify([
  {
    ifname: "eth0",
    flags: ["UP", "LOWER_UP"],
    mtu: 1500,
    address: "52:54:00:00:00:01",
    addr_info: [{ family: "inet", local: "10.0.0.2", prefixlen: 24, scope: "global" }],
  },
]);

/** A link with keepalived on it, as far as this node sees it. */
function machine() {
  const link = { isHere: false, others: [other] as string[] };
  const host = fakeHost({
    programs: {
      ip: ({ argv }) => (argv.includes("addr") ? links : '[{"dst":"default","dev":"eth0","gateway":"10.0.0.1"}]'),
      arping: () => ({
        exitCode: 1,
        stdout: link.others.map((mac) => `Unicast reply from ${vip} [${mac}]  1ms\n`).join(""),
      }),
    },
  });
  const show = (change: Partial<typeof link>): void => {
    Object.assign(link, change);
    host.put(
      "/proc/net/fib_trie",
      `Local:\n     |-- 10.0.0.2\n        /32 host LOCAL\n${link.isHere ? `     |-- ${vip}\n        /32 host LOCAL\n` : ""}`,
    );
  };
  show({});
  return { host, show };
}

async function watched(host: ReturnType<typeof fakeHost>, plan: Timeline) {
  const state = memoryState();
  const ending = new AbortController();
  const say = (line: string): void => {
    throw new Error(line);
  };
  const timed = withTimeline(host, [...plan, [plan.at(-1)?.[0] ?? 0, () => ending.abort()]]);
  const memoryPath = "/run/corium/vip.json";
  const watcher = vipWatcher({ host: timed, state, document: () => document, memoryPath, say });
  await watcher.watch(ending.signal);
  return { watcher, kinds: state.events.last().map(({ kind }) => kind) };
}

test("B042: a second holder is found within a minute, is in status, and its end is said", async () => {
  const { host, show } = machine();
  let contested: unknown;
  const { watcher, kinds } = await watched(host, [
    [10, () => show({ isHere: true, others: [] })],
    [60, () => show({ others: [other] })],
    [140, () => (contested = JSON.parse(host.text("/run/corium/vip.json") ?? "{}"))],
    [141, () => show({ others: [] })],
    [200, () => undefined],
  ]);
  expect(kinds).toEqual(["vip-held", "vip-contested", "vip-settled"]);
  expect(contested).toMatchObject({ isHeld: true, others: [other], told: "contested" });
  expect(await readHa(host, document, watcher.memory())).toEqual({ vip, holder: true, others: [], state: "held" });
});

test("a failover shows who has it, and what was known of the time before is not told of now", async () => {
  const { host, show } = machine();
  const { watcher } = await watched(host, [[30, () => undefined]]);
  expect(await readHa(host, document, watcher.memory())).toEqual({
    vip,
    holder: false,
    others: [other],
    state: "elsewhere",
  });
  show({ isHere: true, others: [] });
  expect(await readHa(host, document, watcher.memory())).toEqual({ vip, holder: true });
  expect(await readHa(host, makeDocument(), watcher.memory())).toBeUndefined();
});

test("an hour of calm is sixty questions to the link, and two reads each three seconds", async () => {
  const { host } = machine();
  await watched(host, [[3_600, () => undefined]]);
  const asked = host.calls.filter((call) => call.startsWith("exec arping")).length;
  expect(asked).toBeGreaterThan(50);
  expect(asked).toBeLessThanOrEqual(64);
});
