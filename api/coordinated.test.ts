import { describe, expect, test } from "bun:test";
import type { FakeApi } from "../test/support/fake-api.ts";
import { fakeApi, operator } from "../test/support/fake-api.ts";
import { recordBaseline } from "../test/support/in-service.ts";

const OWN = "role: controller\nnode: {name: n2}\naddons: [{name: old, chart: 'oci://r.example.com/old'}]\n";

async function inService(): Promise<FakeApi> {
  const api = await fakeApi();
  recordBaseline(api.state, OWN, { hostname: "n2" });
  return api;
}

const blocks = "addons: [{name: ingress, chart: 'oci://r.example.com/ingress'}]\n";

describe("POST /v1/config with blocks", () => {
  test("the gate gets the node's own document with them", async () => {
    const api = await inService();
    await api.call("POST", "/v1/config", { json: { blocks, coordinated: true } });
    expect(api.applied).toMatchObject([{ isCoordinated: true, isDryRun: false }]);
    const { document } = api.services.config.parse(api.applied[0]?.document ?? "");
    expect([document?.node.name, document?.addons.map(({ name }) => name)]).toEqual(["n2", ["ingress"]]);
  });

  test.each([
    [{}, 400, "invalid-body"],
    [{ blocks, document: OWN }, 400, "invalid-body"],
    [{ blocks: "node: {name: n9}\n" }, 400, "blocks"],
    [{ blocks: "addons: [{}]\n" }, 400, "invalid-document"],
  ])("%j is refused with %d %s", async (json, status, reason) => {
    const api = await inService();
    const answer = await api.call("POST", "/v1/config", { json });
    expect([answer.status, answer.json["reason"], api.applied]).toEqual([status, reason, []]);
  });

  test("a node that is not in service has no document to put them into", async () => {
    const api = await fakeApi();
    const answer = await api.call("POST", "/v1/config", { json: { blocks } });
    expect([answer.status, answer.json["reason"]]).toEqual([409, "no-baseline"]);
  });
});

describe("POST /v1/config with confirmWithin", () => {
  test("the gate gets it in milliseconds", async () => {
    const api = await inService();
    await api.call("POST", "/v1/config", { json: { document: OWN, confirmWithin: "1m30s" } });
    expect(api.applied).toMatchObject([{ confirmWithinMs: 90_000 }]);
  });

  test.each(["", "30", "4s", "1h1s", "2 m"])(
    "%j is no time to confirm in: 400, with what is",
    async (confirmWithin) => {
      const api = await inService();
      const answer = await api.call("POST", "/v1/config", { json: { document: OWN, confirmWithin } });
      expect([answer.status, answer.json["error"], api.applied]).toEqual([
        400,
        expect.stringContaining("from 5s to 1h"),
        [],
      ]);
    },
  );

  test("before bootstrap there is nothing to go back to", async () => {
    const api = await fakeApi();
    const answer = await api.call("POST", "/v1/config", { json: { document: OWN, confirmWithin: "30s" } });
    expect([answer.status, answer.json["reason"], api.state.documents.list()]).toEqual([409, "no-baseline", []]);
  });
});

describe("POST /v1/operations/ID/confirm and cancel", () => {
  async function waiting(): Promise<{ api: FakeApi; id: string }> {
    const api = await inService();
    const begun = api.state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
    if (!begun.ok) throw new Error("busy");
    return { api, id: begun.value.id };
  }

  test("each says its word, and answers what came of it", async () => {
    const { api, id } = await waiting();
    api.outcome = { kind: "refused", status: 409, body: { error: "taken back", reason: "taken-back" } };
    expect(await api.call("POST", `/v1/operations/${id}/cancel`)).toMatchObject({
      status: 200,
      json: { cancelled: id },
    });
    api.outcome = { kind: "refused", status: 409, body: { error: "k0s did not come back", reason: "rolled-back" } };
    const failed = await api.call("POST", `/v1/operations/${id}/confirm`);
    expect([failed.status, failed.json["reason"]]).toEqual([409, "rolled-back"]);
    expect(api.resumed).toEqual([
      [id, "take-back"],
      [id, "confirm"],
    ]);
  });

  test.each(["readonly", "operator"] as const)("not for %s, and not for an operation that is none", async (role) => {
    const { api, id } = await waiting();
    for (const verb of ["confirm", "cancel"]) {
      const as = operator(role);
      expect((await api.call("POST", `/v1/operations/${id}/${verb}`, { as })).status).toBe(403);
      expect((await api.call("POST", `/v1/operations/none/${verb}`)).status).toBe(404);
    }
    expect(api.resumed).toEqual([]);
  });
});
