import { z } from "zod";

import { readMachine } from "../../supervisor/machine.ts";
import type { ResetAnswer } from "../contract.ts";
import { readDryRun } from "../dry-run.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { SMALL_BODY_BYTES, withBody } from "../route.ts";

const resetSchema = z.strictObject({
  confirm: z.string().optional().meta({ description: "the node's host name; not asked for with dryRun" }),
  wipeDisks: z.boolean().optional().meta({ description: "data disks of this node are wiped, not kept" }),
  destroyCluster: z.boolean().optional().meta({ description: "the cluster may end with this node" }),
});
type Body = z.output<typeof resetSchema>;

export const RESET_ROUTES: readonly Route[] = [
  withBody({
    method: "POST",
    path: "/v1/lifecycle/reset",
    role: "admin",
    summary: "leave the cluster, erase what the node is, and restart unclaimed",
    query: [{ name: "dryRun", description: "true: only say what would be erased, kept and left" }],
    schema: resetSchema,
    limitBytes: SMALL_BODY_BYTES,
    run: reset,
  }),
];

/** Something about the machine, its cluster or the request has to change first. */
const CONFLICTS = ["last-controller", "quorum", "busy"];

async function reset({ services, body, query, requester }: RouteContext<Body>): Promise<Response> {
  const dryRun = readDryRun(query);
  if (!dryRun.ok) return dryRun.error;
  const service = services.reset;
  if (service === undefined) return problem(409, "a live system keeps nothing: restart it", { reason: "live" });
  const isDry = dryRun.value;
  const { hostname } = await readMachine(services.host);
  if (hostname === "") return problem(503, "the host name can't be read; try again", { reason: "hostname" });
  if (!isDry && body.confirm !== hostname) {
    const given = body.confirm === undefined ? "nothing" : `'${body.confirm}'`;
    return problem(409, `this node is '${hostname}', and the request confirms ${given}; nothing was changed`, {
      reason: "confirm",
    });
  }
  const request = { isWipingDisks: body.wipeDisks === true, mayDestroyCluster: body.destroyCluster === true };
  const planned = await service.plan(request);
  if (!planned.ok)
    return problem(CONFLICTS.includes(planned.error.code) ? 409 : 503, sentence(planned.error), {
      reason: planned.error.code,
    });
  const { leave, erase, erased, kept, left, skipped } = planned.value.plan;
  const steps = [...leave, ...erase].map(({ id, title }) => ({ id, title }));
  const answer: ResetAnswer = { status: "planned", hostname, erased, kept, left, skipped, steps };
  if (isDry) return json(200, answer);
  const begun = await service.begin(request, planned.value, requester);
  if (begun.ok)
    return json(202, { ...answer, status: "resetting", operation: begun.value.operation } satisfies ResetAnswer);
  const { operation } = begun.error;
  return problem(begun.error.code === "busy" ? 409 : 503, sentence(begun.error), {
    reason: begun.error.code,
    ...(operation === undefined ? {} : { operation }),
  });
}
