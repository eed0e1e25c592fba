/** One of several controllers: what the gate asks of it, and the apply that waits for the others. */
import { afterEach, describe, expect, test } from "bun:test";
import { MachineDied } from "../../test/support/fake-host.ts";
import { type FakeK0s, fakeK0s } from "../../test/support/fake-k0s.ts";
import { type GateService, gateService, removeServices } from "../../test/support/gate-service.ts";
import { recoverApplies } from "../recovery/driver.ts";
import { resumeApply } from "../waiting/driver.ts";
import { serveApply } from "./driver.ts";
import type { ServiceOutcome } from "./model.ts";

const BEFORE = "role: controller\nnode: {name: n1}\ncluster: {name: shop, endpoint: api.example.com}\n";
const ADDON = `${BEFORE}addons:\n  - {name: ingress, chart: "oci://r.example.com/ingress"}\n`;
const TIMER = `${BEFORE}upgrades: {automatic: download}\n`;
const requester = { kind: "local" } as const;
const teller = { connection: 1, isOfNewCa: false } as const;
afterEach(removeServices);

function several(k0s: FakeK0s = fakeK0s({ slowness: 0 })): { one: GateService; k0s: FakeK0s } {
  k0s.controlPlane = { members: ["n1", "n2", "n3"], leader: "n3" };
  const one = gateService(BEFORE, k0s);
  Object.assign(one.dependencies, { holdFor: () => new Promise(() => undefined) });
  return { one, k0s };
}

const post = (
  one: GateService,
  document: string,
  more: { isDryRun?: boolean; isCoordinated?: boolean } = {},
): Promise<ServiceOutcome> =>
  serveApply(one.dependencies, { document, requester, acknowledge: false, isDryRun: false, ...more });

const restarts = (one: GateService): number =>
  one.fake.calls.filter((call) => call.startsWith("systemd.restart")).length;
const operationOf = (outcome: ServiceOutcome): string =>
  (outcome.kind === "answer" ? outcome.answer.operation : undefined) ?? "";
const hasNew = (one: GateService): boolean => one.fake.text("/etc/k0s/k0s.yaml")?.includes("ingress") === true;

describe("cluster content on one controller alone", () => {
  test.each([true, false])("is 409 with the way named, and nothing is written (dry run %p)", async (isDryRun) => {
    const { one } = several();
    const outcome = await post(one, ADDON, { isDryRun });
    expect(outcome).toMatchObject({ status: 409, body: { reason: "coordinated" } });
    const error = outcome.kind === "refused" ? outcome.body.error : "";
    expect(error).toContain("n1, n2, n3");
    expect(error).toContain("cctl apply N1 N2 N3 --file FILE");
    expect([hasNew(one), restarts(one), one.state().operations.list()]).toEqual([false, 0, []]);
  });

  test("also where k0s is down and can't say who else there is", async () => {
    const { one } = several();
    const unit = one.fake.unitTable.get("k0scontroller.service");
    if (unit !== undefined) unit.activeState = "failed";
    expect(await post(one, ADDON)).toMatchObject({ status: 409, body: { reason: "coordinated" } });
  });

  test("goes through as long as it is the only controller", async () => {
    const { one, k0s } = several();
    k0s.controlPlane = { members: ["n1"], leader: "n1" };
    expect(await post(one, ADDON)).toMatchObject({ answer: { status: "reconciled" } });
  });

  test("what is the node's own needs nobody else, and nobody is asked", async () => {
    const { one } = several();
    expect(await post(one, TIMER)).toMatchObject({ answer: { status: "reconciled" } });
    expect(one.fake.calls.some((call) => call.includes("member-list"))).toBe(false);
  });
});

