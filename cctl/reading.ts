/** The commands that only look. */
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import type {
  AuditLine,
  DiskAnswer,
  EventsLine,
  HealthAnswer,
  LogLine,
  NodeAnswer,
  OperationsAnswer,
  ServiceAnswer,
} from "../api/contract.ts";
import type { Operation } from "../state/model.ts";
import { printAnswer, printLine } from "./answers.ts";
import type { Arguments, FlagSpec } from "./arguments.ts";
import { type Client, clientFor } from "./client.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { followOperation } from "./follow.ts";
import { printable } from "./printable.ts";
import { auditLine, disksText, eventLine, logLine, operationText, operationsText, servicesText } from "./text/lists.ts";
import { isAsWished, statusText } from "./text/status.ts";

const follow: FlagSpec = { name: "follow", help: "go on as more comes" };
const afterSeq: FlagSpec = {
  name: "since",
  value: "NUMBER",
  help: "what came after this entry; each line begins with its own",
};
const everyMs = 2_000;

export const readingCommands: readonly CctlCommand[] = [
  {
    words: ["status"],
    operands: "ADDR",
    summary: "what the node is, how it is, what it is doing",
    flags: [
      { name: "check", help: "exit 5 unless it is in service, healthy and in-sync" },
      { name: "watch", help: "show it again every 2 s" },
    ],
    run: status,
  },
  {
    words: ["health"],
    operands: "ADDR",
    summary: "one word",
    flags: [],
    run: (context, given) =>
      show<HealthAnswer>(context, given, "/v1/health", (health) => `${printable(health.status)}\n`),
  },
  {
    words: ["services"],
    operands: "ADDR",
    summary: "the units that matter",
    flags: [],
    run: (context, given) =>
      show<{ readonly services: readonly ServiceAnswer[] }>(context, given, "/v1/services", ({ services }) =>
        servicesText(services),
      ),
  },
  {
    words: ["disks"],
    operands: "ADDR",
    summary: "every disk, and why it could or couldn't be used",
    flags: [],
    run: (context, given) =>
      show<{ readonly disks: readonly DiskAnswer[] }>(context, given, "/v1/disks", ({ disks }) => disksText(disks)),
  },
  {
    words: ["operations"],
    operands: "ADDR [ID]",
    summary: "what was asked of the node and how it went",
    flags: [follow],
    run: operations,
  },
  {
    words: ["events"],
    operands: "ADDR",
    summary: "what happened on the node",
    flags: [follow, afterSeq],
    run: (context, given) => lines<EventsLine>(context, given, "/v1/events", eventLine),
  },
  {
    words: ["audit"],
    operands: "ADDR",
    summary: "who did what",
    flags: [follow, afterSeq],
    run: (context, given) => lines<AuditLine>(context, given, "/v1/audit", auditLine),
  },
  {
    words: ["logs"],
    operands: "ADDR",
    summary: "the journal of one of its services",
    flags: [
      { name: "unit", value: "UNIT", help: "as cctl services lists them" },
      { name: "lines", value: "N", help: "the last N; default 200" },
      { name: "since", value: "WHEN", help: "15m, 2h, or a time as 2026-01-31T12:00:00Z" },
      follow,
    ],
    run: logs,
  },
];

async function show<T>(
  context: Context,
  given: Arguments,
  path: string,
  toText: (body: T) => string,
): Promise<Result<number, AppError>> {
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const answer = await client.value.get(path);
  if (!answer.ok) return answer;
  printAnswer(context, answer.value, toText);
  return ok(exitStatus.done);
}

async function status(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const isWatching = given.flags.has("watch");
  const { io, clock } = context;
  for (;;) {
    const answer = await client.value.get("/v1/node");
    if (isWatching && io.isTerminal) io.out("\u001b[H\u001b[2J");
    if (!answer.ok && (!isWatching || answer.error.code !== "unreachable")) return answer;
    if (answer.ok) printAnswer<NodeAnswer>(context, answer.value, (node) => statusText(node, context.paint));
    else io.out(`${answer.error.message}\n`);
    if (!isWatching && answer.ok) {
      const isGood = !given.flags.has("check") || isAsWished(answer.value.json as NodeAnswer);
      return ok(isGood ? exitStatus.done : exitStatus.notWished);
    }
    await clock.sleep(everyMs, io.signal);
    if (io.signal.aborted) return ok(exitStatus.done);
  }
}

async function operations(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const id = given.positionals[1];
  if (id === undefined) {
    if (given.flags.has("follow")) return fail("usage", "--follow needs the ID of an operation");
    return show<OperationsAnswer>(context, given, "/v1/operations", operationsText);
  }
  if (!given.flags.has("follow")) {
    return show<Operation>(context, given, `/v1/operations/${encodeURIComponent(id)}`, operationText);
  }
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const followed = await followOperation(context, client.value, id);
  const shown = await print(context, client.value, id);
  return followed.ok ? shown : followed;
}

async function print(context: Context, client: Client, id: string): Promise<Result<number, AppError>> {
  const answer = await client.get(`/v1/operations/${encodeURIComponent(id)}`);
  if (!answer.ok) return answer;
  printAnswer<Operation>(context, answer.value, operationText);
  return ok(exitStatus.done);
}

async function logs(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  if (!given.flags.has("unit")) {
    return fail("usage", "logs needs --unit UNIT", {
      hint: `cctl services ${given.positionals[0] ?? "ADDR"} lists them`,
    });
  }
  const since = given.flags.get("since");
  const at = since === undefined ? undefined : sinceTime(since, context.clock.nowMs());
  if (since !== undefined && at === undefined) {
    return fail("usage", `'${since}' is no time: wanted 15m, 2h, or 2026-01-31T12:00:00Z`);
  }
  const flags = new Map(given.flags);
  if (at !== undefined) flags.set("since", at);
  return lines<LogLine>(context, { ...given, flags }, "/v1/logs", logLine);
}

async function lines<T>(
  context: Context,
  given: Arguments,
  path: string,
  toText: (row: T) => string,
): Promise<Result<number, AppError>> {
  const query = new URLSearchParams();
  for (const name of ["unit", "lines", "since"]) {
    const value = given.flags.get(name);
    if (value !== undefined) query.set(name, value);
  }
  if (given.flags.has("follow")) query.set("follow", "true");
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const suffix = query.size === 0 ? "" : `?${query.toString()}`;
  const answer = await client.value.stream(path + suffix, (line) => printLine<T>(context, line, toText));
  if (answer.ok) return ok(exitStatus.done);
  // Ctrl-C is how one stops following.
  return answer.error.code === "interrupted" ? ok(exitStatus.done) : answer;
}

/** ISO 8601 in UTC, as the API takes it. */
export function sinceTime(text: string, nowMs: number): string | undefined {
  const ago = /^(\d{1,6})([smhd])$/.exec(text);
  if (ago !== null) {
    const unit = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[ago[2] ?? "s"] ?? 1_000;
    return new Date(nowMs - Number(ago[1]) * unit).toISOString();
  }
  const at = /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}
