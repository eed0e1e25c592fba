import { TAKEN_BACK, type Word } from "../../apply/held/driver.ts";
import { isOver } from "../../state/model.ts";
import type { Operation } from "../../state/model.ts";
import { nameOf } from "../../state/requester.ts";
import { giveConsent } from "../../supervisor/own-consent.ts";
import type { CancelAnswer, OperationsAnswer } from "../contract.ts";
import { ndjson } from "../ndjson.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";

const POLL_MS = 200;

export const OPERATION_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/operations",
    role: "readonly",
    summary: "what was requested, newest first",
    run: ({ services }) => json(200, { operations: services.state.operations.list() } satisfies OperationsAnswer),
  },
  {
    method: "GET",
    path: "/v1/operations/:id",
    role: "readonly",
    summary: "one operation",
    query: [{ name: "follow", description: "true: a line of NDJSON at each change until it is over" }],
    run(context) {
      const operation = context.services.state.operations.get(context.params["id"] ?? "");
      if (operation === undefined) return unknownOperation(context);
      return isTrue(context.query.get("follow")) ? ndjson(follow(context, operation)) : json(200, operation);
    },
  },
  {
    method: "POST",
    path: "/v1/operations/:id/confirm",
    role: "admin",
    summary: "keep what an apply did that waits for it; if coordinated, restart k0s with what it wrote",
    run: (context) => resume(context, "confirm"),
  },
  {
    method: "POST",
    path: "/v1/operations/:id/cancel",
    role: "admin",
    summary: "take an apply back that waits to be confirmed: everything is as before",
    run: (context) => resume(context, "take-back"),
  },
  {
    method: "POST",
    path: "/v1/operations/:id/retry",
    role: "admin",
    summary: "go on with a failed installation or bootstrap from its journal",
    query: [
      {
        name: "wipeOwn",
        description: "true: what this node itself made may be lost, once, where its document says wipe",
      },
    ],
    run: retry,
  },
];

export const isTrue = (value: string | null): boolean => value === "" || value === "true";

const unknownOperation = ({ params }: RouteContext): Response =>
  problem(404, `there is no operation ${params["id"] ?? ""}; \`cctl operations\` lists them`, {
    reason: "unknown-operation",
  });

async function* follow(context: RouteContext, first: Operation): AsyncGenerator<Operation> {
  const { services, wire } = context;
  const { operations } = services.state;
  let revision = operations.revision(first.id);
  let operation: Operation | undefined = operations.get(first.id);
  while (operation !== undefined) {
    yield operation;
    if (isOver(operation.phase)) return;
    for (;;) {
      await services.host.clock.sleep(POLL_MS, wire.signal);
      if (wire.signal.aborted || !context.isStillAllowed()) return;
      const now = operations.revision(first.id);
      if (now === revision) continue;
      revision = now;
      break;
    }
    operation = operations.get(first.id);
  }
}

async function resume(context: RouteContext, word: Word): Promise<Response> {
  const { services, params, wire } = context;
  const operation = services.state.operations.get(params["id"] ?? "");
  if (operation === undefined) return unknownOperation(context);
  const isOfNewCa = wire.caller.kind === "operator" && wire.caller.isOfNewCa === true;
  const teller = { connection: wire.connection, isOfNewCa };
  const outcome = await services.apply.resume(operation.id, { word, teller });
  if (outcome.kind === "answer") return json(200, outcome.answer);
  if (outcome.body.reason === TAKEN_BACK) return json(200, { cancelled: operation.id } satisfies CancelAnswer);
  return json(outcome.status, outcome.body);
}

async function retry(context: RouteContext): Promise<Response> {
  const { services, params } = context;
  const operation = services.state.operations.get(params["id"] ?? "");
  if (operation === undefined) return unknownOperation(context);
  if (operation.kind !== "bootstrap" && operation.kind !== "install") {
    return problem(409, `an operation of kind ${operation.kind} is not retried; ask for it again`, {
      reason: "not-retryable",
    });
  }
  if (operation.phase !== "failed") {
    return problem(409, `operation ${operation.id} is ${operation.phase}, only a failed one is retried`, {
      reason: isOver(operation.phase) ? "not-failed" : "busy",
      operation: operation.id,
    });
  }
  if (services.state.meta.get("in-service-at-ms") !== undefined) {
    return problem(409, "this node has bootstrapped since", { reason: "in-service" });
  }
  if (isTrue(context.query.get("wipeOwn"))) {
    giveConsent(services.state, { atMs: services.host.clock.nowMs(), by: nameOf(context.requester) });
  }
  const poked = await services.bootstrap.poke();
  return poked.ok ? json(200, { retried: operation.id }) : problem(503, sentence(poked.error), { reason: "bootstrap" });
}
