import { describe, expect, test } from "bun:test";
import { isOver } from "../state/model.ts";
import type { Operation } from "../state/model.ts";
import type { FakeApi } from "../test/support/fake-api.ts";
import { fakeApi, operator } from "../test/support/fake-api.ts";
import { type FakeKube, fakeKube } from "../test/support/fake-kube.ts";
import { recordBaseline } from "../test/support/in-service.ts";

const WEB = { namespace: "shop", name: "web-1", node: "w1", labels: { app: "web" } };
const BUDGET = { namespace: "shop", name: "web", selector: { matchLabels: { app: "web" } }, allowed: 0 };

async function controller(
  text = "role: controller+worker\n",
  kube = fakeKube("n1", "w1"),
): Promise<{ api: FakeApi; kube: FakeKube }> {
  const api = await fakeApi({ programs: { k0s: kube.program } });
  recordBaseline(api.state, text, { hostname: "N1" });
  return { api, kube };
}

async function ended(api: FakeApi, id: unknown): Promise<Operation> {
  for (;;) {
    const operation = api.state.operations.get(String(id));
    if (operation !== undefined && isOver(operation.phase)) return operation;
    await Bun.sleep(1);
  }
}

describe("POST /v1/lifecycle/cordon", () => {
  test("by default the controller itself; a note on the Node says who, and undoing takes both away", async () => {
    const { api, kube } = await controller();
    const as = operator("operator");
    const done = await api.call("POST", "/v1/lifecycle/cordon", { as, json: {} });
    expect([done.status, done.json]).toEqual([200, { node: "n1", cordoned: true, changed: true }]);
    expect(kube.nodes.get("n1")).toMatchObject({
      unschedulable: true,
      annotations: { "corium/cordoned-by": "operator alice" },
    });
    expect(api.state.audit.last().at(-1)).toMatchObject({ outcome: "n1 cordoned" });
    const again = await api.call("POST", "/v1/lifecycle/cordon", { as, json: {} });
    expect(again.json).toEqual({ node: "n1", cordoned: true, changed: false });

    const undone = await api.call("POST", "/v1/lifecycle/cordon?undo=true", { as, json: {} });
    expect(undone.json).toEqual({ node: "n1", cordoned: false, changed: true });
    expect(kube.nodes.get("n1")).toMatchObject({ unschedulable: false, annotations: {} });
  });

  test("what somebody else cordoned is not uncordoned", async () => {
    const { api, kube } = await controller();
    Object.assign(kube.nodes.get("w1") ?? {}, { unschedulable: true });
    const undone = await api.call("POST", "/v1/lifecycle/cordon?undo", { json: { node: "w1" } });
    expect([undone.status, undone.json["reason"]]).toEqual([409, "not-ours"]);
    expect(undone.json["error"]).toContain("kubectl uncordon w1");
    expect(kube.nodes.get("w1")?.unschedulable).toBe(true);
    // Nor does asking for a cordon that is there make it ours.
    await api.call("POST", "/v1/lifecycle/cordon", { json: { node: "w1" } });
    expect(kube.nodes.get("w1")?.annotations).toEqual({});
  });

  test("a node that is none is named with those there are; a controller without a kubelet wants one", async () => {
    const { api, kube } = await controller("role: controller\n");
    const none = await api.call("POST", "/v1/lifecycle/cordon", { json: { node: "w9" } });
    expect([none.status, none.json["error"]]).toEqual([404, "the cluster has no node w9; it has n1, w1"]);
    const own = await api.call("POST", "/v1/lifecycle/cordon", { json: {} });
    expect([own.status, own.json["reason"]]).toEqual([409, "no-kubelet"]);
    kube.failure = { exitCode: 1, stderr: "The connection to the server was refused\n" };
    expect((await api.call("POST", "/v1/lifecycle/cordon", { json: { node: "w1" } })).status).toBe(503);
  });

  test.each(["--all", "a b", "$(id)", "", "-l"])("%j is no name of a node", async (node) => {
    const { api } = await controller();
    for (const verb of ["cordon", "drain"]) {
      expect((await api.call("POST", `/v1/lifecycle/${verb}`, { json: { node } })).status).toBe(400);
    }
    expect(api.fake.calls.some((call) => call.includes("kubectl"))).toBe(false);
  });

  test("not for readers, and not on a node that is in no cluster", async () => {
    const { api } = await controller();
    for (const verb of ["cordon", "drain"]) {
      const as = operator("readonly");
      expect((await api.call("POST", `/v1/lifecycle/${verb}`, { as, json: {} })).status).toBe(403);
      const bare = await (await fakeApi()).call("POST", `/v1/lifecycle/${verb}`, { json: {} });
      expect([bare.status, bare.json["reason"]]).toEqual([409, "not-in-service"]);
    }
  });
});

