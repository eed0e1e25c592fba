import { describe, expect, test } from "bun:test";
import { machine } from "../test/machines/machines.ts";
import { fakeApi, operator } from "../test/support/fake-api.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { recordBaseline } from "../test/support/in-service.ts";
import { ok } from "../kit/result.ts";
import { nodePaths } from "../kit/paths.ts";
import { parseIntent } from "../provision/reset/intent.ts";
import { memoryState } from "../state/open.ts";
import { createResetService } from "../supervisor/reset-service.ts";

const paths = nodePaths();
const route = "/v1/lifecycle/reset";
const unit = "/etc/systemd/system/k0scontroller.service";

async function node(of: { readonly role?: string; readonly members?: string } = {}) {
  const { role = "single", members } = of;
  const host = fakeHost({
    files: { "/proc/sys/kernel/hostname": "node1\n", [unit]: "[Service]\n" },
    programs: {
      k0s: ({ argv }) =>
        argv[1] === "etcd" && members !== undefined ? members : { exitCode: 1, stderr: "Error: etcd is away\n" },
    },
    units: { "corium-reset.service": {} },
  });
  const state = memoryState();
  const text = `role: ${role}\nnode: { name: node1 }\ncluster: { name: shop }\n`;
  recordBaseline(state, text, { hostname: "node1" });
  const disk = machine("blank-pair").disks.find(({ identity }) => identity.serial === "A");
  if (disk === undefined) throw new Error("no disk");
  state.owned.put({ kind: "disk", name: "media", uuid: "u", filesystemUuid: "u", disks: [disk.identity] });
  const inventory = machine("blank-pair");
  const version = "1";
  const reset = createResetService({ host, paths, state, version, readInventory: async () => ok(inventory) });
  const api = await fakeApi({ state, reset, host });
  const changes = (): readonly string[] =>
    host.calls.filter((call) => /^(files\.(write|remove|mkdir|rename)|systemd\.(start|stop))/.test(call));
  return { api, host, state, changes, disk };
}

const intentOf = (host: { text(path: string): string | undefined }) =>
  parseIntent(host.text(paths.resetIntent) ?? "", paths.resetIntent);

