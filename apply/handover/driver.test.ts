/** The hand-over on a machine in memory: what is moved, in which order, and what is left when it is cut off. */
import { afterEach, describe, expect, test } from "bun:test";
import { MachineDied } from "../../test/support/fake-host.ts";
import { type FakeK0s, fakeK0s } from "../../test/support/fake-k0s.ts";
import { type GateService, gateService, removeServices } from "../../test/support/gate-service.ts";
import { beginHandover, recoverHandover } from "./driver.ts";
import { type HandoverDependencies, lookAtHandover, type PlannedHandover, planHandover } from "./look/driver.ts";

const CNI = `manifests: [{name: cni, files: [{name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"}]}]
`;
const text = (handover: string, role = "single"): string =>
  `role: ${role}\nnode: {name: n1}\ncluster: {name: shop, endpoint: api.example.com}\nnetwork: {cni: custom, handover: {${handover}}}\n${CNI}`;
const MANUAL = text("mode: manual, stack: cni");
const AUTOMATIC = text("mode: automatic, stack: cni, application: {name: cni, namespace: argocd}");
const FILE = "/var/lib/k0s/manifests/cni/a.yaml";
const KEPT = "/var/lib/k0s/handed-over/cni/a.yaml";
const requester = { kind: "local" } as const;
afterEach(removeServices);

const argo = (k0s: FakeK0s, sync = "Synced", health = "Healthy"): void => {
  const status = { sync: { status: sync }, health: { status: health } };
  k0s.objects.set("applications.argoproj.io argocd/cni", {
    metadata: { name: "cni" },
    spec: { syncPolicy: { automated: {} } },
    status,
  });
};

async function handOver(dependencies: HandoverDependencies): Promise<PlannedHandover> {
  const planned = await planHandover(dependencies);
  if (planned.kind !== "planned") return planned;
  const begun = beginHandover(dependencies, planned.plan, requester);
  if (begun.kind === "begun") await begun.ended;
  return planned;
}

const isWhole = ({ fake }: GateService): "in" | "out" | "neither" =>
  fake.text(FILE) !== undefined && fake.text(KEPT) === undefined
    ? "in"
    : fake.text(FILE) === undefined && fake.text(KEPT) !== undefined
      ? "out"
      : "neither";
const k0sUnit = ({ fake }: GateService) => fake.unitTable.get("k0scontroller.service");
const doings = ({ fake }: GateService): readonly string[] =>
  fake.calls.filter((call) => /^systemd\.(?:stop|start|restart)|^files\.rename/.test(call));

test("k0s is stopped before the folder moves, and started after; the node records what it runs now", async () => {
  const one = gateService(MANUAL);
  const recorded = one.state().baseline.get();
  if (recorded === undefined) throw new Error("no baseline");
  const before = { ...recorded, rendered: { [FILE]: "1", "/etc/k0s/k0s.yaml": "2" } };
  one.state().baseline.set(before);
  await handOver(one.dependencies);
  expect(doings(one)).toEqual([
    "systemd.stop k0scontroller.service",
    "files.rename /var/lib/k0s/manifests/cni /var/lib/k0s/handed-over/cni",
    "systemd.start k0scontroller.service",
  ]);
  expect(isWhole(one)).toBe("out");
  const state = one.state();
  expect(state.operations.list()[0]).toMatchObject({ kind: "handover", phase: "succeeded", requester });
  expect(state.handover.condition()).toMatchObject({ status: "True", reason: "HandedOver" });
  expect(state.handover.condition()?.message).toContain("/var/lib/k0s/handed-over/cni");
  // The document is what it was; what is rendered of it is not, which is a change and no drift.
  expect(state.baseline.get()?.document).toEqual(before.document);
  expect(state.baseline.get()?.inputHash).not.toBe(before.inputHash);
  expect(state.baseline.get()?.rendered).toEqual({ "/etc/k0s/k0s.yaml": "2" });

  expect(await handOver(one.dependencies)).toMatchObject({ kind: "done", done: { stack: "cni" } });
  expect(state.operations.list()).toHaveLength(1);
});

