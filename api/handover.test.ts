import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { realRandom } from "../host/random.ts";
import { mintAuthority } from "../pki/driver.ts";
import { isOver } from "../state/model.ts";
import { type FakeApi, fakeApi, operator } from "../test/support/fake-api.ts";
import { fakeK0s } from "../test/support/fake-k0s.ts";
import { recordBaseline } from "../test/support/in-service.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const DOCUMENT = `role: single
node: {name: n1}
network: {cni: custom, handover: {mode: manual, stack: cni}}
manifests: [{name: cni, files: [{name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"}]}]
`;
const FILE = "/var/lib/k0s/manifests/cni/a.yaml";

let api: FakeApi;
async function node(document?: string): Promise<FakeApi> {
  api = await fakeApi({
    programs: { k0s: fakeK0s({ slowness: 0 }).program },
    files: { [FILE]: "a" },
    units: { "k0scontroller.service": { activeState: "active", mainPid: 9, isEnabled: true } },
  });
  if (document !== undefined) recordBaseline(api.state, document);
  return api;
}
afterEach(() => expect(api.state.operations.running()).toBeUndefined());

describe("POST /v1/handover", () => {
  test("the operator CA of its document has ended: a controller was said to be in no cluster", async () => {
    const nowMs = Date.UTC(2026, 0, 1);
    const { certificate } = await mintAuthority({ commonName: "ops", nowMs, random: realRandom });
    await node(`${DOCUMENT}api:\n  operatorCA: |\n    ${certificate.trim().replaceAll("\n", "\n    ")}\n`);
    api.fake.setNow(Date.UTC(2040, 0, 1));
    const dry = await api.call("POST", "/v1/handover?dryRun=true", { json: {} });
    expect([dry.status, dry.json["status"]]).toEqual([200, "planned"]);
  });

  test("a dry run says what would be done; without it an operation is begun, and the audit knows who", async () => {
    await node(DOCUMENT);
    const dry = await api.call("POST", "/v1/handover?dryRun=true", { json: {} });
    expect([dry.status, dry.json]).toMatchObject([
      200,
      { status: "planned", stack: "cni", keptAt: "/var/lib/k0s/handed-over/cni", restarts: ["k0scontroller"] },
    ]);
    expect([api.state.operations.list(), api.fake.text(FILE)]).toEqual([[], "a"]);

    const begun = await api.call("POST", "/v1/handover", { as: operator("admin"), json: {} });
    expect([begun.status, begun.json["status"]]).toEqual([202, "handing-over"]);
    const id = String(begun.json["operation"]);
    for (;;) {
      const operation = api.state.operations.get(id);
      if (operation !== undefined && isOver(operation.phase)) break;
      await Bun.sleep(1);
    }
    expect(api.state.operations.get(id)).toMatchObject({ phase: "succeeded", requester: { kind: "operator" } });
    expect(api.fake.text(FILE)).toBeUndefined();
    expect(api.state.audit.last().at(-1)).toMatchObject({ route: "POST /v1/handover", status: 202 });
    expect((await api.call("POST", "/v1/handover", { json: {} })).json["status"]).toBe("unchanged");
  });

  test.each([
    ["before bootstrap", undefined, "not-in-service"],
    ["on a worker", "role: worker\njoin: {tokenFrom: {file: /run/token}}\n", "not-a-controller"],
    ["without anything to hand over", "role: single\n", "no-handover"],
    ["in mode disabled", DOCUMENT.replace("manual", "disabled"), "handover-disabled"],
  ])("%s it is 409, and says why", async (_, document, reason) => {
    await node(document);
    const answer = await api.call("POST", "/v1/handover", { json: {} });
    expect([answer.status, answer.json["reason"]]).toEqual([409, reason]);
    expect(api.fake.text(FILE)).toBe("a");
  });

  test("an admin's, with a query and a body that it knows", async () => {
    await node(DOCUMENT);
    expect((await api.call("POST", "/v1/handover", { as: operator("operator"), json: {} })).status).toBe(403);
    expect((await api.call("POST", "/v1/handover?dryRun=maybe", { json: {} })).status).toBe(400);
    expect((await api.call("POST", "/v1/handover", { json: { stack: "cni" } })).status).toBe(400);
    expect(api.fake.text(FILE)).toBe("a");
  });

  test("while another operation runs it is 409 and names it; and a reboot waits for a hand-over", async () => {
    await node(DOCUMENT);
    const input = { requester: { kind: "local" }, version: "1", atMs: 1 } as const;
    for (const [kind, path] of [
      ["drain", "/v1/handover"],
      ["handover", "/v1/lifecycle/reboot"],
    ] as const) {
      const begun = api.state.operations.begin({ kind, ...input });
      if (!begun.ok) throw new Error("busy");
      const answer = await api.call("POST", path, { json: {} });
      expect([answer.status, answer.json["reason"], answer.json["operation"]]).toEqual([409, "busy", begun.value.id]);
      api.state.operations.end(begun.value.id, { phase: "succeeded" }, 2);
    }
  });
});
