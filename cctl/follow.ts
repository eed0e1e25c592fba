/** An operation, watched to its end: over restarts of the API and reboots of the node. */
import { type AppError, appError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import { type Operation, isOver } from "../state/model.ts";
import type { ApplyAnswer, OperationsAnswer } from "../api/contract.ts";
import type { ApiAnswer, Client } from "./client.ts";
import type { Context } from "./context.ts";
import { printable } from "./printable.ts";

/** For how long a node that does not answer is waited for: a reboot with long firmware checks. */
export const lostForMs = 900_000;
export const retryEveryMs = 2_000;

/** The operation at its end; one that failed or was undone is an error that says why. */
export async function followOperation(
  context: Context,
  client: Client,
  id: string,
): Promise<Result<Operation, AppError>> {
  return followAs(context, client, id, { name: `operation ${id}`, hint: `cctl operations ADDR ${id} --follow` });
}

/** The same for an operation that may be gone before it is over: `gone` says when what was seen of it is enough. */
export async function followAs<Gone = never>(
  context: Context,
  client: Client,
  id: string,
  as: {
    /** What it is called in messages. */
    readonly name: string;
    /** How whoever stops watching gets back to it. */
    readonly hint?: string;
    readonly gone?: (last: Operation | undefined, streamed: Result<unknown, AppError>) => Gone | undefined;
  },
): Promise<Result<Operation | Gone, AppError>> {
  const show = progress(context);
  let last: Operation | undefined;
  let lostAtMs: number | undefined;
  for (;;) {
    const streamed = await client.stream(`/v1/operations/${encodeURIComponent(id)}?follow=true`, (line) => {
      const operation = parseOperation(line);
      if (operation === undefined) return;
      last = operation;
      lostAtMs = undefined;
      show(describe(operation));
    });
    if (last !== undefined && isOver(last.phase)) {
      show(undefined);
      return judge(last);
    }
    const gone = as.gone?.(last, streamed);
    if (gone !== undefined) {
      show(undefined);
      return ok(gone);
    }
    if (!streamed.ok && streamed.error.code !== "unreachable") {
      show(undefined);
      return streamed;
    }
    const nowMs = context.clock.monotonicMs();
    lostAtMs ??= nowMs;
    if (!streamed.ok && nowMs - lostAtMs > lostForMs) {
      show(undefined);
      return fail("unreachable", `${as.name} can't be followed any more`, { cause: streamed.error });
    }
    show(streamed.ok ? describe(last) : `waiting for ${client.label} to answer again`);
    await context.clock.sleep(retryEveryMs, context.io.signal);
    if (context.io.signal.aborted) {
      show(undefined);
      const { hint } = as;
      return fail("interrupted", `no longer watching; ${as.name} goes on`, hint === undefined ? {} : { hint });
    }
  }
}

export type Answered =
  | { readonly kind: "answer"; readonly answer: ApiAnswer }
  /** The answer was lost on the way; the operation, which has not failed, says what came of it. */
  | { readonly kind: "operation"; readonly operation: Operation };

/** A write that the API answers when all of it is done. Meanwhile the running operation is shown. */
export async function runWrite(
  context: Context,
  client: Client,
  {
    kind,
    write,
    follow = followOperation,
  }: {
    readonly kind: Operation["kind"];
    readonly write: () => Promise<Result<ApiAnswer, AppError>>;
    /** When the answer was lost: until there is something to say of it. */
    readonly follow?: typeof followOperation;
  },
): Promise<Result<Answered, AppError>> {
  const before = await listOperations(client);
  if (!before.ok) return before;
  const stop = new AbortController();
  const shown = watch(context, client, kind, stop.signal);
  const answer = await write();
  stop.abort();
  await shown;
  if (answer.ok) return ok({ kind: "answer", answer: answer.value });
  if (context.io.signal.aborted) return givenUp(client, kind);
  if (answer.error.code !== "unreachable") return answer;
  const now = await listAgain(context, client);
  if (context.io.signal.aborted) return givenUp(client, kind);
  if (!now.ok) return answer;
  const known = new Set(before.value.map(({ id }) => id));
  // Where the request never arrived, what has begun meanwhile is another operator's.
  const isOwn = ({ requester }: Operation): boolean =>
    requester.kind === "operator" && requester.fingerprint === client.own;
  const begun = now.value.find((operation) => operation.kind === kind && !known.has(operation.id) && isOwn(operation));
  if (begun === undefined) return answer;
  const followed = await follow(context, client, begun.id);
  return followed.ok ? ok({ kind: "operation", operation: followed.value }) : followed;
}

/**
 * Confirms an operation that waits, and shows what it does until the API answers. `undefined`: the answer was lost on the
 * way, and the operation has succeeded.
 */
export async function runConfirm(
  context: Context,
  client: Client,
  id: string,
  confirm: () => Promise<Result<ApiAnswer, AppError>>,
): Promise<Result<ApplyAnswer | undefined, AppError>> {
  const stop = new AbortController();
  const shown = watch(context, client, "apply", stop.signal);
  const answer = await confirm();
  stop.abort();
  await shown;
  if (answer.ok) return ok(answer.value.json as ApplyAnswer);
  if (answer.error.code !== "unreachable") return answer;
  const followed = await followOperation(context, client, id);
  return followed.ok ? ok(undefined) : followed;
}

async function listOperations(client: Client): Promise<Result<readonly Operation[], AppError>> {
  const answer = await client.get("/v1/operations");
  return answer.ok ? ok((answer.value.json as OperationsAnswer).operations) : answer;
}

const givenUp = (client: Client, kind: Operation["kind"]): Result<never, AppError> =>
  fail("interrupted", `no longer watching; if ${client.label} has begun the ${kind} it goes on`, {
    hint: "cctl operations ADDR shows it, and cctl operations ADDR ID --follow goes on watching",
  });

/** The same of a node whose answer was lost: it may take a while until it can be asked what came of it. */
async function listAgain(context: Context, client: Client): Promise<Result<readonly Operation[], AppError>> {
  const untilMs = context.clock.monotonicMs() + lostForMs;
  const show = progress(context);
  for (;;) {
    const listed = await listOperations(client);
    const isLost = !listed.ok && listed.error.code === "unreachable";
    if (!isLost || context.io.signal.aborted || context.clock.monotonicMs() > untilMs) {
      show(undefined);
      return listed;
    }
    show(`the answer was lost; waiting for ${client.label} to say what came of it`);
    await context.clock.sleep(retryEveryMs, context.io.signal);
  }
}

/** For a person in front of a terminal only. Failures are the write's to tell. */
async function watch(context: Context, client: Client, kind: Operation["kind"], signal: AbortSignal): Promise<void> {
  if (!isWatched(context)) return;
  const show = progress(context);
  for (;;) {
    await context.clock.sleep(retryEveryMs, signal);
    if (signal.aborted) break;
    const operations = await listOperations(client);
    if (!operations.ok) continue;
    const running = operations.value.find((operation) => operation.kind === kind && !isOver(operation.phase));
    if (running !== undefined) show(describe(running));
  }
  show(undefined);
}

function parseOperation(line: string): Operation | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && "phase" in value ? (value as Operation) : undefined;
  } catch {
    return undefined;
  }
}

