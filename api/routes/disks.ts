import { z } from "zod";

import { hasErrors } from "../../kit/finding.ts";
import { readDryRun } from "../dry-run.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { SMALL_BODY_BYTES, withBody } from "../route.ts";
import type { ReplaceAnswer } from "../contract.ts";

const replaceSchema = z.strictObject({
  array: z.string().min(1),
  old: z.string().min(1),
  new: z.string().min(1),
  wipe: z.boolean().optional(),
});
type Body = z.output<typeof replaceSchema>;

export const DISK_ROUTES: readonly Route[] = [
  withBody({
    method: "POST",
    path: "/v1/disks/replace",
    role: "admin",
    summary: "put one disk in the place of another in an array",
    query: [{ name: "dryRun", description: "true: only plan" }],
    schema: replaceSchema,
    limitBytes: SMALL_BODY_BYTES,
    run: replace,
  }),
];

async function replace({ services, body, query, requester }: RouteContext<Body>): Promise<Response> {
  const dryRun = readDryRun(query);
  if (!dryRun.ok) return dryRun.error;
  const request = { array: body.array, old: body.old, new: body.new, isWipeAllowed: body.wipe === true };
  const planned = await services.disks.plan(request);
  if (!planned.ok)
    return problem(planned.error.code === "no-baseline" ? 409 : 503, sentence(planned.error), {
      reason: planned.error.code,
    });
  const { findings, steps } = planned.value;
  if (hasErrors(findings))
    return problem(409, "the disk is not replaced, and nothing was changed; see problems", {
      reason: "refused",
      problems: findings,
    });
  const answer: ReplaceAnswer = {
    status: "planned",
    steps: steps.map(({ id, title }) => ({ id, title })),
    warnings: findings,
  };
  if (dryRun.value) return json(200, answer);
  const begun = services.disks.begin(request, planned.value, requester);
  if (begun.kind === "busy")
    return problem(409, begun.message, {
      reason: "busy",
      operation: begun.operation,
    });
  return json(202, { ...answer, status: "replacing", operation: begun.operation } satisfies ReplaceAnswer);
}