describe("coordinated", () => {
  test("a dry run says who the controllers are and who leads, and changes nothing", async () => {
    const { one } = several();
    const planned = await post(one, ADDON, { isCoordinated: true, isDryRun: true });
    expect(planned).toMatchObject({
      answer: { status: "planned", controlPlane: { members: ["n1", "n2", "n3"], leader: "n3" } },
    });
    expect([hasNew(one), one.state().operations.list()]).toEqual([false, []]);
  });

  test("writes, waits, restarts when told, and is recorded only then", async () => {
    const { one } = several();
    const written = await post(one, ADDON, { isCoordinated: true });
    expect(written).toMatchObject({ answer: { status: "written" } });
    const id = operationOf(written);
    expect(one.state().operations.get(id)?.phase).toBe("awaiting-confirmation");
    expect(one.state().operations.get(id)?.message).toContain("waiting until every controller has it");
    expect([hasNew(one), restarts(one)]).toEqual([true, 0]);
    expect(one.state().baseline.get()?.document.text).toBe(BEFORE);
    // Somebody else's apply is refused meanwhile.
    expect(await post(one, TIMER)).toMatchObject({ status: 409, body: { reason: "busy", operation: id } });

    const done = await resumeApply(one.dependencies, id, { word: "confirm", teller });
    expect(done).toMatchObject({ answer: { status: "reconciled", controlPlane: { leader: "n3" } } });
    expect(restarts(one)).toBe(1);
    expect(one.state().baseline.get()?.document.text).toBe(ADDON);
    expect(one.state().operations.get(id)?.phase).toBe("succeeded");
    expect(await resumeApply(one.dependencies, id, { word: "confirm", teller })).toMatchObject({
      status: 409,
      body: { reason: "not-waiting" },
    });
  });

  test("taken back: the files are as before, and k0s, which never read them, is not restarted", async () => {
    const { one } = several();
    const before = one.fake.text("/etc/k0s/k0s.yaml");
    const id = operationOf(await post(one, ADDON, { isCoordinated: true }));
    expect(await resumeApply(one.dependencies, id, { word: "take-back", teller })).toMatchObject({
      body: { reason: "taken-back" },
    });
    expect(one.fake.text("/etc/k0s/k0s.yaml")).toBe(before ?? "");
    expect([restarts(one), one.state().operations.get(id)?.phase]).toEqual([0, "cancelled"]);
  });

  test("taken back after k0s restarted by itself: it runs with the old files again", async () => {
    const { one } = several();
    const id = operationOf(await post(one, ADDON, { isCoordinated: true }));
    const unit = one.fake.unitTable.get("k0scontroller.service");
    if (unit !== undefined) unit.mainPid = 77;
    await resumeApply(one.dependencies, id, { word: "take-back", teller });
    expect([hasNew(one), restarts(one)]).toEqual([false, 1]);
  });

  test("nobody says anything for an hour: the node puts its files back by itself", async () => {
    const { one } = several();
    const late = Promise.withResolvers<void>();
    Object.assign(one.dependencies, { holdFor: () => late.promise });
    const id = operationOf(await post(one, ADDON, { isCoordinated: true }));
    late.resolve();
    while (one.state().operations.running() !== undefined) await Bun.sleep(1);
    expect(one.state().operations.get(id)).toMatchObject({ phase: "rolled-back" });
    expect([hasNew(one), restarts(one)]).toEqual([false, 0]);
  });

  test("k0s does not come back with it: undone here, and the answer says so", async () => {
    const { one } = several(fakeK0s({ slowness: 0, poison: "ingress" }));
    const id = operationOf(await post(one, ADDON, { isCoordinated: true }));
    expect(await resumeApply(one.dependencies, id, { word: "confirm", teller })).toMatchObject({
      status: 409,
      body: { reason: "rolled-back" },
    });
    expect(hasNew(one)).toBe(false);
  });

  test("the API answers, but etcd lost a member over the restart: it is waited for, and then undone", async () => {
    const { one, k0s } = several();
    const id = operationOf(await post(one, ADDON, { isCoordinated: true }));
    k0s.controlPlane = { members: ["n2", "n3"] };
    const done = await resumeApply(one.dependencies, id, { word: "confirm", teller });
    expect(done).toMatchObject({ status: 409, body: { error: expect.stringContaining("n1 not there") } });
    expect(hasNew(one)).toBe(false);
  });

  test("power lost at any call, before or after the word: the node is as before or as after", async () => {
    for (let at = 1, isThrough = false; !isThrough; at += 1) {
      const { one } = several();
      one.fake.dieAt(at, "after");
      await post(one, ADDON, { isCoordinated: true })
        .then(async (written) => {
          const id = operationOf(written);
          if (id !== "") await resumeApply(one.dependencies, id, { word: "confirm", teller });
          isThrough = true;
        })
        .catch((error: unknown) => {
          if (!(error instanceof MachineDied)) throw error;
        });
      if (isThrough) break;
      one.fake.boot();
      const dependencies = one.reopen();
      expect((await recoverApplies(dependencies)).ok).toBe(true);
      const isApplied = one.state().baseline.get()?.document.text === ADDON;
      expect(hasNew(one)).toBe(isApplied);
      expect(one.fake.text("/etc/corium/config.yaml")).toBe(isApplied ? ADDON : BEFORE);
      one.state().close();
    }
  }, 120_000);
});

test("an add-on that is uninstalled is dropped on every controller, each asking its own API", async () => {
  const k0s = fakeK0s({ slowness: 0 });
  k0s.controlPlane = { members: ["n1", "n2", "n3"], leader: "n3" };
  const one = gateService(ADDON, k0s);
  Object.assign(one.dependencies, { holdFor: () => new Promise(() => undefined) });
  expect(await post(one, BEFORE, { isCoordinated: true })).toMatchObject({
    status: 409,
    body: { reason: "immutable" },
  });
  k0s.uninstalled.add("ingress");
  const written = await post(one, BEFORE, { isCoordinated: true });
  expect(written).toMatchObject({ answer: { status: "written" } });
  expect(await resumeApply(one.dependencies, operationOf(written), { word: "confirm", teller })).toMatchObject({
    kind: "answer",
  });
  expect(hasNew(one)).toBe(false);
});