export function judge(operation: Operation): Result<Operation, AppError> {
  if (operation.phase === "succeeded") return ok(operation);
  const undone = operation.phase === "rolled-back" ? "failed and was undone" : operation.phase;
  const error = appError(
    operation.phase === "rolled-back" ? "rolled-back" : "operation",
    `${operation.kind} ${operation.id} ${undone}: ${operation.failureReason ?? "no reason given"}`,
  );
  return { ok: false, error };
}

function describe(operation: Operation | undefined): string {
  if (operation === undefined) return "waiting for the operation";
  const done = operation.steps.filter(({ state }) => state === "done" || state === "skipped").length;
  const running = operation.steps.find(({ state }) => state === "running");
  const count = operation.steps.length === 0 ? "" : ` ${done}/${operation.steps.length}`;
  const what = operation.message ?? running?.title ?? operation.phase;
  return `${operation.kind}${count}: ${what}`;
}

const isWatched = (context: Context): boolean => context.io.ask !== undefined && context.output === "text";

/** One line that replaces itself, on a terminal only; `undefined` clears it. */
function progress(context: Context): (text: string | undefined) => void {
  if (!isWatched(context)) return () => undefined;
  const beganMs = context.clock.monotonicMs();
  return (text) => {
    const seconds = Math.round((context.clock.monotonicMs() - beganMs) / 1000);
    const line =
      text === undefined ? "" : printable(`${seconds}s  ${text}`).slice(0, Math.max(20, context.io.columns - 1));
    context.io.err(`\r\u001b[K${line}`);
  };
}
