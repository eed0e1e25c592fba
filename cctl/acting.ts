/** The commands that make a node do one thing. */
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import type { CordonAnswer, OperationsAnswer, ReplaceAnswer } from "../api/contract.ts";
import { agree } from "./agree.ts";
import type { Arguments, FlagSpec } from "./arguments.ts";
import { printAnswer } from "./answers.ts";
import { type Client, clientFor } from "./client.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { followOperation } from "./follow.ts";
import { jsonPrintable, printable } from "./printable.ts";

const nodeFlag: FlagSpec = {
  name: "node",
  value: "NAME",
  help: "as Kubernetes calls it; default the controller itself, where it takes pods",
};

export const actingCommands: readonly CctlCommand[] = [
  {
    words: ["restart"],
    operands: "ADDR UNIT",
    summary: "restart k0scontroller or k0sworker",
    flags: [],
    run: (context, given) => {
      const unit = given.positionals[1] ?? "";
      return act(context, given, `/v1/services/${encodeURIComponent(unit)}/restart`, `restart ${unit} on`);
    },
  },
  {
    words: ["reboot"],
    operands: "ADDR",
    summary: "reboot the node",
    flags: [],
    run: (context, given) => act(context, given, "/v1/lifecycle/reboot", "reboot"),
  },
  {
    words: ["shutdown"],
    operands: "ADDR",
    summary: "switch the node off",
    flags: [],
    run: (context, given) => act(context, given, "/v1/lifecycle/shutdown", "shut down"),
  },
  {
    words: ["cordon"],
    operands: "ADDR",
    summary: "let no new pods come to a node, through a controller",
    flags: [{ name: "undo", help: "let them come again, as uncordon does" }, nodeFlag],
    run: (context, given) => cordon(context, given, given.flags.has("undo")),
  },
  {
    words: ["uncordon"],
    operands: "ADDR",
    summary: "let new pods come again to a node that was cordoned so",
    flags: [nodeFlag],
    run: (context, given) => cordon(context, given, true),
  },
  {
    words: ["drain"],
    operands: "ADDR",
    summary: "cordon a node and have its pods go elsewhere; nothing is forced",
    flags: [nodeFlag],
    run: drain,
  },
  {
    words: ["disk", "replace"],
    operands: "ADDR ARRAY",
    summary: "put a new disk in the place of one of an array's, or of a mirrored system's: ARRAY `system`",
    flags: [
      { name: "old", value: "SERIAL", help: "of the disk that goes; also its WWN or path" },
      { name: "new", value: "SERIAL|PATH", help: "of the disk that comes" },
      { name: "wipe", help: "destroy what is on the new disk" },
      { name: "dry-run", help: "show what would be done" },
    ],
    run: replaceDisk,
  },
  {
    words: ["retry"],
    operands: "ADDR [ID]",
    summary: "go on with a failed installation or bootstrap: the newest, or operation ID",
    flags: [{ name: "wipe-own", help: "what this node itself made may be lost, once, where its document says wipe" }],
    run: retry,
  },
];

const nodeBody = (given: Arguments): object => {
  const node = given.flags.get("node");
  return node === undefined ? {} : { node };
};

/** It takes nothing away from anybody, so nobody is asked. */
async function cordon(context: Context, given: Arguments, isUndo: boolean): Promise<Result<number, AppError>> {
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const answer = await client.value.post(`/v1/lifecycle/cordon${isUndo ? "?undo=true" : ""}`, nodeBody(given));
  if (!answer.ok) return answer;
  printAnswer<CordonAnswer>(context, answer.value, ({ node, cordoned, changed }) => {
    const is = cordoned ? "cordoned" : "open to new pods";
    return `${printable(node)} is ${is}${changed ? "" : ", as it was"}\n`;
  });
  return ok(exitStatus.done);
}

async function drain(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const agreed = await agree(
    context,
    `drain ${given.flags.get("node") ?? "the node itself"} through ${client.value.label}`,
  );
  if (!agreed.ok) return agreed;
  const answer = await client.value.post("/v1/lifecycle/drain", nodeBody(given));
  if (!answer.ok) return answer;
  if (context.output === "json") context.io.out(`${jsonPrintable(answer.value.body.trimEnd())}\n`);
  const operation = operationOf(answer.value.json);
  return operation === undefined ? done(context, "asked for") : watch(context, client.value, operation);
}

