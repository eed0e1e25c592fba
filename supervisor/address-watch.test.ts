import { expect, test } from "bun:test";
import { memoryState } from "../state/open.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { withTimeline } from "../test/support/timeline.ts";
import { watchAddresses } from "./address-watch.ts";

const trie = (...addresses: readonly string[]): string =>
  `Local:\n${addresses.map((address) => `     |-- ${address}\n        /32 host LOCAL\n`).join("")}`;

async function live(plan: readonly (readonly [seconds: number, ...addresses: string[]])[]) {
  const host = fakeHost({ files: { "/proc/net/fib_trie": trie("192.0.2.2") } });
  const state = memoryState();
  const ending = new AbortController();
  const recorded = { apiAddress: "192.0.2.2", peerAddress: "192.0.2.2", nodeIp: "192.0.2.2" };
  const changes = plan.map(
    ([seconds, ...addresses]) => [seconds, () => host.put("/proc/net/fib_trie", trie(...addresses))] as const,
  );
  const endS = plan.at(-1)?.[0] ?? 0;
  const timed = withTimeline(host, [...changes, [endS, () => ending.abort()]]);
  const watch = {
    host: timed,
    state,
    recorded: () => recorded,
    memoryPath: "/run/corium/addresses.json",
    say: () => {},
  };
  await watchAddresses(watch, ending.signal);
  return { said: state.events.last().map(({ kind, message }) => `${kind}: ${message}`), calls: host.calls };
}

test("B181: another lease: the address that is gone is said once, and that it is back", async () => {
  const { said, calls } = await live([
    [100, "192.0.2.77"],
    [1_000, "192.0.2.77", "192.0.2.2"],
    [1_100, "192.0.2.2"],
  ]);
  expect(said).toEqual([
    "address-gone: address 192.0.2.2 is on no interface; this node was bootstrapped with it, and k0s is not started without",
    "address-back: address 192.0.2.2 is there again",
  ]);
  expect(calls.filter((call) => call.startsWith("exec"))).toEqual([]);
});

test("an address that comes late at boot, or is away for a moment, is not worth a word", async () => {
  const { said } = await live([[0], [40, "192.0.2.2"], [200], [210, "192.0.2.2"], [300, "192.0.2.2"]]);
  expect(said).toEqual([]);
});

test("B185: addresses that come to the link later, of services or the virtual one, are no event and restart nothing", async () => {
  const { said, calls } = await live([
    [100, "192.0.2.2", "192.0.2.50"],
    [200, "192.0.2.2", "192.0.2.50", "198.51.100.7"],
    [300, "192.0.2.2"],
  ]);
  expect(said).toEqual([]);
  expect(calls.filter((call) => /^(?:exec|systemd)/.test(call))).toEqual([]);
});
