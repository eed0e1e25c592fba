import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Baseline } from "../../state/model.ts";
import type { FakeHost } from "../../test/support/fake-host.ts";
import { MachineDied } from "../../test/support/fake-host.ts";
import { type GateService, gateService, removeServices } from "../../test/support/gate-service.ts";
import { recoverApplies } from "../recovery/driver.ts";
import { RENDER_VERSION } from "../render-version.ts";
import { rerender } from "./driver.ts";
import { sha256Of } from "../../kit/sha256.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);
afterEach(removeServices);

const CONFIG = "/etc/k0s/k0s.yaml";
const SITE = "/var/lib/k0s/manifests/site/ns.yaml";
const TIMER = "/etc/systemd/system/corium-upgrade.timer";
const DOCUMENT = `role: single
node: {name: n1}
upgrades: {automatic: download}
manifests:
  - name: site
    files: [{name: ns.yaml, content: "apiVersion: v1\\nkind: Namespace\\nmetadata: {name: site}\\n"}]
`;
const OLD = "# of the old renderer\n";

interface Upgraded extends GateService {
  /** As this release renders them. */
  readonly now: ReadonlyMap<string, string>;
  readonly run: () => ReturnType<typeof rerender>;
}

/** The first boot of this release on a node whose files the last one rendered, k0s not started yet. */
function upgraded(changed: readonly string[], document = DOCUMENT): Upgraded {
  const one = gateService(document);
  const now = new Map(changed.map((path) => [path, one.fake.text(path) ?? ""]));
  const baseline = baselineOf(one);
  const rendered: Record<string, string> = { ...baseline.rendered };
  for (const path of changed) {
    putBoth(one.fake, path, OLD);
    rendered[path] = sha256Of(OLD);
  }
  one.state().baseline.set({ ...baseline, rendered, renderVersion: RENDER_VERSION - 1 });
  const k0s = one.fake.unitTable.get("k0scontroller.service");
  if (k0s !== undefined) k0s.activeState = "inactive";
  one.fake.sync();
  return { ...one, now, run: () => rerender({ ...one.dependencies, state: one.state() }) };
}

const baselineOf = (one: Pick<GateService, "state">): Baseline => {
  const baseline = one.state().baseline.get();
  if (baseline === undefined) throw new Error("no baseline");
  return baseline;
};

function putBoth(fake: FakeHost, path: string, content: string): void {
  fake.put(path, content);
  if (path.startsWith("/etc/")) fake.put(`/var/lib/corium${path}`, content);
}

const operations = (one: GateService): readonly string[] =>
  one
    .state()
    .operations.list()
    .map(({ kind, phase }) => `${kind} ${phase}`);

test("what k0s reads and timers are written anew, once, as an operation of the node's own", async () => {
  const one = upgraded([CONFIG, SITE, TIMER]);
  expect(await one.run()).toBe("succeeded");
  for (const path of [CONFIG, SITE, TIMER]) expect(one.fake.text(path)).toBe(one.now.get(path) ?? "");
  const baseline = baselineOf(one);
  expect([baseline.renderVersion, baseline.k0sVersion]).toEqual([RENDER_VERSION, "v1.36.3+k0s.2"]);
  expect(baseline.rendered[CONFIG]).toBe(sha256Of(one.now.get(CONFIG) ?? ""));
  expect(operations(one)).toEqual(["render succeeded"]);
  expect(one.state().operations.list()[0]?.requester).toEqual({ kind: "document" });
  const calls = one.fake.calls.length;
  expect(await one.run()).toBeUndefined();
  expect(one.fake.calls.length).toBe(calls);
  // k0s starts by itself, after this.
  expect(one.fake.calls.filter((call) => /start k0s/.test(call))).toEqual([]);
});

test("a database that fails at the record: everything is as before", async () => {
  const one = upgraded([CONFIG, SITE]);
  const state = one.state();
  const full = (): never => {
    throw new Error("database or disk is full");
  };
  const failing = { ...state, baseline: { ...state.baseline, set: full } };
  expect(await rerender({ ...one.dependencies, state: failing })).toBe("failed");
  expect([one.fake.text(CONFIG), one.fake.text(SITE)]).toEqual([OLD, OLD]);
  expect(one.state().operations.list()[0]?.failureReason).toContain("disk is full");
});

test("what is read at boot only is left, named, and tried no second time; k0s.yaml is written all the same", async () => {
  const one = upgraded([CONFIG, "/etc/hosts"]);
  expect(await one.run()).toBe("succeeded");
  expect([one.fake.text("/etc/hosts"), one.fake.text(CONFIG)]).toEqual([OLD, one.now.get(CONFIG)]);
  expect(baselineOf(one).renderVersion).toBe(RENDER_VERSION - 1);
  expect(one.state().events.last().at(-1)?.message).toContain("left for a later change: /etc/hosts");
  expect(await one.run()).toBeUndefined();
  expect(operations(one)).toEqual(["render succeeded"]);
});

