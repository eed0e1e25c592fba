import { expect, setDefaultTimeout, test } from "bun:test";
import type { AdoptOutcome } from "../apply/adopt/driver.ts";
import { memoryState } from "../state/open.ts";
import { fakeApi, operator } from "../test/support/fake-api.ts";
import { recordBaseline } from "../test/support/in-service.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const path = "/v1/baseline";
const json = { document: "role: single\n" };
const stateProblem = { code: "no-baseline", message: "the database does not say what this node runs" };

test("a node that has its record, or was never in service, has nothing to adopt", async () => {
  const fresh = await fakeApi();
  const never = await fresh.call("POST", path, { json });
  expect([never.status, never.json["reason"]]).toEqual([409, "not-in-service"]);
  const state = memoryState();
  recordBaseline(state, "role: single\n");
  const known = await (await fakeApi({ state })).call("POST", path, { json });
  expect([known.status, known.json["reason"]]).toEqual([409, "has-baseline"]);
});

test("while the record is gone it is the one change that is taken: from an admin, audited, as a dry run too", async () => {
  const asked: boolean[] = [];
  const adopt = async ({ isDryRun }: { readonly isDryRun: boolean }): Promise<AdoptOutcome> => {
    asked.push(isDryRun);
    return isDryRun
      ? { kind: "answer", answer: { status: "planned", warnings: [] } }
      : { kind: "refused", status: 409, body: { error: "no", reason: "differs", differences: [] } };
  };
  const api = await fakeApi({ stateProblem, adopt });
  expect((await api.call("POST", "/v1/config", { json })).status).toBe(503);
  expect((await api.call("POST", path, { json, as: operator("operator") })).status).toBe(403);
  expect((await api.call("POST", `${path}?dryRun=maybe`, { json })).status).toBe(400);
  expect((await api.call("POST", `${path}?dryRun=true`, { json })).json["status"]).toBe("planned");
  expect((await api.call("POST", path, { json })).json["reason"]).toBe("differs");
  expect(asked).toEqual([true, false]);
  expect(api.state.audit.last().map(({ route, status, outcome }) => [route, status, outcome])).toEqual([
    ["POST /v1/baseline?dryRun", 200, "done"],
    ["POST /v1/baseline", 409, "differs"],
  ]);
});

test("a database that is lost altogether is not mended by it", async () => {
  const api = await fakeApi({ stateProblem: { code: "state-lost", message: "the database is not there" } });
  const answer = await api.call("POST", path, { json });
  expect([answer.status, answer.json["reason"]]).toEqual([503, "state-lost"]);
});
