import { describe, expect, test } from "bun:test";
import type { Document } from "../config/document.ts";
import { fail } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import { ok } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import { fillSecrets } from "../k0s/fill.ts";
import { renderNode } from "../provision/render.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { fakeHost, type FakeHost, MachineDied } from "../test/support/fake-host.ts";
import { type FakeK0s, fakeK0s } from "../test/support/fake-k0s.ts";
import { applyDocument, type ApplyOutcome, type ApplyPorts, finishRecorded } from "./driver.ts";
import { planApply } from "./plan.ts";
import { recoverApply } from "./undo/driver.ts";
import { sha256Of } from "../kit/sha256.ts";

/** A boot for each call, on a machine that may be busy. */
const MANY_BOOTS_MS = 120_000;

const ingress = { name: "ingress", chart: "oci://registry.example.com/ingress", namespace: "default" };
const stack = (name: string, text = "a") => ({
  name,
  files: [
    {
      name: "ns.yaml",
      content: `{apiVersion: v1, kind: Namespace, metadata: {name: ${name}, labels: {x: ${text}}}}\n`,
    },
  ],
});
/** With a password that only its source knew. */
const ha = { enabled: true, virtualIP: "192.0.2.9/24", authPassFrom: { file: "/run/vrrp" }, unicastPeers: [] };

const before = makeDocument({
  role: "controller",
  ha,
  manifests: [stack("site")],
  upgrades: { automatic: "download", schedule: "daily" },
});
const after = makeDocument({
  role: "controller",
  ha,
  addons: [ingress],
  manifests: [stack("site", "b"), stack("extra")],
  upgrades: { automatic: "none", schedule: "daily" },
});
const text = (document: Document): string => `# ${document.addons.length}\n${JSON.stringify(document)}`;

const node = { hostname: "c1", machineId: "0123456789", addresses: { apiAddress: "192.0.2.2" } };
const secrets = new Map([["ha.authPassFrom", new Secret("ha.authPassFrom", "s3cr3t")]]);

/** A node in service with `before`; `recorded` is its database. */
class Node {
  readonly fake: FakeHost;
  readonly k0s: FakeK0s;
  recorded = { text: text(before), sha256: sha256Of(text(before)), rendered: {} as Readonly<Record<string, string>> };
  readonly messages: string[] = [];
  readonly steps: string[] = [];

  constructor(k0s: FakeK0s = fakeK0s({ slowness: 0 })) {
    this.k0s = k0s;
    this.fake = fakeHost({ programs: { k0s: k0s.program } });
    for (const rendered of renderNode({ document: before, ...node }).files) {
      const file = fillSecrets(rendered, secrets);
      if (!file.ok) throw new Error(file.error.message);
      this.fake.put(file.value.path, file.value.content, { mode: file.value.mode });
      // What is written through the port is durable and kept; the fixture does the same by hand.
      if (file.value.path.startsWith("/etc/")) {
        this.fake.put(`/var/lib/corium${file.value.path}`, file.value.content, { mode: file.value.mode });
      }
    }
    this.fake.put("/etc/corium/config.yaml", text(before), { mode: 0o600 });
    this.fake.put("/var/lib/corium/etc/corium/config.yaml", text(before), { mode: 0o600 });
    const unit = {
      subState: "running",
      loadState: "loaded",
      isEnabled: true,
      restarts: 0,
      result: "success",
      mainPid: 9,
      journal: [],
    };
    this.fake.unitTable.set("k0scontroller.service", { ...unit, activeState: "active" });
    this.fake.unitTable.set("corium-upgrade.timer", { ...unit, activeState: "active" });
    this.fake.sync();
  }

  ports(host: Host = this.fake): ApplyPorts {
    return {
      host,
      paths: { stateDir: "/var/lib/corium", config: "/etc/corium/config.yaml" },
      report: (message) => void this.messages.push(message),
      onStep: ({ id }, state) => void this.steps.push(`${id} ${state}`),
      record: ({ rendered }) => {
        this.recorded = { text: text(after), sha256: sha256Of(text(after)), rendered };
        return ok(undefined);
      },
    };
  }

  apply(
    to: Document = after,
    more: { host?: Host; ports?: Partial<ApplyPorts>; from?: Document } = {},
  ): Promise<ApplyOutcome> {
    const plan = planApply({ baseline: more.from ?? before, proposal: to, node, fingerprintKey: "key" });
    const ports = { ...this.ports(more.host), ...more.ports };
    return applyDocument(
      {
        operation: "op1",
        plan,
        document: to,
        text: text(to),
        secrets: new Map(),
        rendered: {},
        sourceSha256: sha256Of(text(more.from ?? before)),
        inputsWith: () => ({ inputHash: "x", secretFingerprints: {} }),
      },
      ports,
    );
  }

