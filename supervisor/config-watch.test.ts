import { expect, setDefaultTimeout, test } from "bun:test";
import type { ConfigReason } from "../api/contract.ts";
import { parseDocument } from "../config/load.ts";
import { nodePaths } from "../kit/paths.ts";
import type { EventRecord } from "../state/model.ts";
import { memoryState } from "../state/open.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { recordBaseline } from "../test/support/in-service.ts";
import { configWatcher } from "./config-watch.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const paths = nodePaths();
const TEXT = `role: controller
cluster: { name: shop, endpoint: 192.0.2.9 }
ha:
  enabled: true
  virtualIP: 192.0.2.9/24
  interface: eno1
  authPassFrom: { file: /etc/corium/vrrp }
`;
const file = (path: string): ConfigReason => ({ code: "file-changed", message: `${path} was changed`, path });
const edited: ConfigReason = { code: "document-edited", message: "edited", path: paths.config, class: "reboot-free" };

/** A watcher without any polling: what it says, it says because a file or an operation told it. */
function rig() {
  const state = memoryState();
  recordBaseline(state, TEXT, { rendered: { "/etc/k0s/k0s.yaml": "x" } });
  const host = fakeHost();
  const { document } = parseDocument(TEXT, { nowMs: 0 });
  let reasons: readonly ConfigReason[] = [];
  let looks = 0;
  let touch = (): void => undefined;
  let watched: readonly string[] = [];
  const begin = (before: () => Promise<void> = async () => undefined) => {
    const ending = new AbortController();
    const watcher = configWatcher({
      host,
      state,
      paths,
      keptConfig: `${paths.keptEtc}/corium/config.yaml`,
      document: () => document,
      say: () => undefined,
      read: async () => {
        looks += 1;
        await before();
        return { state: reasons.length === 0 ? "in-sync" : "drifted", reasons };
      },
      watchPaths: (now, onChange) => {
        watched = now;
        touch = onChange;
        return { close: () => undefined };
      },
    });
    const running = watcher.run(ending.signal);
    return {
      watcher,
      stop: async () => {
        ending.abort();
        await running;
      },
    };
  };
  return {
    host,
    state,
    begin,
    looks: () => looks,
    watched: () => watched,
    /** On the disk, and its watch tells it. */
    change: async (now: readonly ConfigReason[]) => {
      reasons = now;
      touch();
      await quiet();
    },
    say: (now: readonly ConfigReason[]) => {
      reasons = now;
    },
    told: () => state.events.last().map(({ kind, message }: EventRecord) => `${kind}: ${message}`),
  };
}