describe("POST /v1/lifecycle/drain", () => {
  test("cordons, evicts, and is an operation with steps", async () => {
    const { api, kube } = await controller();
    kube.pods = [{ ...WEB }];
    const begun = await api.call("POST", "/v1/lifecycle/drain", { as: operator("operator"), json: { node: "w1" } });
    expect([begun.status, begun.json["draining"]]).toEqual([202, "w1"]);
    const operation = await ended(api, begun.json["operation"]);
    expect([operation.kind, operation.phase]).toEqual(["drain", "succeeded"]);
    expect(operation.steps.map(({ id, state }) => [id, state])).toEqual([
      ["drain:cordon", "done"],
      ["drain:evict", "done"],
    ]);
    expect(kube.pods[0]?.node).toBe("elsewhere");
    expect(kube.nodes.get("w1")?.annotations).toEqual({ "corium/cordoned-by": "operator alice" });
    const drains = api.fake.calls.filter((call) => call.includes(" drain "));
    expect(drains.join()).not.toMatch(/--force|--disable-eviction/);
  });

  test("B101: a budget that keeps a pod is named while it waits and when it gives up; nothing is forced", async () => {
    const { api, kube } = await controller();
    kube.pods = [{ ...WEB }];
    kube.budgets = [{ ...BUDGET }];
    const begun = await api.call("POST", "/v1/lifecycle/drain", { json: { node: "w1" } });
    const id = String(begun.json["operation"]);
    const said: string[] = [];
    kube.onDrain = () => void said.push(api.state.operations.get(id)?.message ?? "");
    const operation = await ended(api, id);
    expect(operation.phase).toBe("failed");
    const held = "pod shop/web-1 is kept by budget shop/web (1 of 1 healthy, 1 wanted)";
    expect(said.at(-1)).toBe(`waiting for the pods of w1 to go: ${held}`);
    expect(operation.failureReason).toContain(held);
    expect(kube.pods[0]?.node).toBe("w1");
    expect(kube.nodes.get("w1")?.unschedulable).toBe(true);
    expect(api.state.events.last().at(-1)?.message).toContain("it stays cordoned");
  });

  test("a budget that lets go after a while ends the wait", async () => {
    const { api, kube } = await controller();
    kube.pods = [{ ...WEB }];
    const budget = { ...BUDGET };
    kube.budgets = [budget];
    kube.onDrain = () => void (budget.allowed = kube.drains > 3 ? 1 : 0);
    const begun = await api.call("POST", "/v1/lifecycle/drain", { json: { node: "w1" } });
    expect((await ended(api, begun.json["operation"])).phase).toBe("succeeded");
    expect(kube.drains).toBe(4);
  });

  test("a node that is deleted meanwhile: the drain waited ten minutes for its pods, and said that it stays cordoned", async () => {
    const { api, kube } = await controller();
    kube.pods = [{ ...WEB }];
    kube.budgets = [{ ...BUDGET }];
    kube.onDrain = () => void (kube.drains === 3 && kube.nodes.delete("w1"));
    const begun = await api.call("POST", "/v1/lifecycle/drain", { json: { node: "w1" } });
    const operation = await ended(api, begun.json["operation"]);
    expect([operation.phase, kube.drains]).toEqual(["failed", 3]);
    expect(operation.failureReason).toStartWith("the cluster has no node w1 any more");
    expect(api.state.events.last().at(-1)?.message).toBe("the cluster has no node w1 any more");
  });

  test("a pod that nothing would start again ends it at once", async () => {
    const { api, kube } = await controller();
    kube.pods = [{ ...WEB, isBare: true }];
    const begun = await api.call("POST", "/v1/lifecycle/drain", { json: { node: "w1" } });
    const operation = await ended(api, begun.json["operation"]);
    expect([operation.phase, kube.drains]).toEqual(["failed", 1]);
    expect(operation.failureReason).toContain("Pods that declare no controller: shop/web-1");
  });

  test("B101: the only node, or the only one that takes pods, is not drained: it could never end", async () => {
    const only = await controller("role: single\n", fakeKube("n1"));
    const refused = await only.api.call("POST", "/v1/lifecycle/drain", { json: {} });
    expect([refused.status, refused.json["reason"]]).toEqual([409, "nowhere-to-go"]);
    const { api, kube } = await controller();
    Object.assign(kube.nodes.get("n1") ?? {}, { isReady: false });
    expect((await api.call("POST", "/v1/lifecycle/drain", { json: { node: "w1" } })).status).toBe(409);
    expect(kube.nodes.get("w1")?.unschedulable).toBeUndefined();
  });

  test("while something else changes the node it is busy", async () => {
    const { api, kube } = await controller();
    api.state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
    const busy = await api.call("POST", "/v1/lifecycle/drain", { json: { node: "w1" } });
    expect([busy.status, busy.json["reason"], kube.drains]).toEqual([409, "busy", 0]);
    expect(busy.json["error"]).toEndWith("(apply) is running; wait for it");
  });

  test("an apply that waits to be confirmed is confirmed or cancelled; to wait for it, as was said, would undo it", async () => {
    const { api } = await controller();
    const open = api.state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
    if (!open.ok) throw new Error("busy");
    api.state.operations.phase(open.value.id, "awaiting-confirmation", 2);
    const says = `operation ${open.value.id} (apply) waits to be confirmed; confirm or cancel it first`;
    const drained = await api.call("POST", "/v1/lifecycle/drain", { json: { node: "w1" } });
    expect([drained.status, drained.json["error"], drained.json["operation"]]).toEqual([409, says, open.value.id]);
  });

  test("somebody else's cordon stays theirs", async () => {
    const { api, kube } = await controller();
    Object.assign(kube.nodes.get("w1") ?? {}, { unschedulable: true });
    const begun = await api.call("POST", "/v1/lifecycle/drain", { json: { node: "w1" } });
    expect((await ended(api, begun.json["operation"])).phase).toBe("succeeded");
    expect(kube.nodes.get("w1")?.annotations).toEqual({});
  });
});