  async recover(host: Host = this.fake): Promise<readonly { readonly outcome: string }[]> {
    const done = await recoverApply({
      mountPoints: [],
      host,
      stateDir: "/var/lib/corium",
      isAwaited: () => false,
      isRecorded: (hash) => this.recorded.sha256 === hash,
      finish: (record) => finishRecorded(this.ports(host), this.recorded, record),
    });
    if (!done.ok) throw new Error(done.error.message);
    return done.value;
  }

  /** Everything an operator could see of it, without what an undo keeps and what is in RAM. */
  shape(): Record<string, unknown> {
    const files = this.fake.paths().filter((path) => !/^\/(?:var\/lib\/corium\/undo|run)\//.test(path));
    const timer = this.fake.unitTable.get("corium-upgrade.timer");
    return {
      files: Object.fromEntries(files.map((path) => [path, this.fake.text(path)])),
      folders: ["site", "extra"].filter((name) => this.fake.paths(`/var/lib/k0s/manifests/${name}/`).length > 0),
      recorded: this.recorded.sha256,
      timer: timer?.isEnabled === true && timer.activeState === "active",
    };
  }
}

const asBefore = new Node().shape();
const asAfter = await (async () => {
  const done = new Node();
  expect((await done.apply()).status).toBe("reconciled");
  return done.shape();
})();

test("an apply writes what changed, restarts k0scontroller once, records, and keeps source 1", async () => {
  const one = new Node();
  expect(await one.apply()).toEqual({
    status: "reconciled",
    restarted: ["k0scontroller"],
    written: [
      "/etc/k0s/k0s.yaml",
      "/etc/systemd/system/corium-upgrade.service",
      "/etc/systemd/system/corium-upgrade.timer",
      "/var/lib/k0s/manifests/extra/ns.yaml",
      "/var/lib/k0s/manifests/site/ns.yaml",
    ],
  });
  expect(one.fake.text("/etc/k0s/k0s.yaml")).toContain("oci://registry.example.com/ingress");
  expect(one.fake.text("/etc/k0s/k0s.yaml")).toContain('authPass: "s3cr3t"');
  expect(one.fake.text("/etc/corium/config.yaml")).toBe(text(after));
  expect(one.fake.calls.filter((call) => call.startsWith("systemd.restart"))).toEqual([
    "systemd.restart k0scontroller.service",
  ]);
  expect(one.fake.text("/etc/systemd/system/corium-upgrade.timer")).toBeUndefined();
  expect(one.recorded.rendered["/etc/k0s/k0s.yaml"]).toBe(sha256Of(one.fake.text("/etc/k0s/k0s.yaml") ?? ""));
  expect(one.steps.filter((line) => line.endsWith("done"))).toEqual([
    "apply:check done",
    "apply:snapshot done",
    "apply:write done",
    "apply:restart:k0scontroller done",
    "apply:record done",
  ]);
});

test("unchanged: nothing is called at all", async () => {
  const one = new Node();
  expect(await one.apply(before)).toEqual({ status: "unchanged" });
  expect(one.fake.calls).toEqual([]);
});

test("manifests and timers alone restart nothing of k0s", async () => {
  const one = new Node();
  const to = {
    ...before,
    manifests: [stack("site", "b")],
    upgrades: { automatic: "apply", schedule: "weekly" } as const,
  };
  expect(await one.apply(to)).toMatchObject({ status: "reconciled", restarted: [] });
  expect(one.fake.calls.filter((call) => call.includes("k0scontroller"))).toEqual([]);
  expect(one.fake.calls).toContain("systemd.restart corium-upgrade.timer");
});

test("refused: nothing is called at all", async () => {
  const one = new Node();
  expect((await one.apply({ ...after, node: { name: "other", labels: {}, taints: [] } })).status).toBe("failed");
  expect(one.fake.calls).toEqual([]);
});

describe("k0s does not come back", () => {
  test("B171: files restored, k0s restarted with the old ones, the journal told", async () => {
    const one = new Node(fakeK0s({ slowness: 0, poison: "ingress" }));
    const outcome = await one.apply();
    expect(outcome.status).toBe("rolled-back");
    expect(outcome).toMatchObject({ error: { details: ["component=kube-apiserver unknown flag"] } });
    expect(one.shape()).toEqual(asBefore);
    expect(one.fake.calls.filter((call) => call === "systemd.restart k0scontroller.service")).toHaveLength(2);
    expect(await one.recover()).toEqual([]);
  });

  test("a timer that came and a stack's folder that came go again", async () => {
    const one = new Node(fakeK0s({ slowness: 0, poison: "ingress" }));
    one.fake.unitTable.delete("corium-upgrade.timer");
    for (const unit of ["service", "timer"]) {
      one.fake.drop(`/etc/systemd/system/corium-upgrade.${unit}`);
      one.fake.drop(`/var/lib/corium/etc/systemd/system/corium-upgrade.${unit}`);
    }
    const baseline = { ...before, upgrades: { automatic: "none", schedule: "daily" } as const };
    const proposal = { ...after, upgrades: { automatic: "apply", schedule: "daily" } as const };
    const asItWas = one.shape();
    expect((await one.apply(proposal, { from: baseline })).status).toBe("rolled-back");
    expect(one.shape()).toEqual(asItWas);
    expect(one.fake.calls).toContain("systemd.enable corium-upgrade.timer");
    expect(one.fake.unitTable.get("corium-upgrade.timer")).toMatchObject({ isEnabled: false, activeState: "inactive" });
    // An empty folder of a stack that k0s owns too would prune it.
    expect(one.fake.calls).toContain("files.remove /var/lib/k0s/manifests/extra");
  });

  test("k0s refuses the config: nothing is changed, k0s keeps running", async () => {
    const one = new Node(fakeK0s({ slowness: 0, invalid: "ingress" }));
    expect(await one.apply()).toMatchObject({ status: "failed", error: { code: "k0s-config" } });
    expect(one.shape()).toEqual(asBefore);
    expect(one.fake.calls.some((call) => call.startsWith("systemd."))).toBe(false);
  });

  test("the baseline can't be recorded: everything is put back", async () => {
    const one = new Node();
    const outcome = await one.apply(after, { ports: { record: () => fail("state", "the disk is full") } });
    expect(outcome).toMatchObject({ status: "rolled-back", error: { message: "the disk is full" } });
    expect(one.shape()).toEqual(asBefore);
  });
});

describe("the disk is full when the files are to be put back", () => {
  /** What is written or removed from then on fails, until somebody makes room after this long. */
  function full(one: Node, roomAfterMs: number): { readonly host: Host; readonly fill: () => void } {
    let untilMs = 0;
    const { fake } = one;
    const write: Host["files"]["write"] = async (...given) =>
      fake.clock.monotonicMs() < untilMs ? fail("ENOSPC", "no space is left") : fake.files.write(...given);
    const fill = (): void => {
      untilMs = fake.clock.monotonicMs() + roomAfterMs;
    };
    return { host: { ...fake, files: { ...fake.files, write } }, fill };
  }
  async function applyOn(one: Node, roomAfterMs: number): Promise<ApplyOutcome> {
    const { host, fill } = full(one, roomAfterMs);
    const record: ApplyPorts["record"] = () => {
      fill();
      return fail("state", "the disk is full");
    };
    return one.apply(after, { host, ports: { record } });
  }

  test("a change that nobody confirmed stayed half made until somebody came: it is put back when there is room", async () => {
    const one = new Node();
    expect(await applyOn(one, 90_000)).toMatchObject({ status: "rolled-back", error: { message: "the disk is full" } });
    expect(one.shape()).toEqual(asBefore);
    expect(one.messages).toContain("the files can't be put back yet, and it is tried again: no space is left");
    expect(await one.recover()).toEqual([]);
  });

  test("it stays full: the operation ends, and the next start puts it back", async () => {
    const one = new Node();
    const outcome = await applyOn(one, 24 * 3600_000);
    expect(outcome).toMatchObject({ status: "stuck", error: { cause: { message: "no space is left" } } });
    expect(one.shape()).not.toEqual(asBefore);
    expect(await one.recover()).toEqual([expect.objectContaining({ outcome: "undone" })]);
    expect(one.shape()).toEqual(asBefore);
  });
});

test("a file that can't be kept fails the apply before anything is replaced", async () => {
  const one = new Node();
  one.fake.drop("/var/lib/k0s/manifests/site/ns.yaml");
  one.fake.put("/var/lib/k0s/manifests/site/ns.yaml/inside", "x");
  expect((await one.apply()).status).toBe("failed");
  expect(one.fake.text("/etc/k0s/k0s.yaml")).not.toContain("ingress");
});

test("of finished sets the newest three stay", async () => {
  const one = new Node();
  for (let count = 0; count < 5; count += 1) {
    one.fake.setNow(Date.UTC(2026, 1, 1 + count));
    one.fake.put(
      `/var/lib/corium/undo/old${count}/record.json`,
      JSON.stringify({ operation: `old${count}`, atMs: count, state: "applied", files: [] }),
    );
  }
  await one.apply();
  const left = new Set(one.fake.paths("/var/lib/corium/undo/").map((path) => path.split("/")[5]));
  expect(left).toEqual(new Set(["old3", "old4", "op1"]));
});

describe("helm", () => {
  const single = (more: Partial<Document> = {}) => makeDocument({ role: "single", ...more });

  test("B113: an apply is over when the release is there", async () => {
    const one = new Node();
    expect(await one.apply(single({ addons: [ingress] }), { from: single() })).toMatchObject({ status: "reconciled" });
    expect(one.steps.at(-1)).toBe("apply:charts done");
    expect(one.fake.calls.filter((call) => call.includes("get charts.helm.k0sproject.io")).length).toBeGreaterThan(1);
  });

  test("B115: a chart that fails by itself: helm's words, nothing undone", async () => {
    const k0s = fakeK0s({ slowness: 0 });
    k0s.badChart = "ingress";
    const one = new Node(k0s);
    const outcome = await one.apply(single({ addons: [ingress] }), { from: single() });
    expect(outcome).toMatchObject({
      status: "chart-failed",
      error: { message: "chart ingress fails: can't locate chart" },
    });
    expect(one.fake.text("/etc/k0s/k0s.yaml")).toContain("oci://registry.example.com/ingress");
    expect(await one.recover()).toEqual([]);
  });

  test("another URL of a repository makes no release to wait for", () => {
    const from = (url: string) =>
      single({ addons: [{ ...ingress, chart: "in/ingress", repository: { name: "in", url } }] });
    const plan = planApply({
      baseline: from("https://a.example.com"),
      proposal: from("https://b.example.com"),
      node,
      fingerprintKey: "k",
    });
    expect(plan).toMatchObject({ restarts: ["k0scontroller"], charts: [] });
  });
});

describe("died at any call, the node is as before or as after, never between", () => {
  for (const when of ["before", "after"] as const) {
    test(
      `power lost ${when} the call`,
      async () => {
        for (let at = 1; ; at += 1) {
          const one = new Node();
          one.fake.dieAt(at, when);
          let isThrough = true;
          await one.apply().catch((error: unknown) => {
            if (!(error instanceof MachineDied)) throw error;
            isThrough = false;
          });
          if (!isThrough) {
            one.fake.boot();
            await one.recover();
          }
          expect(one.shape()).toEqual(one.recorded.sha256 === sha256Of(text(after)) ? asAfter : asBefore);
          if (isThrough) break;
          expect(await one.recover()).toEqual([]);
          expect(at).toBeLessThan(300);
        }
      },
      MANY_BOOTS_MS,
    );
  }

  test(
    "power lost a second time, during the recovery",
    async () => {
      for (let first = 1; ; first += 1) {
        for (let second = 1; ; second += 1) {
          const one = new Node();
          one.fake.dieAt(first, "after");
          const isThrough = await one.apply().then(
            () => true,
            () => false,
          );
          if (isThrough) return;
          one.fake.boot();
          one.fake.dieAt(second, "after");
          const isRecovered = await one.recover().then(
            () => true,
            () => false,
          );
          if (!isRecovered) {
            one.fake.boot();
            await one.recover();
          }
          expect(one.shape()).toEqual(one.recorded.sha256 === sha256Of(text(after)) ? asAfter : asBefore);
          if (isRecovered) break;
        }
      }
    },
    MANY_BOOTS_MS,
  );

  test(
    "the process killed, k0s going on",
    async () => {
      for (let at = 1; ; at += 1) {
        const one = new Node();
        let isThrough = true;
        await one.apply(after, { host: killedAt(one.fake, at) }).catch(() => (isThrough = false));
        if (!isThrough) await one.recover();
        expect(one.shape()).toEqual(one.recorded.sha256 === sha256Of(text(after)) ? asAfter : asBefore);
        expect(one.fake.unitTable.get("k0scontroller.service")?.activeState).toBe("active");
        if (isThrough) break;
      }
    },
    MANY_BOOTS_MS,
  );
});

/** The same machine, seen by a process that is killed at its nth call. */
function killedAt(fake: FakeHost, at: number): Host {
  let left = at;
  const mortal = <T extends object>(port: T): T =>
    new Proxy(port, {
      get(target, name) {
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== "function") return member;
        return (...args: readonly unknown[]) => {
          if (name !== "nowMs" && name !== "monotonicMs" && (left -= 1) <= 0) throw new Error("killed");
          return (member as (...given: readonly unknown[]) => unknown).apply(target, [...args]);
        };
      },
    });
  return {
    ...fake,
    exec: async (request) => {
      if ((left -= 1) <= 0) throw new Error("killed");
      return fake.exec(request);
    },
    files: mortal(fake.files),
    systemd: mortal(fake.systemd),
    clock: fake.clock,
  };
}
