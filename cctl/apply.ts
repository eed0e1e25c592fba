/** Day two: what an apply would do, asked for, done, and followed to its end. */
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import type { ApplyAnswer, ApplyBody, ConfigStatusAnswer, PreviousAnswer } from "../api/contract.ts";
import { agree } from "./agree.ts";
import { printAnswer, printValue } from "./answers.ts";
import type { Arguments, FlagSpec } from "./arguments.ts";
import { type ApiAnswer, type Client, clientFor } from "./client.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { readDocument } from "./document-file.ts";
import { askToKeep, refuseWhileWaiting, settledOperation } from "./confirm.ts";
import { type Answered, followOperation, runWrite } from "./follow.ts";
import { jsonPrintable, printable } from "./printable.ts";
import { applyToSeveral } from "./several/apply.ts";
import { operationText } from "./text/lists.ts";
import { configStatusText, planText } from "./text/plan.ts";

const ownPatch: FlagSpec = {
  name: "own-patch",
  help: "a k0s patch that overrides what Corium models is meant",
};

export const applyCommands: readonly CctlCommand[] = [
  {
    words: ["apply"],
    operands: "ADDR…",
    summary: "make a document's safe difference true on a node; of several controllers, what is their cluster's",
    flags: [
      { name: "file", short: "f", value: "FILE", help: "the document; - is standard input" },
      { name: "previous", help: "instead of a file: what the node was given before what it runs" },
      { name: "dry-run", help: "show the plan and stop" },
      { name: "if-match", value: "ETAG", help: "only if nobody applied since; default what the plan was made against" },
      {
        name: "confirm-within",
        value: "DURATION",
        help: "from 5s to 1h: once it is made the node takes it back, unless it is confirmed in that time",
      },
      ownPatch,
    ],
    run: (context, given) => (given.positionals.length > 1 ? applyToSeveral(context, given) : apply(context, given)),
  },
  {
    words: ["diff"],
    operands: "ADDR",
    summary: "what an apply would do; without --file, whether the node is what was applied, and what differs",
    flags: [{ name: "file", short: "f", value: "FILE", help: "the document; - is standard input" }, ownPatch],
    run: diff,
  },
];

async function apply(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const file = given.flags.get("file");
  const isPrevious = given.flags.has("previous");
  if ((file === undefined) !== isPrevious) return fail("usage", "apply needs either --file FILE or --previous");
  const own = file === undefined ? undefined : await readDocument(context, file, "node in service");
  if (own !== undefined && !own.ok) return own;
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const text = own === undefined ? await previousText(client.value) : ok(own.value.text);
  if (!text.ok) return text;
  const confirmWithin = given.flags.get("confirm-within");
  const body: ApplyBody = {
    document: text.value,
    ...(confirmWithin === undefined ? {} : { confirmWithin }),
    ...(given.flags.has("own-patch") ? { acknowledge: true } : {}),
  };
  const planned = await client.value.post("/v1/config?dryRun=true", body);
  if (!planned.ok) return planned;
  const plan = planned.value.json as ApplyAnswer;
  const isDry = given.flags.has("dry-run");
  if (!isDry && plan.status === "unchanged") {
    const settled = await refuseWhileWaiting(client.value);
    if (!settled.ok) return settled;
  }
  if (isDry || plan.status === "unchanged") {
    printAnswer<ApplyAnswer>(context, planned.value, (answer) => planText(answer, client.value.label, context.paint));
    return ok(exitStatus.done);
  }
  const guarded = plan.fields.filter((field) => field.class === "guarded").map(({ path }) => printable(path));
  if (guarded.length > 0 && confirmWithin === undefined) {
    const hint =
      "--confirm-within 2m: the node takes it back unless you confirm it in that time, over a new connection";
    return fail("needs-confirmation", `a change of ${guarded.join(", ")} could lock you out; nothing was changed`, {
      hint,
    });
  }
  // With json, standard output holds the one answer of the apply; the plan is for the person who is asked.
  if (context.output === "text") context.io.out(planText(plan, client.value.label, context.paint));
  else if (context.io.ask !== undefined && !context.isAgreed) {
    context.io.err(planText(plan, client.value.label, context.paint));
  }
  const agreed = await agree(context, `Apply this to ${client.value.label}`);
  if (!agreed.ok) return agreed;
  const etag = quoted(given.flags.get("if-match")) ?? planned.value.headers.get("etag") ?? plan.etag;
  const headers: Readonly<Record<string, string>> = etag === undefined ? {} : { "If-Match": etag };
  const write = () => client.value.post("/v1/config", body, headers);
  const follow = confirmWithin === undefined ? followOperation : settledOperation;
  const done = await runWrite(context, client.value, { kind: "apply", write, follow });
  if (!done.ok) return done;
  const waiting = waitingIn(done.value, plan);
  if (waiting !== undefined && confirmWithin !== undefined) {
    if (context.output !== "text") printValue(context, waiting.answer);
    return askToKeep(context, {
      client: client.value,
      node: given.positionals[0] ?? "",
      within: confirmWithin,
      ...waiting,
    });
  }
  if (done.value.kind === "answer") return finish(context, client.value, done.value.answer);
  const { operation } = done.value;
  context.io.err("cctl: the answer was lost on the way; the operation has succeeded\n");
  context.io.out(
    context.output === "text" ? operationText(operation) : `${jsonPrintable(JSON.stringify(operation))}\n`,
  );
  return ok(exitStatus.done);
}

