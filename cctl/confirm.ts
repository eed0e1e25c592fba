/** Changes that wait to be confirmed: kept, or taken back. */
import type { ApplyAnswer, OperationsAnswer } from "../api/contract.ts";
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import { type Operation, isOver } from "../state/model.ts";
import { printAnswer, printValue } from "./answers.ts";
import type { Arguments } from "./arguments.ts";
import { type Client, clientFor } from "./client.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { isYes } from "./fingerprint.ts";
import { judge, lostForMs, retryEveryMs, runConfirm } from "./follow.ts";
import { printable } from "./printable.ts";

export const confirmCommands: readonly CctlCommand[] = [
  {
    words: ["confirm"],
    operands: "ADDR [ID]",
    summary: "keep what an apply has changed that waits to be confirmed: the one that waits, or operation ID",
    flags: [],
    run: confirm,
  },
  {
    words: ["cancel"],
    operands: "ADDR [ID]",
    summary: "take back an apply that waits to be confirmed: the one that waits, or operation ID",
    flags: [],
    run: cancel,
  },
];

const pathOf = (id: string, verb: "confirm" | "cancel"): string => `/v1/operations/${encodeURIComponent(id)}/${verb}`;

interface Waiting {
  readonly client: Client;
  readonly id: string;
}

/** Its id; undefined: none waits. There is at most one. */
async function waitingOperation(client: Client): Promise<Result<string | undefined, AppError>> {
  const answer = await client.get("/v1/operations");
  if (!answer.ok) return answer;
  const { operations } = answer.value.json as OperationsAnswer;
  return ok(operations.find(({ phase }) => phase === "awaiting-confirmation")?.id);
}

async function findWaiting(context: Context, { positionals }: Arguments): Promise<Result<Waiting, AppError>> {
  const [node = "", given] = positionals;
  const client = await clientFor(context, node);
  if (!client.ok) return client;
  if (given !== undefined) return ok({ client: client.value, id: given });
  const waiting = await waitingOperation(client.value);
  if (!waiting.ok) return waiting;
  if (waiting.value !== undefined) return ok({ client: client.value, id: waiting.value });
  const hint = `cctl operations ${node}`;
  return fail("nothing-waits", `nothing waits to be confirmed on ${client.value.label}`, { hint });
}

/**
 * A plan is against what is recorded. While a change waits the node runs that one, so that `unchanged` is not true of it:
 * whoever gives the old document means to have it back.
 */
export async function refuseWhileWaiting(client: Client): Promise<Result<void, AppError>> {
  const waiting = await waitingOperation(client);
  if (!waiting.ok) return waiting;
  const id = waiting.value;
  if (id === undefined) return ok(undefined);
  return fail("busy", `${client.label} runs a change that waits to be confirmed, operation ${printable(id)}`, {
    hint: `cctl cancel ADDR ${printable(id)} takes it back, cctl confirm ADDR ${printable(id)} keeps it`,
  });
}

async function confirm(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const waiting = await findWaiting(context, given);
  return waiting.ok ? keep(context, waiting.value) : waiting;
}

/** Each call is a connection of its own, so that this one is younger than the change. */
async function keep(context: Context, { client, id }: Waiting): Promise<Result<number, AppError>> {
  const kept = await runConfirm(context, client, id, () => client.post(pathOf(id, "confirm"), {}));
  if (!kept.ok) return kept;
  const answer = kept.value;
  if (context.output !== "text") {
    printValue(context, answer ?? { operation: id });
    return ok(exitStatus.done);
  }
  const restarted = answer?.restarted ?? [];
  const what = restarted.length === 0 ? "nothing restarted" : `restarted ${printable(restarted.join(", "))}`;
  context.io.out(`kept: ${what}\n`);
  if (isApiOff(answer)) context.io.out(`the API of ${client.label} is off now: only its console is left\n`);
  return ok(exitStatus.done);
}

const isApiOff = (answer: ApplyAnswer | undefined): boolean =>
  answer?.fields.some(({ path, new: wanted }) => path === "api.enabled" && wanted === false) === true;

async function cancel(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const waiting = await findWaiting(context, given);
  if (!waiting.ok) return waiting;
  const { client, id } = waiting.value;
  if (!context.isAgreed) {
    const { ask } = context.io;
    if (ask === undefined) {
      return fail("declined", "nobody is here to agree, so nothing was done", { hint: "--yes agrees beforehand" });
    }
    if (!isYes(await ask(`take back operation ${printable(id)} of ${client.label}? [y/N] `))) {
      return fail("declined", "nothing was done");
    }
  }
  return takeBack(context, waiting.value);
}

async function takeBack(context: Context, { client, id }: Waiting): Promise<Result<number, AppError>> {
  const answer = await client.post(pathOf(id, "cancel"), {});
  if (!answer.ok) return answer;
  printAnswer(context, answer.value, () => "taken back: everything is as before\n");
  return ok(exitStatus.done);
}

/**
 * After an apply that waits: the person who is there is asked once the node has answered over a new connection; whoever
 * is not there is told how. `within` as it was asked for.
 */
export async function askToKeep(
  context: Context,
  waiting: Waiting & { readonly node: string; readonly answer: ApplyAnswer; readonly within: string },
): Promise<Result<number, AppError>> {
  const { client, id, node, answer, within } = waiting;
  const isNewCa = answer.fields.some(({ path }) => path.startsWith("api.operatorCA"));
  const folder = isNewCa ? " --dir FOLDER" : "";
  const how = `cctl${folder} confirm ${node} ${printable(id)}`;
  const say = context.output === "text" ? context.io.out : context.io.err;
  say(`made on ${client.label}; in ${printable(within)} it is taken back, unless it is confirmed: ${how}\n`);
  if (isNewCa) say("FOLDER is a store with the new CA and a certificate of it: the old ones can't confirm it\n");
  const { ask } = context.io;
  if (isNewCa || context.isAgreed || ask === undefined || context.output !== "text") return ok(exitStatus.done);
  const health = await client.get("/v1/health");
  if (!health.ok) {
    const hint = "it is taken back by the node itself; nothing needs to be done";
    return fail(health.error.code, "the node can't be reached any more over a new connection", {
      cause: health.error,
      hint,
    });
  }
  if (isYes(await ask(`${client.label} answers over a new connection. Keep the change? [y/N] `))) {
    return keep(context, waiting);
  }
  const undone = await takeBack(context, waiting);
  return undone.ok ? fail("declined", "the change was not kept") : undone;
}

/** Of an apply whose answer was lost: until it waits or is over. */
export async function settledOperation(
  context: Context,
  client: Client,
  id: string,
): Promise<Result<Operation, AppError>> {
  const untilMs = context.clock.monotonicMs() + lostForMs;
  for (;;) {
    const answer = await client.get(`/v1/operations/${encodeURIComponent(id)}`);
    if (!answer.ok && (answer.error.code !== "unreachable" || context.clock.monotonicMs() > untilMs)) return answer;
    const operation = answer.ok ? (answer.value.json as Operation) : undefined;
    if (operation?.phase === "awaiting-confirmation") return ok(operation);
    if (operation !== undefined && isOver(operation.phase)) return judge(operation);
    await context.clock.sleep(retryEveryMs, context.io.signal);
    if (context.io.signal.aborted) return fail("interrupted", `no longer watching; operation ${id} goes on`);
  }
}
