import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { MachineDied } from "../../test/support/fake-host.ts";
import { type FakeK0s, fakeK0s } from "../../test/support/fake-k0s.ts";
import { type GateService, gateService, removeServices } from "../../test/support/gate-service.ts";
import { recordBaseline } from "../../test/support/in-service.ts";
import type { Operation } from "../../state/model.ts";
import { findHandEdits, keepHandEdits } from "../by-hand/driver.ts";
import { recoverApplies } from "../recovery/driver.ts";
import { serveApply } from "./driver.ts";
import type { ServiceOutcome } from "./model.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const BEFORE = "role: single\nnode: {name: n1}\n";
const ADDON = `${BEFORE}addons:\n  - {name: ingress, chart: "oci://r.example.com/ingress"}\n`;
const RENAMED = ADDON.replace("n1", "n2");

const requester = { kind: "local" } as const;
afterEach(removeServices);

const service = (k0s?: FakeK0s): GateService => gateService(BEFORE, k0s);

const post = (
  one: GateService,
  document: string,
  more: { isDryRun?: boolean; acknowledge?: boolean } = {},
): Promise<ServiceOutcome> =>
  serveApply(one.dependencies, { document, requester, acknowledge: false, isDryRun: false, ...more });

test("an add-on: planned, applied as one operation, and then unchanged", async () => {
  const one = service();
  expect(await post(one, ADDON, { isDryRun: true })).toMatchObject({
    answer: { status: "planned", restarted: ["k0scontroller"] },
  });
  expect(one.state().operations.list()).toEqual([]);
  expect(one.fake.calls.filter((call) => !call.startsWith("files.read"))).toEqual([]);

  expect(await post(one, ADDON)).toMatchObject({ answer: { status: "reconciled", operation: expect.any(String) } });
  expect(one.state().operations.list()[0]).toMatchObject({ kind: "apply", phase: "succeeded" });
  expect(
    one
      .state()
      .operations.list()[0]
      ?.steps.every((step) => step.state === "done"),
  ).toBe(true);
  expect(one.state().baseline.get()?.document.text).toBe(ADDON);
  expect(one.fake.text("/etc/corium/config.yaml")).toBe(ADDON);

  const calls = one.fake.calls.length;
  expect(await post(one, `# only a comment\n${ADDON}`)).toMatchObject({ answer: { status: "unchanged", files: [] } });
  expect(one.fake.calls.length).toBe(calls);
  expect(one.state().operations.list()).toHaveLength(1);
});

test("a folder where the document is written: an apply succeeded, and every later one was refused", async () => {
  const one = service();
  const path = "/etc/corium/config.yaml";
  await one.dependencies.host.files.remove(path);
  await one.dependencies.host.files.mkdir(path, { mode: 0o755 });
  const refused = {
    status: 503,
    body: { error: expect.stringMatching(/nothing was changed: .* is a folder.*\n.*move it/) },
  };
  expect(await post(one, ADDON)).toMatchObject(refused);
  expect(one.state().baseline.get()?.document.text).toBe(BEFORE);
  await one.dependencies.host.files.remove(path, { recursive: true });
  expect(await post(one, ADDON)).toMatchObject({ answer: { status: "reconciled" } });
});

test("the record of an earlier apply is damaged: every later one was refused, and nothing said what to do", async () => {
  const one = service();
  await post(one, ADDON);
  const folder = `/var/lib/corium/undo/${one.state().operations.list()[0]?.id ?? ""}`;
  one.fake.put(`${folder}/record.json`, '{"operation":');
  const MORE = `${ADDON}backup: {enabled: true}\n`;
  const wanted = new RegExp(`record.json is damaged.*\\n.*move the folder ${folder} away`);
  expect(await post(one, MORE)).toMatchObject({ status: 503, body: { error: expect.stringMatching(wanted) } });
  await one.dependencies.host.files.remove(folder, { recursive: true });
  expect(await post(one, MORE)).toMatchObject({ answer: { status: "reconciled" } });
});

test("a recorded document that this release takes no more: the refusal did not say what is wrong with it, nor a way out", async () => {
  const one = service();
  recordBaseline(one.state(), `${BEFORE}gone: 1\n`);
  expect(await post(one, ADDON)).toMatchObject({
    status: 503,
    body: {
      reason: "baseline-unreadable",
      error: expect.stringContaining("start the release that took it"),
      problems: [{ path: "gone", severity: "error" }],
    },
  });
});

