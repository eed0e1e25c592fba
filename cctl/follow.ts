/** An operation, watched to its end: over restarts of the API and reboots of the node. */
import { type AppError, appError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import { type Operation, isOver } from "../state/model.ts";
import type { Client } from "./client.ts";
import type { Context } from "./context.ts";
import { printable } from "./printable.ts";

/** For how long a node that does not answer is waited for: a reboot with long firmware checks. */
const lostForMs = 900_000;
const retryEveryMs = 2_000;

/** The operation at its end; one that failed or was undone is an error that says why. */
export async function followOperation(
  context: Context,
  client: Client,
  id: string,
): Promise<Result<Operation, AppError>> {
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
    if (!streamed.ok && streamed.error.code !== "unreachable") {
      show(undefined);
      return streamed;
    }
    const nowMs = context.clock.monotonicMs();
    lostAtMs ??= nowMs;
    if (!streamed.ok && nowMs - lostAtMs > lostForMs) {
      show(undefined);
      return fail("unreachable", `operation ${id} can't be followed any more`, { cause: streamed.error });
    }
    show(streamed.ok ? describe(last) : `waiting for ${client.label} to answer again`);
    await context.clock.sleep(retryEveryMs, context.io.signal);
    if (context.io.signal.aborted) {
      show(undefined);
      return fail("interrupted", `no longer watching; operation ${id} goes on`, {
        hint: `cctl operations ADDR ${id} --follow`,
      });
    }
  }
}

export function parseOperation(line: string): Operation | undefined {
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
    "operation",
    `${operation.kind} ${operation.id} ${undone}: ${operation.failureReason ?? "no reason given"}`,
  );
  return { ok: false, error };
}

export function describe(operation: Operation | undefined): string {
  if (operation === undefined) return "waiting for the operation";
  const done = operation.steps.filter(({ state }) => state === "done" || state === "skipped").length;
  const running = operation.steps.find(({ state }) => state === "running");
  const count = operation.steps.length === 0 ? "" : ` ${done}/${operation.steps.length}`;
  const what = operation.message ?? running?.title ?? operation.phase;
  return `${operation.kind}${count}: ${what}`;
}

/** One line that replaces itself, on a terminal only; `undefined` clears it. */
function progress(context: Context): (text: string | undefined) => void {
  if (context.io.ask === undefined || context.output !== "text") return () => undefined;
  const beganMs = context.clock.monotonicMs();
  return (text) => {
    const seconds = Math.round((context.clock.monotonicMs() - beganMs) / 1000);
    const line =
      text === undefined ? "" : printable(`${seconds}s  ${text}`).slice(0, Math.max(20, context.io.columns - 1));
    context.io.err(`\r\u001b[K${line}`);
  };
}