describe("refused, and nothing is asked or stopped", () => {
  test.each([
    ["there is no network.handover", `role: single\nnode: {name: n1}\n`, "no-handover"],
    ["it is disabled", text("mode: disabled, stack: cni"), "handover-disabled"],
  ])("%s", async (_, document, reason) => {
    const one = gateService(document);
    expect(await handOver(one.dependencies)).toMatchObject({ kind: "refused", status: 409, reason });
    expect([one.fake.calls, one.state().operations.list()]).toEqual([[], []]);
  });

  test("automatic, and the Application is not Synced and Healthy: its state is the reason", async () => {
    const k0s = fakeK0s({ slowness: 0 });
    const one = gateService(AUTOMATIC, k0s);
    expect(await handOver(one.dependencies)).toMatchObject({ reason: "not-synced" });
    argo(k0s, "OutOfSync");
    const refused = await handOver(one.dependencies);
    expect(JSON.stringify(refused)).toContain("Application argocd/cni is OutOfSync");
    expect(doings(one)).toEqual([]);
    argo(k0s);
    await handOver(one.dependencies);
    expect(isWhole(one)).toBe("out");
  });

  test("a dry run leaves the condition as it is: one that failed is not tried again because somebody looked", async () => {
    const k0s = fakeK0s({ slowness: 0 });
    argo(k0s);
    const one = gateService(AUTOMATIC, k0s);
    one.state().handover.set({ status: "False", reason: "Failed", message: "it failed", atMs: 1 });
    expect(await planHandover(one.dependencies)).toMatchObject({ kind: "planned" });
    expect(one.state().handover.condition()?.reason).toBe("Failed");
  });

  test("of several controllers that can't be asked who they are", async () => {
    const one = gateService(text("mode: manual, stack: cni", "controller"));
    const unit = k0sUnit(one);
    if (unit !== undefined) unit.activeState = "failed";
    expect(await handOver(one.dependencies)).toMatchObject({ kind: "refused", status: 503 });
  });

  test("somebody applied in between: nothing is touched", async () => {
    const one = gateService(MANUAL);
    const planned = await planHandover(one.dependencies);
    if (planned.kind !== "planned") throw new Error("refused");
    const begun = beginHandover(one.dependencies, { ...planned.plan, document: 99 }, requester);
    expect(begun.kind).toBe("changed");
    expect([doings(one), isWhole(one), one.state().operations.running()]).toEqual([[], "in", undefined]);
  });
});

test("k0s does not come back without the stack: it is put back, k0s runs, and the journal's tail says why", async () => {
  const k0s = fakeK0s({ slowness: 0 });
  const one = gateService(MANUAL, k0s);
  const unit = k0sUnit(one);
  if (unit === undefined) throw new Error("no unit");
  // Only with the stack.
  const { program } = k0s;
  one.fake.programs.set("k0s", (request, fake) => {
    if (request.argv[1] === "status" && fake.text(FILE) === undefined) {
      unit.restarts += 1;
      unit.journal = ["component=kubelet no CNI"];
      return { exitCode: 1, stderr: "Error: not running\n" };
    }
    return program(request, fake);
  });
  await handOver(one.dependencies);
  expect([isWhole(one), unit.activeState]).toEqual(["in", "active"]);
  expect(one.state().operations.list()[0]).toMatchObject({
    phase: "rolled-back",
    failureReason: expect.stringContaining("no CNI"),
  });
  expect(one.state().handover.done()).toBeUndefined();
  expect(one.state().handover.condition()).toMatchObject({ status: "False", reason: "Failed" });
});

test("k0s does not stop: nothing is moved under it", async () => {
  const one = gateService(MANUAL);
  const unit = k0sUnit(one);
  if (unit === undefined) throw new Error("no unit");
  unit.onStop = () => Object.assign(unit, { activeState: "deactivating", mainPid: 9 });
  await handOver(one.dependencies);
  expect(isWhole(one)).toBe("in");
  expect(doings(one).some((call) => call.startsWith("files.rename"))).toBe(false);
  expect(one.state().operations.list()[0]).toMatchObject({ phase: "failed" });
});

describe("cut off at any call", () => {
  const fates = [
    ["power lost before the call", "before", (one: GateService) => one.fake.boot()],
    ["power lost after the call", "after", (one: GateService) => one.fake.boot()],
    ["the program killed, k0s going on as it was", "after", (one: GateService) => one.fake.respawn()],
  ] as const;
  test.each(fates)(
    "%s: handed over, or as before, and k0s runs",
    async (_, when, comeBack) => {
      const ends = new Set<string>();
      for (let at = 1; ; at += 1) {
        const one = gateService(MANUAL);
        one.fake.dieAt(at, when);
        let isThrough = true;
        await handOver(one.dependencies).catch((error: unknown) => {
          if (!(error instanceof MachineDied)) throw error;
          isThrough = false;
        });
        if (isThrough) break;
        comeBack(one);
        const dependencies = one.reopen();
        const left = dependencies.state.operations.list().filter(({ phase }) => phase === "running");
        // This very process still owns it; on a node the owner is gone.
        const operations = { ...dependencies.state.operations, abandoned: () => left };
        const recovered = await recoverHandover({ ...dependencies, state: { ...dependencies.state, operations } });
        expect(recovered.ok).toBe(true);
        const place = isWhole(one);
        expect(place).not.toBe("neither");
        const isOver = one.state().handover.done() !== undefined;
        expect(isOver).toBe(place === "out");
        expect(k0sUnit(one)?.activeState).toBe("active");
        expect(one.state().operations.running()).toBeUndefined();
        if (left.length > 0) {
          expect(one.state().operations.list()[0]?.phase).toBe(isOver ? "succeeded" : "failed");
          ends.add(place);
        }
        // Asked again, it goes through.
        await handOver(one.reopen());
        expect(isWhole(one)).toBe("out");
        one.state().close();
      }
      expect([...ends].toSorted()).toEqual(["in", "out"]);
    },
    300_000,
  );
});

