import type { AuditRecord, EventRecord } from "../../state/model.ts";
import { fromArray, ndjson } from "../ndjson.ts";
import { problem } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { isTrue } from "./operations.ts";

const POLL_MS = 500;

export const EVENT_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/events",
    role: "readonly",
    summary: "what happened, as NDJSON; ?since=SEQ, ?follow=true",
    run: (context) => lines(context, context.services.state.events),
  },
  {
    method: "GET",
    path: "/v1/audit",
    role: "admin",
    summary: "who asked for what and what came of it, as NDJSON; ?since=SEQ, ?follow=true",
    run: (context) => lines(context, context.services.state.audit),
  },
];

interface Log<T> {
  since(seq: number, limit?: number): readonly T[];
  last(limit?: number): readonly T[];
}

function lines<T extends EventRecord | AuditRecord>(context: RouteContext, log: Log<T>): Response {
  const since = context.query.get("since");
  const from = since === null ? undefined : Number(since);
  if (from !== undefined && (!Number.isSafeInteger(from) || from < 0)) {
    return problem(400, "since is the sequence number of an entry", { reason: "invalid-query" });
  }
  const first = from === undefined ? log.last() : log.since(from);
  return ndjson(isTrue(context.query.get("follow")) ? follow(context, log, first, from ?? 0) : fromArray(first));
}

async function* follow<T extends EventRecord | AuditRecord>(
  context: RouteContext,
  log: Log<T>,
  first: readonly T[],
  from: number,
): AsyncGenerator<T> {
  const { clock } = context.services.host;
  let seq = first.at(-1)?.seq ?? from;
  yield* first;
  while (!context.wire.signal.aborted && context.isStillAllowed()) {
    const more = log.since(seq);
    seq = more.at(-1)?.seq ?? seq;
    yield* more;
    if (more.length === 0) await clock.sleep(POLL_MS, context.wire.signal);
  }
}