/** A shell takes the double quotes of an ETag away. */
const quoted = (etag: string | undefined): string | undefined =>
  etag === undefined || etag === "*" || etag.includes('"') ? etag : `"${etag}"`;

function waitingIn(
  done: Answered,
  plan: ApplyAnswer,
): { readonly id: string; readonly answer: ApplyAnswer } | undefined {
  const status = "awaiting-confirmation";
  if (done.kind === "operation") {
    const { id, phase } = done.operation;
    return phase === status ? { id, answer: { ...plan, status, operation: id } } : undefined;
  }
  const answer = done.answer.json as ApplyAnswer;
  return answer.status === status && answer.operation !== undefined ? { id: answer.operation, answer } : undefined;
}

async function previousText(client: Client): Promise<Result<string, AppError>> {
  const answer = await client.get("/v1/config/previous");
  return answer.ok ? ok((answer.value.json as PreviousAnswer).document) : answer;
}

async function finish(context: Context, client: Client, done: ApiAnswer): Promise<Result<number, AppError>> {
  const { operation } = done.json as ApplyAnswer;
  const outcome = operation === undefined ? undefined : await followOperation(context, client, operation);
  if (outcome !== undefined && !outcome.ok) return outcome;
  printAnswer<ApplyAnswer>(context, done, (answer) => {
    const restarted =
      answer.restarted.length === 0 ? "nothing restarted" : `restarted ${printable(answer.restarted.join(", "))}`;
    if (answer.status === "applied") return "taken: the node bootstraps with this document\n";
    return answer.status === "unchanged" ? "unchanged: nothing was written\n" : `applied: ${restarted}\n`;
  });
  return ok(exitStatus.done);
}

async function diff(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const file = given.flags.get("file");
  const document = file === undefined ? undefined : await readDocument(context, file, "node in service");
  if (document !== undefined && !document.ok) return document;
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  if (document === undefined) {
    const status = await client.value.get("/v1/config/status");
    if (!status.ok) return status;
    printAnswer<ConfigStatusAnswer>(context, status.value, (answer) => configStatusText(answer, context.paint));
    const isInSync = (status.value.json as ConfigStatusAnswer).state === "in-sync";
    return ok(isInSync ? exitStatus.done : exitStatus.notWished);
  }
  const body: ApplyBody = {
    document: document.value.text,
    ...(given.flags.has("own-patch") ? { acknowledge: true } : {}),
  };
  const planned = await client.value.post("/v1/config?dryRun=true", body);
  if (!planned.ok) return planned;
  printAnswer<ApplyAnswer>(context, planned.value, (answer) => planText(answer, client.value.label, context.paint));
  const isSame = (planned.value.json as ApplyAnswer).status === "unchanged";
  return ok(isSame ? exitStatus.done : exitStatus.notWished);
}