test("what a cut left is not judged before the disk is there that k0s reads from", async () => {
  const one = gateService(`${MANUAL}disks: [{name: data, device: {serial: A1}, mountPoint: /var/lib/k0s}]\n`);
  one.fake.unitTable.set("var-lib-k0s.mount", { ...k0sUnitOf(one), activeState: "inactive" });
  const begun = one.state().operations.begin({ kind: "handover", requester, version: "1", atMs: 1 });
  if (!begun.ok) throw new Error("busy");
  const operations = { ...one.state().operations, abandoned: () => [begun.value] };
  const dependencies = { ...one.dependencies, state: { ...one.state(), operations } };
  expect(await recoverHandover(dependencies)).toMatchObject({ ok: false, error: { code: "not-mounted" } });
  expect(one.state().operations.running()).toBeDefined();
  one.fake.unitTable.set("var-lib-k0s.mount", { ...k0sUnitOf(one), activeState: "active" });
  expect((await recoverHandover(dependencies)).ok).toBe(true);
  expect(one.state().operations.list()[0]?.phase).toBe("failed");
});

function k0sUnitOf(one: GateService) {
  const unit = k0sUnit(one);
  if (unit === undefined) throw new Error("no unit");
  return unit;
}

describe("the condition", () => {
  const lookWith = async (document: string, k0s = fakeK0s({ slowness: 0 })) => {
    const one = gateService(document, k0s);
    await lookAtHandover(one.dependencies);
    return one;
  };

  test.each([
    ["disabled", "Disabled"],
    ["manual", "Manual"],
  ])("of mode %s is False, and the cluster is never asked", async (mode, reason) => {
    const one = await lookWith(text(`mode: ${mode}, stack: cni`));
    expect(one.state().handover.condition()).toMatchObject({ status: "False", reason });
    expect(one.fake.calls).toEqual([]);
  });

  test("keeps its time while it stays as it is, and no event is said twice", async () => {
    const k0s = fakeK0s({ slowness: 0 });
    const one = await lookWith(AUTOMATIC, k0s);
    const { atMs } = one.state().handover.condition() ?? {};
    const events = () =>
      one
        .state()
        .events.since(0, 100)
        .filter(({ kind }) => kind === "handover").length;
    const said = events();
    await one.fake.clock.sleep(60_000);
    await lookAtHandover(one.dependencies);
    expect([one.state().handover.condition()?.atMs, events()]).toEqual([atMs, said]);
    argo(k0s);
    await lookAtHandover(one.dependencies);
    expect(one.state().handover.condition()).toMatchObject({ status: "True", reason: "Synced" });
    expect(events()).toBe(said + 1);
  });

  test("stays True when nobody answers for a moment, and is False again when GitOps is out of sync", async () => {
    const k0s = fakeK0s({ slowness: 0 });
    argo(k0s);
    const one = await lookWith(AUTOMATIC, k0s);
    k0s.kubectlFails = { exitCode: null, timedOut: true };
    await lookAtHandover(one.dependencies);
    expect(one.state().handover.condition()?.status).toBe("True");
    delete k0s.kubectlFails;
    argo(k0s, "OutOfSync");
    await lookAtHandover(one.dependencies);
    expect(one.state().handover.condition()).toMatchObject({ status: "False", reason: "NotSynced" });
  });

  test("on one of several controllers names the command, with all of them", async () => {
    const k0s = fakeK0s({ slowness: 0 });
    k0s.controlPlane = { members: ["n1", "n2", "n3"], leader: "n2" };
    argo(k0s);
    const one = await lookWith(AUTOMATIC.replace("single", "controller"), k0s);
    expect(one.state().handover.condition()?.message).toContain("`cctl handover n1 n2 n3`");
  });
});
