import { expect, test } from "bun:test";
import { memoryState } from "../state/open.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { withTimeline } from "../test/support/timeline.ts";
import type { WatchedOverlay } from "../wireguard/watch.ts";
import { overlayWatcher } from "./overlay-watch.ts";

const key = "STD2rTn0C9aHb+DNkcYnXFbNPo2gHX9/sCGGnafboTE=";
const startMs = 1_800_000_000_000;
const wg0: WatchedOverlay = {
  name: "wg0",
  address: ["10.10.0.1/24"],
  peers: [{ publicKey: key, endpoint: "hub.example.net:51820", allowedIPs: ["10.10.0.2/32"] }],
};

/** A hub that changes its address, and a kernel that follows what `wg set` says. */
function machine() {
  const kernel = { endpoint: "192.0.2.1:51820", hubAt: "192.0.2.1", heardAt: startMs / 1000, sent: 0, rx: 100 };
  const host = fakeHost({
    nowMs: startMs,
    programs: {
      wg: ({ argv }, fake) => {
        if (argv[1] === "set") kernel.endpoint = argv.at(-1) ?? "";
        const isReached = kernel.endpoint.startsWith(kernel.hubAt);
        if (isReached) kernel.heardAt = fake.clock.nowMs() / 1000;
        kernel.sent += 148;
        return `wg0\tPRIVATE\tPUBLIC\t51820\toff\nwg0\t${key}\t(none)\t${kernel.endpoint}\t10.10.0.2/32\t${kernel.heardAt}\t${kernel.rx}\t${kernel.sent}\t25\n`;
      },
      getent: () => `${kernel.hubAt}  STREAM hub\n`,
      ping: () => "",
    },
  });
  return { host, kernel };
}

const told = (state: ReturnType<typeof memoryState>): string[] =>
  state.events.since(0).map(({ kind, message }) => `${kind}: ${message}`);

test("B035, B036: a hub that changed its address is found again, and each half minute once looked for", async () => {
  const { host, kernel } = machine();
  const state = memoryState();
  const ending = new AbortController();
  const watcher = overlayWatcher({
    host: withTimeline(host, [
      [61, () => (kernel.hubAt = "192.0.2.9")],
      [601, () => ending.abort()],
    ]),
    state,
    overlays: () => [wg0],
    memoryPath: "/run/corium/overlays.json",
    say: (line) => {
      throw new Error(line);
    },
  });
  await watcher.watch(ending.signal);
  expect(kernel.endpoint).toBe("192.0.2.9:51820");
  expect(told(state)).toContain(
    "overlay-endpoint: overlay wg0: peer hub.example.net moved from 192.0.2.1 to 192.0.2.9",
  );
  const dumps = host.calls.filter((call) => call === "exec wg show all dump").length;
  expect(dumps).toBeLessThanOrEqual(Math.ceil(host.clock.monotonicMs() / 30_000) + 1);
  expect(watcher.memory()[0]).toMatchObject({ overlay: "wg0", seen: "up" });
});

test("a daemon that starts anew does not say again what it said", async () => {
  const { host } = machine();
  const state = memoryState();
  const run = async (): Promise<void> => {
    const ending = new AbortController();
    const timed = withTimeline(host, [[90, () => ending.abort()]]);
    const memoryPath = "/run/corium/overlays.json";
    await overlayWatcher({ host: timed, state, overlays: () => [wg0], memoryPath, say: () => {} }).watch(ending.signal);
  };
  await run();
  await run();
  expect(told(state)).toEqual(["overlay-peer: overlay wg0: peer STD2rTn0… (hub.example.net:51820) is heard"]);
});

test("without an overlay in the document no program is run", async () => {
  const { host } = machine();
  const options = { host, state: memoryState(), overlays: () => [], memoryPath: "/run/x", say: () => {} };
  await overlayWatcher(options).round();
  expect(host.calls).toEqual([]);
});
