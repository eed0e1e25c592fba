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
import { clusterDifferences, isAsWished, statusText } from "./text/status.ts";

const follow: FlagSpec = { name: "follow", help: "go on as more comes" };
const since: FlagSpec = {
  name: "since",
  value: "WHEN",
  help: "15m, 2h, a time as 2026-01-31T12:00:00Z; for events and audit also the number of an entry",
};
const everyMs = 2_000;

export const readingCommands: readonly CctlCommand[] = [
  {
    words: ["status"],
    operands: "ADDR…",
    summary: "what the node is, how it is, what it is doing; of several, whether they say the same of their cluster",
    flags: [
      { name: "check", help: "exit 5 unless it is in service, healthy and in-sync; and of several, all of them alike" },
      { name: "watch", help: "show it again every 2 s" },
    ],
    run: (context, given) => (given.positionals.length > 1 ? statuses(context, given) : status(context, given)),
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
    flags: [follow, since],
    run: (context, given) => lines<EventsLine>(context, given, "/v1/events", eventLine),
  },
  {
    words: ["audit"],
    operands: "ADDR",
    summary: "who did what",
    flags: [follow, since],
    run: (context, given) => lines<AuditLine>(context, given, "/v1/audit", auditLine),
  },
  {
    words: ["logs"],
    operands: "ADDR",
    summary: "the journal of its services",
    flags: [
      { name: "unit", value: "UNIT", help: "of this one only; cctl services lists them" },
      { name: "lines", value: "N", help: "the last N; default 200" },
      since,
      follow,
    ],
    run: (context, given) => lines<LogLine>(context, given, "/v1/logs", logLine),
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

/** Each node's own; then what only shows when they are seen together. */
async function statuses(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  if (given.flags.has("watch")) return fail("usage", "status --watch watches one node");
  const nodes: NodeAnswer[] = [];
  for (const address of given.positionals) {
    const client = await clientFor(context, address);
    if (!client.ok) return client;
    const answer = await client.value.get("/v1/node");
    if (!answer.ok) return answer;
    if (context.output === "text" && nodes.length > 0) context.io.out("\n");
    printAnswer<NodeAnswer>(context, answer.value, (node) => statusText(node, context.paint));
    nodes.push(answer.value.json as NodeAnswer);
  }
  const differing = clusterDifferences(nodes);
  if (context.output === "text") for (const line of differing) context.io.out(`\n${line}\n`);
  const isGood = !given.flags.has("check") || (differing.length === 0 && nodes.every(isAsWished));
  return ok(isGood ? exitStatus.done : exitStatus.notWished);
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

async function lines<T>(
  context: Context,
  given: Arguments,
  path: string,
  toText: (row: T) => string,
): Promise<Result<number, AppError>> {
  const query = new URLSearchParams();
  for (const name of ["unit", "lines"]) {
    const value = given.flags.get(name);
    if (value !== undefined) query.set(name, value);
  }
  const when = given.flags.get("since");
  if (when !== undefined) {
    const at = sinceQuery(when);
    if (at === undefined) return fail("usage", `'${when}' is no time: wanted 15m, 2h, or 2026-01-31T12:00:00Z`);
    query.set("since", at);
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

/** Ages are counted by the node's clock, which wrote the entries; times go as ISO 8601 in UTC. */
export function sinceQuery(text: string): string | undefined {
  if (/^\d{1,6}[smhd]$/.test(text) || /^\d{1,15}$/.test(text)) return text;
  const at = /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}
