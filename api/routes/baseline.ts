import { z } from "zod";
import { readDryRun } from "../dry-run.ts";
import { json, problem } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { DOCUMENT_BODY_BYTES, withBody } from "../route.ts";

const adoptSchema = z.strictObject({
  document: z.string().meta({ description: "the one that was applied last" }),
});

/** It answers while the state is incomplete: that is what it mends. */
export const BASELINE_ROUTES: readonly Route[] = [
  withBody({
    method: "POST",
    path: "/v1/baseline",
    role: "admin",
    summary: "a node that lost the record of what it runs takes a document for it, if its files are what that renders",
    query: [{ name: "dryRun", description: "true: only compare" }],
    schema: adoptSchema,
    limitBytes: DOCUMENT_BODY_BYTES,
    needsNoState: true,
    run: adopt,
  }),
];

async function adopt(context: RouteContext<z.output<typeof adoptSchema>>): Promise<Response> {
  const { services, body, requester, query } = context;
  const dryRun = readDryRun(query);
  if (!dryRun.ok) return dryRun.error;
  const { state, host, stateProblem } = services;
  if (services.adopt === undefined) {
    if (stateProblem !== undefined) return problem(503, stateProblem.message, { reason: stateProblem.code });
    return state.baseline.get() === undefined
      ? problem(409, "this node is not in service: give it a document with `cctl apply`", { reason: "not-in-service" })
      : problem(409, "this node has a record of what it runs; `cctl apply` changes it", { reason: "has-baseline" });
  }
  const isDryRun = dryRun.value;
  const outcome = await services.adopt({ document: body.document, isDryRun, requester });
  const status = outcome.kind === "refused" ? outcome.status : 200;
  const said = outcome.kind === "refused" ? (outcome.body.reason ?? "refused") : "done";
  // The general audit is off while the state is incomplete; this part of it is there.
  const route = `POST /v1/baseline${query.has("dryRun") ? "?dryRun" : ""}`;
  state.audit.add({ atMs: host.clock.nowMs(), requester, route, status, outcome: said });
  return json(status, outcome.kind === "refused" ? outcome.body : outcome.answer);
}