/** Everything that does not wait for the outside has happened: sleeps of the fake clock are one turn each. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((go) => setImmediate(go));
}

test("a document that was edited by hand was as before after a boot: it is kept, but not what an apply is about to undo", async () => {
  const one = rig();
  const kept = `${paths.keptEtc}/corium/config.yaml`;
  one.host.put(paths.config, TEXT);
  const { stop } = one.begin();
  await quiet();
  expect(one.host.text(kept)).toBe(TEXT);
  one.host.put(paths.config, `${TEXT}# by hand`);
  await one.change([edited]);
  expect([one.host.text(kept), one.host.text(paths.config)]).toEqual([`${TEXT}# by hand`, `${TEXT}# by hand`]);
  one.host.drop(paths.config);
  await one.change([edited]);
  expect(one.host.text(kept)).toBe(`${TEXT}# by hand`);
  const requester = { kind: "local" } as const;
  const begun = one.state.operations.begin({ kind: "apply", requester, version: "1", atMs: 0 });
  one.host.put(paths.config, "half of an apply");
  await one.change([edited]);
  expect([begun.ok, one.host.text(kept)]).toEqual([true, `${TEXT}# by hand`]);
  await stop();
});

test("a touched file is told within 15 s with polling off, once, and its end too", async () => {
  const one = rig();
  const { stop } = one.begin();
  await quiet();
  expect(one.told()).toEqual([]);
  const before = one.host.clock.monotonicMs();
  await one.change([file("/etc/hosts")]);
  expect(one.host.clock.monotonicMs() - before).toBeLessThanOrEqual(15_000);
  expect(one.told()).toEqual(["config-drifted: /etc/hosts was changed"]);
  await one.change([file("/etc/hosts")]);
  await one.change([file("/etc/hosts"), edited]);
  await one.change([edited]);
  await one.change([]);
  expect(one.told()).toEqual([
    "config-drifted: /etc/hosts was changed",
    "config-pending: edited",
    "config-in-sync: the node is what was applied again",
  ]);
  await stop();
});

test("source 1, what was rendered and secrets in files are watched, and what an apply brings", async () => {
  const one = rig();
  const { watcher, stop } = one.begin();
  await quiet();
  expect(one.watched()).toEqual([paths.config, "/etc/corium/vrrp", "/etc/k0s/k0s.yaml", paths.marker].toSorted());
  recordBaseline(one.state, TEXT, { rendered: { "/etc/k0s/k0s.yaml": "y", "/etc/systemd/system/a.timer": "z" } });
  watcher.wake();
  await quiet();
  expect(one.watched()).toContain("/etc/systemd/system/a.timer");
  await stop();
});

test("without a touch nothing is looked at, and nothing is ever written but what it remembers", async () => {
  const one = rig();
  const { stop } = one.begin();
  await quiet();
  const looks = one.looks();
  one.say([file("/etc/hosts")]);
  await quiet();
  expect(one.looks()).toBe(looks);
  await one.change([file("/etc/hosts")]);
  const isExpected = (call: string): boolean => call.startsWith("files.readText") || call.includes("config-state.json");
  expect(one.host.calls.filter((call) => !isExpected(call))).toEqual([]);
  await stop();
});

test("what is gone at the second look was a moment's", async () => {
  const one = rig();
  const { stop } = one.begin();
  await quiet();
  const { clock } = one.host;
  const sleep = clock.sleep.bind(clock);
  Object.assign(clock, {
    sleep: async (ms: number, signal?: AbortSignal) => {
      if (ms === 2_000) one.say([]);
      await sleep(ms, signal);
    },
  });
  await one.change([{ code: "unit-changed", message: "k0scontroller.service is inactive", path: "k0scontroller" }]);
  expect(one.told()).toEqual([]);
  await stop();
});

test("an apply that writes is no drift, and what it leaves is told at its end", async () => {
  const one = rig();
  const { watcher, stop } = one.begin();
  await quiet();
  const begun = one.state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
  if (!begun.ok) throw new Error("busy");
  await one.change([file("/etc/hosts")]);
  expect(one.told()).toEqual([]);
  one.state.operations.end(begun.value.id, { phase: "failed", failureReason: "x" }, 2);
  watcher.wake();
  await quiet();
  expect(one.told()).toEqual(["config-drifted: /etc/hosts was changed"]);
  await stop();
});

test("a restarted daemon does not say it again, a restarted machine does, and not before it is up", async () => {
  const one = rig();
  const first = one.begin();
  await one.change([file("/etc/hosts")]);
  await first.stop();
  const second = one.begin();
  await quiet();
  await second.stop();
  expect(one.told()).toHaveLength(1);
  one.host.boot();
  const third = one.begin();
  await quiet();
  expect(one.told()).toHaveLength(2);
  expect(one.host.clock.monotonicMs()).toBeGreaterThanOrEqual(60_000);
  await third.stop();
});

test("whoever stops the program does not wait for a look, and is told nothing after that", async () => {
  const one = rig();
  const slow = Promise.withResolvers<void>();
  const { stop } = one.begin(() => slow.promise);
  await one.change([file("/etc/hosts")]);
  await stop();
  slow.resolve();
  await quiet();
  expect(one.told()).toEqual([]);
});

test("many at once are not a flood", async () => {
  const one = rig();
  const { stop } = one.begin();
  await quiet();
  await one.change(Array.from({ length: 40 }, (_, at) => file(`/etc/${at}`)));
  expect(one.told()).toHaveLength(6);
  expect(one.told().at(-1)).toContain("and 35 more");
  await stop();
});
