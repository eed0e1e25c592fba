/** `cctl reset`: says what is lost, has the node's name typed, and follows until the node is nobody's. */
import { type AppError, fail } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import type { ResetAnswer, ResetBody } from "../api/contract.ts";
import type { Arguments } from "./arguments.ts";
import { type Client, clientFor } from "./client.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { followAs } from "./follow.ts";
import { jsonPrintable, printable } from "./printable.ts";

export const resetCommand: CctlCommand = {
  words: ["reset"],
  operands: "ADDR",
  summary: "leave the cluster, erase what the node is, and restart it unclaimed",
  flags: [
    { name: "wipe-disks", help: "wipe its data disks, which are kept otherwise" },
    { name: "destroy-cluster", help: "also as the only controller, or with etcd's quorum lost" },
    { name: "dry-run", help: "show what would be erased, kept and left" },
    { name: "confirm", value: "HOSTNAME", help: "the node's name, instead of typing it" },
  ],
  run: reset,
};

async function reset(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const { flags } = given;
  const isDry = flags.has("dry-run");
  const confirmed = flags.get("confirm");
  if (context.isAgreed && confirmed === undefined && !isDry)
    return fail("usage", "--yes is not enough for a reset", {
      hint: "--confirm HOSTNAME names the node that is erased",
    });
  const client = await clientFor(context, given.positionals[0] ?? "");
  if (!client.ok) return client;
  const body: ResetBody = {
    ...(flags.has("wipe-disks") ? { wipeDisks: true } : {}),
    ...(flags.has("destroy-cluster") ? { destroyCluster: true } : {}),
  };
  const planned = await client.value.post("/v1/lifecycle/reset?dryRun=true", body);
  if (!planned.ok) return planned;
  const plan = planned.value.json as ResetAnswer;
  const isText = context.output === "text";
  if (isText) context.io.out(formatPlan(client.value.label, plan));
  if (isDry) {
    if (!isText) context.io.out(`${jsonPrintable(planned.value.body.trimEnd())}\n`);
    return ok(exitStatus.done);
  }
  const typed = confirmed ?? (await context.io.ask?.(`type ${printable(plan.hostname)} to reset it: `));
  if (typed === undefined)
    return fail("declined", "nobody is here to confirm, so nothing was done", { hint: "--confirm HOSTNAME confirms" });
  if (typed.trim() !== plan.hostname)
    return fail("declined", `that is not ${printable(plan.hostname)}, so nothing was done`);
  const answer = await client.value.post("/v1/lifecycle/reset", { ...body, confirm: typed.trim() });
  if (!answer.ok) return answer;
  if (!isText) context.io.out(`${jsonPrintable(answer.value.body.trimEnd())}\n`);
  const { operation } = answer.value.json as ResetAnswer;
  const followed = operation === undefined ? ok(undefined) : await followReset(context, client.value, operation);
  if (!followed.ok) return followed;
  if (isText)
    context.io.out(
      "reset: it restarts, unclaimed, with another fingerprint; its console shows the code to claim it with\n",
    );
  return ok(exitStatus.done);
}

export function formatPlan(label: string, { erased, kept, left, skipped }: ResetAnswer): string {
  const part = (title: string, lines: readonly string[]): readonly string[] =>
    lines.length === 0 ? [] : [`  ${title}:`, ...lines.map((line) => `    - ${printable(line)}`)];
  return [
    `reset of ${label}`,
    ...part("erased", erased),
    ...part("kept", kept),
    ...part("left as it is", left),
    ...part("not done", skipped),
    "",
  ].join("\n");
}

/** Its operation is erased with all else: whoever saw the last steps begin has seen it succeed. */
async function followReset(context: Context, client: Client, id: string): Promise<Result<unknown, AppError>> {
  return followAs(context, client, id, {
    name: `the reset of ${client.label}`,
    gone(last, streamed) {
      const isForgetting =
        last?.steps.some(({ id: step, state }) => step === "reset:files" && state !== "pending") ?? false;
      // Another key: it is back already, and nobody's.
      const isAnother = !streamed.ok && streamed.error.code === "wrong-peer";
      return isForgetting || isAnother ? "gone" : undefined;
    },
  });
}
