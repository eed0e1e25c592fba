import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ReplacePlan } from "../provision/replace-plan.ts";
import { err, ok } from "../kit/result.ts";
import { fakeApi, operator } from "../test/support/fake-api.ts";
import type { ApiServices } from "./services.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const plan: ReplacePlan = {
  findings: [],
  steps: [
    {
      kind: "raid:add",
      id: "raid:data:replace:1:add",
      title: "add disk",
      name: "data",
      uuid: "u",
      member: { path: "/dev/vdc", identity: { sizeBytes: 1 } },
      destroys: [{ sizeBytes: 1 }],
    },
  ],
};

function replacing(more: Partial<ApiServices["disks"]> = {}): { asked: unknown[]; disks: ApiServices["disks"] } {
  const asked: unknown[] = [];
  return {
    asked,
    disks: {
      plan: async (request) => {
        asked.push(request);
        return ok(plan);
      },
      begin: () => {
        asked.push("begun");
        return { kind: "begun", operation: "op1", finished: Promise.resolve() };
      },
      ...more,
    },
  };
}

const body = { array: "data", old: "B", new: "C" };

describe("POST /v1/disks/replace", () => {
  test("plans, and begins unless it is a dry run", async () => {
    const { asked, disks } = replacing();
    const { call } = await fakeApi({ disks });
    const steps = [{ id: "raid:data:replace:1:add", title: "add disk" }];
    const dry = await call("POST", "/v1/disks/replace?dryRun=true", { json: body });
    expect([dry.status, dry.json]).toEqual([200, { status: "planned", steps, warnings: [] }]);
    expect(asked).toEqual([{ ...body, isWipeAllowed: false }]);
    const begun = await call("POST", "/v1/disks/replace", { json: { ...body, wipe: true } });
    expect([begun.status, begun.json]).toEqual([202, { status: "replacing", steps, warnings: [], operation: "op1" }]);
    expect(asked.slice(1)).toEqual([{ ...body, isWipeAllowed: true }, "begun"]);
  });

  test("a refusal names every problem and begins nothing", async () => {
    const problem = { severity: "error", code: "in-use", path: "new", message: "disk is in use" } as const;
    const { asked, disks } = replacing({ plan: async () => ok({ findings: [problem], steps: [] }) });
    const { call } = await fakeApi({ disks });
    const refused = await call("POST", "/v1/disks/replace", { json: body });
    expect([refused.status, refused.json["reason"], refused.json["problems"]]).toEqual([409, "refused", [problem]]);
    expect(asked).toEqual([]);
  });

  test("busy, not in service, unreadable disks, a body of another shape, too low a role", async () => {
    const busy = replacing({
      begin: () => ({ kind: "busy", operation: "op0", message: "operation op0 (apply) is running; wait for it" }),
    });
    const first = await (await fakeApi({ disks: busy.disks })).call("POST", "/v1/disks/replace", { json: body });
    expect([first.status, first.json["operation"]]).toEqual([409, "op0"]);
    const statuses = { "no-baseline": 409, lsblk: 503 };
    for (const [code, status] of Object.entries(statuses)) {
      const { disks } = replacing({ plan: async () => err({ code, message: "no" }) });
      const { call } = await fakeApi({ disks });
      expect((await call("POST", "/v1/disks/replace", { json: body })).status).toBe(status);
    }
    const { call } = await fakeApi(replacing());
    expect((await call("POST", "/v1/disks/replace", { json: { ...body, force: true } })).status).toBe(400);
    expect((await call("POST", "/v1/disks/replace?dryRun=maybe", { json: body })).status).toBe(400);
    expect((await call("POST", "/v1/disks/replace", { json: body, as: operator("operator") })).status).toBe(403);
  });
});
