// budget: 240 s
/** The program as it is on a node, asked over its socket: the gate by the cases, and fifty operators at once. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { parseDocument } from "../../config/load.ts";
import { mayBeSeveral } from "../../apply/cluster-content.ts";
import { recordBaseline } from "../support/in-service.ts";
import { readDiffCases, verdictOf, wantedOf } from "../support/diff-cases.ts";
import { type LiveProgram, startProgram } from "../support/live-program.ts";

// The program starts beside whatever else this machine does.
setDefaultTimeout(120_000);

const FIRST = "role: single\nnode: {name: n1}\n";
let corium: LiveProgram;

beforeAll(async () => {
  corium = await startProgram(FIRST);
});
afterAll(async () => {
  expect(await corium.stop()).toBe(0);
});

const cases = readDiffCases();
if (cases === undefined) test.skip("diff cases through the API [needs ../shared]", () => {});
else {
  for (const one of cases) {
    test(`diff through the API: ${one.name}`, async () => {
      recordBaseline(corium.state, one.baseline, { atMs: Date.now() });
      const { document } = parseDocument(one.proposal, { nowMs: Date.now() });
      // Where there may be other controllers a node alone takes no cluster content.
      const coordinated = document !== undefined && mayBeSeveral(document);
      const body = { document: one.proposal, ...(coordinated ? { coordinated } : {}) };
      const before = corium.state.baseline.get();
      expect(verdictOf(await corium.post("/v1/config?dryRun=true", body))).toEqual(wantedOf(one));
      expect([corium.state.baseline.get(), corium.state.operations.list()]).toEqual([before, []]);
    });
  }
}

test("fifty apply at once: one wins, the others are told that they came too late, and the audit holds all fifty", async () => {
  recordBaseline(corium.state, FIRST);
  const document = (keep: number): string => `${FIRST}backup: {enabled: true, keep: ${keep}}\n`;
  const { etag = "" } = await corium.post("/v1/config?dryRun=true", { document: document(1) });
  const audited = async (): Promise<readonly unknown[]> =>
    (await corium.lines("/v1/audit")).filter(({ route }) => route === "POST /v1/config").map(({ status }) => status);
  const before = (await audited()).length;
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, at) =>
      corium.post("/v1/config", { document: document(at + 1) }, { "If-Match": etag }),
    ),
  );
  const winners = answers.flatMap(({ status }, at) => (status === 200 ? [at] : []));
  expect(winners).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 409 || status === 412)).toHaveLength(49);
  const baseline = corium.state.baseline.get();
  expect(baseline?.document.text).toBe(document((winners[0] ?? 0) + 1));
  expect(await Bun.file(`${corium.stateDir}/config.yaml`).text()).toBe(baseline?.document.text ?? "");
  expect(corium.state.operations.list().map(({ phase }) => phase)).toEqual(["succeeded"]);
  const statuses = (await audited()).slice(before);
  const counted = (all: readonly unknown[]) =>
    Map.groupBy(all, String)
      .entries()
      .map(([status, { length }]) => `${status}: ${length}`);
  expect([...counted(statuses)].toSorted()).toEqual([...counted(answers.map(({ status }) => status))].toSorted());
});