test("the same release, an older one, a node whose k0s runs: nothing is done", async () => {
  const same = gateService(DOCUMENT);
  expect(await rerender(same.dependencies)).toBeUndefined();
  expect(await rerender({ ...same.dependencies, renderVersion: RENDER_VERSION - 1 })).toBeUndefined();
  expect(same.fake.calls).toEqual([]);
  const running = upgraded([CONFIG]);
  const k0s = running.fake.unitTable.get("k0scontroller.service");
  if (k0s !== undefined) k0s.activeState = "active";
  expect(await running.run()).toBeUndefined();
  expect(running.fake.text(CONFIG)).toBe(OLD);
});

test("a file that was changed by hand is kept before it is replaced; one that renders the same stays as it is", async () => {
  const one = upgraded([CONFIG]);
  putBoth(one.fake, CONFIG, "mine\n");
  putBoth(one.fake, TIMER, "mine too\n");
  expect(await one.run()).toBe("succeeded");
  expect(one.fake.text(CONFIG)).toBe(one.now.get(CONFIG) ?? "");
  expect(one.fake.text(TIMER)).toBe("mine too\n");
  const copies = one.fake.paths("/var/lib/corium/by-hand");
  expect(copies.map((path) => one.fake.text(path))).toEqual(["mine\n"]);
});

test("k0s refuses what was rendered: nothing is changed, and that is said", async () => {
  const one = upgraded([CONFIG]);
  const k0s = one.fake.programs.get("k0s");
  one.fake.programs.set("k0s", (request, fake) =>
    request.argv.includes("validate") ? { exitCode: 1, stderr: "Error: spec.x\n" } : (k0s?.(request, fake) ?? ""),
  );
  expect(await one.run()).toBe("failed");
  expect([one.fake.text(CONFIG), baselineOf(one).renderVersion]).toEqual([OLD, RENDER_VERSION - 1]);
  expect(operations(one)).toEqual(["render failed"]);
});

test("beneath a data disk that does not come nothing is written; one that comes late is waited for", async () => {
  const disk = `${DOCUMENT}disks: [{name: data, device: /dev/vdb, filesystem: ext4, mountPoint: /var/lib/k0s}]\n`;
  const never = upgraded([CONFIG, SITE], disk);
  expect(await never.run()).toBe("succeeded");
  expect([never.fake.text(SITE), never.fake.text(CONFIG)]).toEqual([OLD, never.now.get(CONFIG)]);
  const late = upgraded([SITE], disk);
  const { clock } = late.fake;
  const sleep = clock.sleep.bind(clock);
  Object.assign(clock, {
    sleep: async (ms: number) => {
      await sleep(ms);
      await late.fake.systemd.start("var-lib-k0s.mount");
    },
  });
  expect(await late.run()).toBe("succeeded");
  expect(late.fake.text(SITE)).toBe(late.now.get(SITE) ?? "");
});

describe("power is lost", () => {
  /** After it the node starts again: what was left is undone or finished, and then it is tried again. */
  async function cutAt(call: number, when: "before" | "during" | "after"): Promise<boolean> {
    const one = upgraded([CONFIG, SITE, TIMER]);
    one.fake.dieAt(call, when);
    let isOver = false;
    try {
      await one.run();
      isOver = true;
    } catch (error) {
      if (!(error instanceof MachineDied)) throw error;
    }
    one.fake.boot();
    const k0s = one.fake.unitTable.get("k0scontroller.service");
    if (k0s !== undefined) k0s.activeState = "inactive";
    const again = one.reopen();
    expect((await recoverApplies(again)).ok).toBe(true);
    const between = baselineOf(one);
    const is = [CONFIG, SITE, TIMER].map((path) => sha256Of(one.fake.text(path) ?? "") === between.rendered[path]);
    expect([call, when, is]).toEqual([call, when, [true, true, true]]);
    expect(one.state().operations.running()).toBeUndefined();
    await rerender({ ...again, state: one.state() });
    for (const path of [CONFIG, SITE, TIMER]) expect([call, one.fake.text(path)]).toEqual([call, one.now.get(path)]);
    expect(baselineOf(one).renderVersion).toBe(RENDER_VERSION);
    return isOver;
  }

  test("at any call: the files are those that are recorded, and the next start makes it whole", async () => {
    let cuts = 0;
    for (const when of ["before", "during", "after"] as const) {
      for (let call = 1; !(await cutAt(call, when)); call += 1) cuts += 1;
    }
    expect(cuts).toBeGreaterThan(30);
  });
});