async function retry(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const node = given.positionals[0] ?? "";
  const id = given.positionals[1] ?? (await newestFailed(context, node));
  if (typeof id !== "string") return id;
  const isOwnLost = given.flags.has("wipe-own");
  const path = `/v1/operations/${encodeURIComponent(id)}/retry${isOwnLost ? "?wipeOwn=true" : ""}`;
  return act(context, given, path, `retry operation ${id}${isOwnLost ? ", losing what it made before," : ""} of`);
}

async function newestFailed(context: Context, node: string): Promise<string | Result<number, AppError>> {
  const client = await clientFor(context, node);
  if (!client.ok) return client;
  const answer = await client.value.get("/v1/operations");
  if (!answer.ok) return answer;
  const { operations } = answer.value.json as OperationsAnswer;
  const failed = operations.find(({ kind }) => kind === "bootstrap" || kind === "install");
  if (failed?.phase === "failed") return failed.id;
  return fail("nothing-failed", `${client.value.label} has no failed installation or bootstrap`, {
    hint: `cctl operations ${node}`,
  });
}

/** The plan first: what is lost on the new disk stands in it. */
async function replaceDisk(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const [node = "", array] = given.positionals;
  const { flags } = given;
  const [old, fresh] = [flags.get("old"), flags.get("new")];
  if (old === undefined || fresh === undefined) {
    return fail("usage", "disk replace needs --old and --new", { hint: "cctl disk replace --help" });
  }
  const client = await clientFor(context, node);
  if (!client.ok) return client;
  const body = { array, old, new: fresh, ...(flags.has("wipe") ? { wipe: true } : {}) };
  const planned = await client.value.post("/v1/disks/replace?dryRun=true", body);
  if (!planned.ok) return planned;
  const { steps, warnings } = planned.value.json as ReplaceAnswer;
  const isText = context.output === "text";
  if (isText) {
    for (const { message } of warnings) context.io.out(`warning: ${printable(message)}\n`);
    for (const { title } of steps) context.io.out(`- ${printable(title)}\n`);
  }
  if (flags.has("dry-run")) {
    if (!isText) context.io.out(`${jsonPrintable(planned.value.body.trimEnd())}\n`);
    return ok(exitStatus.done);
  }
  const agreed = await agree(context, `replace the disk on ${client.value.label}`);
  if (!agreed.ok) return agreed;
  const answer = await client.value.post("/v1/disks/replace", body);
  if (!answer.ok) return answer;
  if (!isText) context.io.out(`${jsonPrintable(answer.value.body.trimEnd())}\n`);
  const operation = operationOf(answer.value.json);
  return operation === undefined ? done(context, "asked for") : watch(context, client.value, operation);
}

async function act(
  context: Context,
  given: Arguments,
  path: string,
  question: string,
): Promise<Result<number, AppError>> {
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const agreed = await agree(context, `${question} ${client.value.label}`);
  if (!agreed.ok) return agreed;
  const answer = await client.value.post(path, {});
  if (!answer.ok) return answer;
  if (context.output === "json" && answer.value.body !== "")
    context.io.out(`${jsonPrintable(answer.value.body.trimEnd())}\n`);
  const operation = operationOf(answer.value.json);
  return operation === undefined || path.startsWith("/v1/lifecycle/")
    ? done(context, "asked for")
    : watch(context, client.value, operation);
}

async function watch(context: Context, client: Client, id: string): Promise<Result<number, AppError>> {
  const followed = await followOperation(context, client, id);
  return followed.ok ? done(context, "done") : followed;
}

function done(context: Context, word: string): Result<number, AppError> {
  if (context.output === "text") context.io.out(`${word}\n`);
  return ok(exitStatus.done);
}

function operationOf(json: unknown): string | undefined {
  if (typeof json !== "object" || json === null || !("operation" in json)) return undefined;
  return typeof json.operation === "string" ? json.operation : undefined;
}