test("what was changed by hand in the files that it replaces is said beforehand, and kept", async () => {
  const one = service();
  const config = "/etc/k0s/k0s.yaml";
  const byHand = `${one.fake.text(config) ?? ""}# mine: do not lose\n`;
  one.fake.put(config, byHand);
  one.fake.put("/etc/corium/config.yaml", `${BEFORE}# mine too\n`);
  one.fake.put("/etc/hosts", "changed, and not replaced by this\n");
  const planned = await post(one, ADDON, { isDryRun: true });
  const lines = planned.kind === "answer" ? planned.answer.consequences.filter((line) => line.includes("by hand")) : [];
  const copies = lines.map((line) => /kept on the node as (\S+)$/.exec(line)?.[1] ?? "");
  expect(lines.map((line) => line.split(" ")[0])).toEqual([config, "/etc/corium/config.yaml"]);
  for (const copy of copies) expect(one.fake.text(copy)).toBeUndefined();
  expect(await post(one, ADDON)).toMatchObject({ answer: { status: "reconciled" } });
  expect(one.fake.text(config)).not.toContain("mine");
  expect(copies.map((copy) => [one.fake.text(copy), one.fake.node(copy)?.mode])).toEqual([
    [byHand, 0o600],
    [`${BEFORE}# mine too\n`, 0o600],
  ]);
  // It is what was applied again: the next plan has nothing of the kind to say.
  const next = await post(one, `${ADDON}upgrades: {automatic: download}\n`, { isDryRun: true });
  expect(next.kind === "answer" && next.answer.consequences.join()).not.toContain("by hand");
});

test("power lost at any call of an apply: what was changed by hand is in its place, or kept", async () => {
  const config = "/etc/k0s/k0s.yaml";
  let isOver = false;
  let cuts = 0;
  for (let call = 1; !isOver; call += 1) {
    const one = service();
    const byHand = `${one.fake.text(config) ?? ""}# mine: do not lose\n`;
    for (const path of [config, `/var/lib/corium${config}`]) one.fake.put(path, byHand);
    one.fake.sync();
    one.fake.dieAt(call);
    try {
      await post(one, ADDON);
      isOver = true;
    } catch (error) {
      if (!(error instanceof MachineDied)) throw error;
      cuts += 1;
    }
    one.fake.boot();
    const again = one.reopen();
    expect((await recoverApplies(again)).ok).toBe(true);
    const copies = one.fake.paths("/var/lib/corium/by-hand").map((path) => one.fake.text(path));
    const isApplied = one.state().baseline.get()?.document.text === ADDON;
    expect([call, isApplied ? copies.includes(byHand) : one.fake.text(config) === byHand]).toEqual([call, true]);
  }
  expect(cuts).toBeGreaterThan(15);
});

test("kept copies are bounded, and the same edit is kept once", async () => {
  const one = service();
  for (let count = 0; count < 25; count += 1) {
    const path = `/etc/k0s/by-hand-${count}`;
    one.fake.put(path, `edit ${count}\n`);
    const [first] = await findHandEdits(one.fake, "/var/lib/corium", [{ path, recorded: "x", content: undefined }]);
    if (first === undefined) throw new Error("not found");
    await one.fake.clock.sleep(1);
    for (const again of [first, first])
      expect((await keepHandEdits(one.fake, "/var/lib/corium", [again])).ok).toBe(true);
  }
  const names = one.fake.paths("/var/lib/corium/by-hand");
  expect(names).toHaveLength(20);
  expect(names.some((name) => name.includes("by-hand-0."))).toBe(false);
});

describe("refused without a trace", () => {
  const traceless = async (document: string): Promise<ServiceOutcome> => {
    const one = service();
    const outcome = await post(one, document);
    expect(one.fake.calls).toEqual([]);
    expect(one.state().operations.list()).toEqual([]);
    expect(one.state().documents.list()).toHaveLength(1);
    return outcome;
  };

  test("a rename beside an add-on names node.name, and nothing of the add-on is applied", async () => {
    expect(await traceless(RENAMED)).toMatchObject({
      status: 409,
      body: {
        reason: "immutable",
        error: expect.stringContaining("node.name"),
        refused: { fields: [{ path: "node.name", old: "n1", new: "n2" }] },
      },
    });
  });

  test("a patch that must be owned", async () => {
    expect(await traceless(`${BEFORE}k0s: {patch: {spec: {network: {podCIDR: 10.250.0.0/16}}}}\n`)).toMatchObject({
      status: 409,
      body: { reason: "patch-overrides" },
    });
  });

  test("a change of api, which needs a confirmation", async () => {
    expect(await traceless(`${BEFORE}api: {enabled: true, insecure: true}\n`)).toMatchObject({
      status: 409,
      body: { reason: "needs-confirmation" },
    });
  });
});