describe("POST /v1/lifecycle/reset", () => {
  test("a dry run names what is erased, kept and left, and writes nothing", async () => {
    const { api, changes, state } = await node();
    const answer = await api.call("POST", `${route}?dryRun=true`, { json: { destroyCluster: true } });
    expect(answer.status).toBe(200);
    const { erased, kept, left, skipped } = answer.json as Readonly<Record<string, readonly string[]>>;
    expect(erased?.join("\n")).toContain("node1 of cluster shop");
    expect(kept?.join("\n")).toContain("data disk media");
    expect(kept?.join("\n")).toContain("both slots");
    expect(left?.join("\n")).toContain("/srv");
    expect(skipped).toEqual([
      "draining and leaving etcd: there is no other node that pods could go to, and no other member",
    ]);
    const wiping = await api.call("POST", `${route}?dryRun`, { json: { destroyCluster: true, wipeDisks: true } });
    expect(wiping.json["erased"]).toContainEqual(expect.stringMatching(/^data disk .*serial A.*with disk media$/));
    expect(changes()).toEqual([]);
    expect(state.operations.list()).toEqual([]);
  });

  test("B133: the only controller is refused without destroyCluster, and nothing was changed", async () => {
    const { api, changes, state } = await node();
    const refused = await api.call("POST", route, { json: { confirm: "node1" } });
    expect([refused.status, refused.json["reason"]]).toEqual([409, "last-controller"]);
    expect(refused.json["error"]).toContain("destroyCluster");
    expect([changes(), state.operations.list()]).toEqual([[], []]);
  });

  test("another node's name, or none, is refused and nothing was changed", async () => {
    const { api, changes } = await node();
    for (const confirm of ["node2", "NODE1", "", undefined]) {
      const json = { destroyCluster: true, ...(confirm === undefined ? {} : { confirm }) };
      const refused = await api.call("POST", route, { json });
      expect([refused.status, refused.json["reason"]]).toEqual([409, "confirm"]);
      expect(refused.json["error"]).toContain("'node1'");
    }
    expect(changes()).toEqual([]);
  });

  test("only an admin resets, and only an admin may look what it would do", async () => {
    const { api, changes } = await node();
    for (const role of ["readonly", "operator"] as const)
      for (const path of [route, `${route}?dryRun=true`]) {
        const refused = await api.call("POST", path, {
          as: operator(role),
          json: { confirm: "node1", destroyCluster: true },
        });
        expect([role, path, refused.status]).toEqual([role, path, 403]);
      }
    expect(changes()).toEqual([]);
    const done = await api.call("POST", route, {
      as: operator("admin"),
      json: { confirm: "node1", destroyCluster: true },
    });
    expect(done.status).toBe(202);
  });

  test("what was answered is on disk: the intent, the operation, and who asked", async () => {
    const { api, host, state, changes } = await node();
    const json = { confirm: "node1", destroyCluster: true, wipeDisks: true };
    const begun = await api.call("POST", route, { as: operator("admin"), json });
    expect(begun.json).toMatchObject({ status: "resetting", hostname: "node1" });
    const operation = state.operations.running();
    expect(operation).toMatchObject({ kind: "reset", id: begun.json["operation"], phase: "running" });
    expect(operation?.steps.map(({ id }) => id)).toEqual([
      "reset:stop",
      "reset:unmount",
      "reset:k0s",
      "reset:wipe:A",
      "reset:files",
      "reset:state",
    ]);
    expect(intentOf(host)).toMatchObject({
      ok: true,
      value: { isWipingDisks: true, mayDestroyCluster: true, requestedBy: "operator alice", restarts: 0 },
    });
    expect(changes()).toEqual([`files.write ${paths.resetIntent}`, "systemd.start corium-reset.service"]);
    expect(state.audit.last(1)).toMatchObject([{ route: `POST ${route}`, status: 202, outcome: "done" }]);
    const busy = await api.call("POST", route, { json });
    expect([busy.status, busy.json["reason"], busy.json["operation"]]).toEqual([409, "busy", operation?.id]);
  });

  test("while an apply waits to be confirmed it is refused with the way out, and nothing was begun", async () => {
    const { api, host, state } = await node();
    const open = state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
    if (!open.ok) throw new Error("busy");
    state.operations.phase(open.value.id, "awaiting-confirmation", 2);
    const busy = await api.call("POST", route, { json: { confirm: "node1", destroyCluster: true } });
    expect([busy.status, busy.json["error"]]).toEqual([
      409,
      `operation ${open.value.id} (apply) waits to be confirmed; confirm or cancel it first`,
    ]);
    expect(host.text(paths.resetIntent)).toBeUndefined();
  });

  test("a reset that can't be begun leaves neither intent nor an operation that runs for ever", async () => {
    const { api, host, state } = await node();
    host.unitTable.delete("corium-reset.service");
    const failed = await api.call("POST", route, { json: { confirm: "node1", destroyCluster: true } });
    expect([failed.status, failed.json["reason"]]).toEqual([503, "not-begun"]);
    expect(host.text(paths.resetIntent)).toBeUndefined();
    expect(state.operations.list()).toMatchObject([{ kind: "reset", phase: "failed" }]);
  });

  test("B130: one that failed in the middle can be asked for again, with no cluster to ask", async () => {
    const { api, host } = await node({ role: "controller" });
    host.put(paths.resetErasing, "");
    const again = await api.call("POST", route, { json: { confirm: "node1" } });
    expect(again.status).toBe(202);
    expect(again.json["skipped"]).toEqual(["draining and leaving etcd: k0s does not run here"]);
  });

  test("etcd that does not answer, or would lose its quorum, is refused by name", async () => {
    const silent = await node({ role: "controller" });
    const refused = await silent.api.call("POST", route, { json: { confirm: "node1" } });
    expect([refused.status, refused.json["reason"]]).toEqual([409, "quorum"]);
    expect(refused.json["error"]).toContain("etcd is away");
    const members = JSON.stringify({
      members: { node1: "https://192.0.2.1:2380", node2: "https://192.0.2.2:2380", node3: "https://192.0.2.3:2380" },
    });
    const lost = await node({ role: "controller", members });
    lost.host.setHttp(async ({ url }) => ({
      ok: false,
      error: { code: url.includes("192.0.2.2") ? "tls" : "timeout", message: "no" },
    }));
    const weak = await lost.api.call("POST", route, { json: { confirm: "node1" } });
    expect([weak.status, weak.json["reason"]]).toEqual([409, "quorum"]);
    expect(weak.json["error"]).toContain("node3 can't be reached");
    lost.host.setHttp(async () => ({ ok: false, error: { code: "tls", message: "who are you" } }));
    const fine = await lost.api.call("POST", route, { json: { confirm: "node1" } });
    expect(fine.status).toBe(202);
    expect(lost.state.operations.running()?.steps[0]?.id).toBe("reset:leave");
  });

  test("a live system has nothing to reset", async () => {
    const { call } = await fakeApi();
    const refused = await call("POST", route, { json: { confirm: "corium" } });
    expect([refused.status, refused.json["reason"]]).toEqual([409, "live"]);
  });
});
