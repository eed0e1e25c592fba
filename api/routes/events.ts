import type { AuditRecord, EventRecord } from "../../state/model.ts";
import { fromArray, ndjson } from "../ndjson.ts";
import { problem } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { parseSince } from "../since.ts";
import { isTrue } from "./operations.ts";

const POLL_MS = 500;

const QUERY: NonNullable<Route["query"]> = [
  { name: "since", description: "a sequence number, an age like 15m, or a time" },
  { name: "follow", description: "true: go on as more comes" },
];

export const EVENT_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/events",
    role: "readonly",
    summary: "what happened",
    query: QUERY,
    isStream: true,
    run: (context) => lines(context, context.services.state.events),
  },
  {
    method: "GET",
    path: "/v1/audit",
    role: "admin",
    summary: "who asked for what and what came of it",
    query: QUERY,
    isStream: true,
    run: (context) => lines(context, context.services.state.audit),
  },
];

interface Log<T> {
  since(seq: number, limit?: number): readonly T[];
  last(limit?: number): readonly T[];
}

function lines<T extends EventRecord | AuditRecord>(context: RouteContext, log: Log<T>): Response {
  const since = context.query.get("since");
  const isSeq = since !== null && /^\d{1,15}$/.test(since);
  const fromMs = since === null || isSeq ? undefined : parseSince(since, context.services.host.clock.nowMs());
  if (since !== null && !isSeq && fromMs === undefined) {
    return problem(400, "since is a sequence number, an age like 15m, or a time like 2026-05-01T10:00:00Z", {
      reason: "invalid-query",
    });
  }
  const from = isSeq ? Number(since) : 0;
  const found = isSeq ? log.since(from) : log.last();
  const first = fromMs === undefined ? found : found.filter(({ atMs }) => atMs >= fromMs);
  return ndjson(isTrue(context.query.get("follow")) ? follow(context, log, first, from) : fromArray(first));
}

async function* follow<T extends EventRecord | AuditRecord>(
  context: RouteContext,
  log: Log<T>,
  first: readonly T[],
  from: number,
): AsyncGenerator<T> {
  const { clock } = context.services.host;
  let seq = first.at(-1)?.seq ?? log.last(1)[0]?.seq ?? from;
  yield* first;
  while (!context.wire.signal.aborted && context.isStillAllowed()) {
    const more = log.since(seq);
    seq = more.at(-1)?.seq ?? seq;
    yield* more;
    if (more.length === 0) await clock.sleep(POLL_MS, context.wire.signal);
  }
}