test("another operation is running: 409 names it", async () => {
  const one = service();
  const running = one.state().operations.begin({ kind: "reboot", requester, version: "1", atMs: 1 });
  if (!running.ok) throw new Error("busy");
  expect(await post(one, ADDON)).toMatchObject({ status: 409, body: { reason: "busy", operation: running.value.id } });
});

test("k0s does not come back: the operation says rolled-back, with the journal's tail, and a later one goes through", async () => {
  const k0s = fakeK0s({ slowness: 0, poison: "ingress" });
  const one = service(k0s);
  const outcome = await post(one, ADDON);
  expect(outcome).toMatchObject({ status: 409, body: { reason: "rolled-back" } });
  const [operation] = one.state().operations.list();
  expect(operation).toMatchObject({ phase: "rolled-back", failureReason: expect.stringContaining("unknown flag") });
  expect(one.state().baseline.get()?.document.text).toBe(BEFORE);
  delete k0s.poison;
  expect(await post(one, ADDON)).toMatchObject({ answer: { status: "reconciled" } });
});

test("power lost at any call: the operation ends, and says the same as baseline and files", async () => {
  for (let at = 1; ; at += 1) {
    const one = service();
    one.fake.dieAt(at, "after");
    let isThrough = true;
    await post(one, ADDON).catch((error: unknown) => {
      if (!(error instanceof MachineDied)) throw error;
      isThrough = false;
    });
    if (isThrough) break;
    one.fake.boot();
    const dependencies = one.reopen();
    const [begun] = dependencies.state.operations.list();
    const recovered = await recoverApplies(dependencies);
    expect(recovered.ok).toBe(true);
    const text = one.state().baseline.get()?.document.text;
    const isApplied = text === ADDON;
    expect(one.fake.text("/etc/k0s/k0s.yaml")?.includes("ingress")).toBe(isApplied);
    expect(one.fake.text("/etc/corium/config.yaml")).toBe(isApplied ? ADDON : BEFORE);
    const [operation] = one.state().operations.list();
    if (begun !== undefined) {
      const isReleased = operation?.steps.at(-1)?.state === "done";
      expect([operation?.phase === "succeeded", saysItIsApplied(operation)]).toEqual([isReleased, isApplied]);
    }
    expect(one.state().operations.running()).toBeUndefined();
    one.state().close();
  }
}, 120_000);

const saysItIsApplied = (operation: Operation | undefined): boolean =>
  operation?.phase === "succeeded" || operation?.failureReason?.includes("it had been recorded") === true;

test("the program died while helm was at work: the operation had succeeded, and a chart that fails was told to nobody", async () => {
  const k0s = fakeK0s({ slowness: 0 });
  k0s.badChart = "ingress";
  const one = service(k0s);
  one.fake.programs.set("k0s", (request, fake) => {
    const isHelmAtWork = one.state().baseline.get()?.document.text === ADDON;
    if (isHelmAtWork && request.argv.includes("charts.helm.k0sproject.io")) throw new MachineDied("helm");
    return k0s.program(request, fake);
  });
  const died = await post(one, ADDON).catch((error: unknown) => error);
  expect(died).toBeInstanceOf(MachineDied);
  one.fake.boot();
  expect((await recoverApplies(one.reopen())).ok).toBe(true);
  const [operation] = one.state().operations.list();
  expect([operation?.phase, saysItIsApplied(operation)]).toEqual(["failed", true]);
  expect(operation?.failureReason).toContain("helm");
});

