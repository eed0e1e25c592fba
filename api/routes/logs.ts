import type { Host } from "../../kit/ports.ts";
import type { LogLine } from "../contract.ts";
import { fromArray, ndjson } from "../ndjson.ts";
import { problem } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { parseSince } from "../since.ts";
import { isTrue } from "./operations.ts";
import { findUnit, UNITS } from "./services.ts";

const DEFAULT_LINES = 200;
const MAX_LINES = 10_000;
const FOLLOW_POLL_MS = 1_000;
const FOLLOW_MAX_MS = 3_600_000;

export const LOG_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/logs",
    role: "readonly",
    summary: "the journal of one service, or of all",
    query: [
      { name: "unit", description: "one of /v1/services; default all of them" },
      { name: "lines", description: `1 to ${MAX_LINES}, default ${DEFAULT_LINES}` },
      { name: "since", description: "an age like 15m, or a time" },
      { name: "follow", description: "true: go on for at most an hour" },
    ],
    isStream: true,
    needsNoState: true,
    run: logs,
  },
];

interface Query {
  readonly units: readonly string[];
  readonly lines: number;
  readonly sinceMs?: number;
}

/** Everything is checked before the 200: afterwards a stream can only break. */
async function logs(context: RouteContext): Promise<Response> {
  const { query, services } = context;
  const name = query.get("unit");
  const known = name === null ? undefined : findUnit(name);
  if (name !== null && known === undefined) {
    return problem(404, `'${name}' is not one of this node's services; \`cctl services\` lists them`, {
      reason: "unknown-unit",
    });
  }
  const lines = query.has("lines") ? Number(query.get("lines")) : DEFAULT_LINES;
  if (!Number.isInteger(lines) || lines < 1 || lines > MAX_LINES) {
    return problem(400, `lines is a number from 1 to ${MAX_LINES}`, { reason: "invalid-query" });
  }
  const since = query.get("since");
  const sinceMs = since === null ? undefined : parseSince(since, services.host.clock.nowMs());
  if (since !== null && sinceMs === undefined) {
    return problem(400, "since is a time like 2026-05-01T10:00:00Z or an age like 15m", { reason: "invalid-query" });
  }
  const units = known === undefined ? UNITS.map(({ unit }) => unit) : [known.unit];
  const wanted: Query = { units, lines, ...(sinceMs === undefined ? {} : { sinceMs }) };
  const first = await readJournal(services.host, wanted);
  if (first === undefined) return problem(503, "the journal can't be read", { reason: "journal" });
  return ndjson(isTrue(query.get("follow")) ? follow(context, wanted, first) : fromArray(first.lines));
}

interface JournalPart {
  readonly lines: readonly LogLine[];
  readonly cursor?: string;
}

async function readJournal(host: Host, query: Query, after?: string): Promise<JournalPart | undefined> {
  const argv = [
    "journalctl",
    "--no-pager",
    "--output=json",
    "--output-fields=MESSAGE,_SYSTEMD_UNIT,UNIT",
    ...query.units.map((unit) => `--unit=${unit}`),
    after === undefined ? `--lines=${query.lines}` : `--after-cursor=${after}`,
    // Seconds since 1970: no zone and no locale to get wrong.
    ...(after === undefined && query.sinceMs !== undefined ? [`--since=@${Math.floor(query.sinceMs / 1000)}`] : []),
  ];
  const result = await host.exec({ argv, timeoutMs: 20_000, maxOutputBytes: 32 * 1024 * 1024 });
  if (result.exitCode !== 0) return undefined;
  return parseJournal(result.stdout, after);
}

/** A MESSAGE that is not UTF-8 comes as an array of bytes, a very long one as null (journalctl(1), json). */
export function parseJournal(text: string, after?: string): JournalPart {
  const lines: LogLine[] = [];
  let cursor = after;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    let entry: { readonly [key: string]: unknown };
    try {
      entry = JSON.parse(line) as typeof entry;
    } catch {
      // Cut at the output limit.
      continue;
    }
    const message = entry["MESSAGE"];
    lines.push({
      at: new Date(Math.floor(Number(entry["__REALTIME_TIMESTAMP"] ?? 0) / 1000)).toISOString(),
      // What systemd says about a unit has the unit in UNIT, what the unit says in _SYSTEMD_UNIT.
      unit: textOf(entry["UNIT"]) ?? textOf(entry["_SYSTEMD_UNIT"]) ?? "",
      message:
        typeof message === "string" ? message : Array.isArray(message) ? Buffer.from(message).toString("utf8") : "",
    });
    if (typeof entry["__CURSOR"] === "string") cursor = entry["__CURSOR"];
  }
  return { lines, ...(cursor === undefined ? {} : { cursor }) };
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

async function* follow(context: RouteContext, query: Query, first: JournalPart): AsyncGenerator<LogLine> {
  const { host } = context.services;
  const endMs = host.clock.monotonicMs() + FOLLOW_MAX_MS;
  let { cursor } = first;
  yield* first.lines;
  while (!context.wire.signal.aborted && context.isStillAllowed() && host.clock.monotonicMs() < endMs) {
    await host.clock.sleep(FOLLOW_POLL_MS, context.wire.signal);
    if (context.wire.signal.aborted) return;
    const more = await readJournal(host, query, cursor);
    if (more === undefined) return;
    cursor = more.cursor;
    yield* more.lines;
  }
}
