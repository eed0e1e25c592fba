import { z } from "zod";
import { beginHandover, HANDOVER_STEPS } from "../../apply/handover/driver.ts";
import { planHandover } from "../../apply/handover/look/driver.ts";
import type { HandoverAnswer } from "../contract.ts";
import { onController } from "../controller.ts";
import { readDryRun } from "../dry-run.ts";
import { json, problem } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { SMALL_BODY_BYTES, withBody } from "../route.ts";

const handoverSchema = z.strictObject({});
type Body = z.output<typeof handoverSchema>;

export const HANDOVER_ROUTES: readonly Route[] = [
  withBody({
    method: "POST",
    path: "/v1/handover",
    role: "admin",
    summary: "on a controller: let go of the bootstrap CNI, which GitOps has; nothing of it is deleted",
    query: [{ name: "dryRun", description: "true: only plan" }],
    schema: handoverSchema,
    limitBytes: SMALL_BODY_BYTES,
    run: handover,
  }),
];

async function handover({ services, query, requester }: RouteContext<Body>): Promise<Response> {
  const dryRun = readDryRun(query);
  if (!dryRun.ok) return dryRun.error;
  const controller = onController(services);
  if (!controller.ok) return controller.error;
  const { host, state, version, config } = services;
  const dependencies = { host, state, version, parse: config.parse };
  const planned = await planHandover(dependencies);
  if (planned.kind === "refused") return problem(planned.status, planned.error, { reason: planned.reason });
  const more = planned.kind === "done" ? planned : planned.plan;
  const controlPlane = more.controlPlane === undefined ? {} : { controlPlane: more.controlPlane };
  if (planned.kind === "done") {
    const { stack, keptAt } = planned.done;
    const answer: HandoverAnswer = { status: "unchanged", stack, keptAt, restarts: [], steps: [], ...controlPlane };
    return json(200, answer);
  }
  const answer: HandoverAnswer = {
    status: "planned",
    stack: planned.plan.stack,
    keptAt: planned.plan.to,
    restarts: ["k0scontroller"],
    steps: HANDOVER_STEPS,
    ...controlPlane,
  };
  if (dryRun.value) return json(200, answer);
  const begun = beginHandover(dependencies, planned.plan, requester);
  const { operation } = begun;
  if (begun.kind === "busy") return problem(409, begun.message, { reason: "busy", operation });
  if (begun.kind === "changed")
    return problem(409, "somebody changed the node in between; look at the plan again", {
      reason: "changed-in-between",
      operation,
    });
  // The database is gone, or closed under a daemon that ends: the next one closes the operation.
  begun.ended.catch((thrown: unknown) => void process.stderr.write(`handover: ${String(thrown)}\n`));
  return json(202, { ...answer, status: "handing-over", operation } satisfies HandoverAnswer);
}