describe("an add-on that was dropped from the document", () => {
  const WITH = `${BEFORE}addons:\n  - {name: ingress, chart: "oci://r.example.com/ingress"}\n`;

  test("is refused with the kubectl line, let go once its Chart object is gone, and a dry run says both", async () => {
    const k0s = fakeK0s({ slowness: 0 });
    const one = gateService(WITH, k0s);
    for (const isDryRun of [true, false]) {
      const refused = await post(one, BEFORE, { isDryRun });
      expect(refused).toMatchObject({ status: 409, body: { refused: { removed: [{ path: "addons[ingress]" }] } } });
      expect(JSON.stringify(refused)).toContain("kubectl delete chart -n kube-system k0s-addon-chart-ingress");
    }
    expect(one.state().operations.list()).toEqual([]);

    k0s.uninstalled.add("ingress");
    expect(await post(one, BEFORE, { isDryRun: true })).toMatchObject({
      answer: {
        status: "planned",
        restarted: ["k0scontroller"],
        consequences: expect.arrayContaining([expect.stringContaining("ingress leaves k0s.yaml")]),
      },
    });
    expect(await post(one, BEFORE)).toMatchObject({ answer: { status: "reconciled" } });
    expect(one.fake.text("/etc/k0s/k0s.yaml")).not.toContain("ingress");
    expect(await post(one, BEFORE)).toMatchObject({ answer: { status: "unchanged" } });
  });

  test.each([
    ["the API is unreachable", { exitCode: 1, stderr: "The connection to the server localhost:6443 was refused\n" }],
    ["it gives no answer", { exitCode: null, timedOut: true }],
    [
      "something else is not found",
      { exitCode: 1, stderr: "Error from server (NotFound): the server could not find the requested resource\n" },
    ],
    ["charts are not known", { exitCode: 1, stderr: `error: the server doesn't have a resource type "charts"\n` }],
  ])("is not proven gone when %s: refused, and it is said", async (_, kubectlFails) => {
    const k0s = fakeK0s({ slowness: 0 });
    const one = gateService(WITH, k0s);
    Object.assign(k0s, { kubectlFails });
    const refused = await post(one, BEFORE);
    expect(refused).toMatchObject({ status: 409, body: { reason: "immutable" } });
    expect(JSON.stringify(refused)).toContain("whether it is uninstalled is not known");
    expect(one.state().baseline.get()?.document.text).toBe(WITH);
  });

  test("the cluster is asked for nothing when nothing is dropped", async () => {
    const one = gateService(WITH);
    await post(one, WITH.replace('ingress"', 'ingress", version: 2.0.0'), { isDryRun: true });
    expect(one.fake.calls.filter((call) => call.startsWith("exec"))).toEqual([]);
  });
});

describe("a stack that was handed over", () => {
  const CNI = `manifests: [{name: cni, files: [{name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"}]}]\n`;
  const HANDED = `${BEFORE}network: {cni: custom, handover: {mode: manual, stack: cni}}\n${CNI}`;
  const handedOver = (): GateService => {
    const one = gateService(HANDED);
    one.state().handover.finish({ stack: "cni", keptAt: "/var/lib/k0s/handed-over/cni", atMs: 1 });
    one.fake.drop("/var/lib/k0s/manifests/cni/a.yaml");
    one.fake.sync();
    return one;
  };
  const file = "/var/lib/k0s/manifests/cni/a.yaml";

  test("is not written again by an apply of something else", async () => {
    const one = handedOver();
    expect(await post(one, HANDED + ADDON.slice(BEFORE.length))).toMatchObject({ answer: { status: "reconciled" } });
    expect(one.fake.text(file)).toBeUndefined();
  });

  test("can't be edited: 409 names it, and nothing is written", async () => {
    const one = handedOver();
    const refused = await post(one, HANDED.replace("name: a}}", "name: a, labels: {a: b}}}"));
    expect(refused).toMatchObject({
      status: 409,
      body: { reason: "handed-over", error: expect.stringContaining("manifests[cni] was handed over to GitOps") },
    });
    expect(one.state().operations.list()).toEqual([]);
  });

  test("may be dropped: recorded, nothing restarts, and it does not come back", async () => {
    const one = handedOver();
    const without = `${BEFORE}network: {cni: custom}\n`;
    expect(await post(one, without)).toMatchObject({ answer: { status: "reconciled", restarted: [], files: [] } });
    expect(one.state().baseline.get()?.document.text).toBe(without);
    expect(one.fake.calls.some((call) => call.startsWith("systemd.restart"))).toBe(false);
    expect(await post(one, HANDED)).toMatchObject({ status: 409, body: { reason: "handed-over" } });
  });
});
