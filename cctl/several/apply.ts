/**
 * Cluster content for every controller: dry runs of all, one plan, one question; then it is written everywhere, and
 * only then k0s restarts, one node at a time, the leader last. What stops in the middle is told node by node.
 */
import { blocksOf } from "../../config/with-blocks.ts";
import { type AppError, appError, fail, formatError } from "../../kit/app-error.ts";
import { type Result, ok } from "../../kit/result.ts";
import type { ApplyAnswer, ApplyBody, NodeAnswer } from "../../api/contract.ts";
import { agree } from "../agree.ts";
import { printValue } from "../answers.ts";
import type { Arguments } from "../arguments.ts";
import { type Client, clientFor } from "../client.ts";
import { type Context, exitStatus } from "../context.ts";
import { type DocumentFile, readDocument } from "../document-file.ts";
import { refuseWhileWaiting } from "../confirm.ts";
import { runConfirm } from "../follow.ts";
import { printable } from "../printable.ts";
import { planText } from "../text/plan.ts";
import { type Controller, checkMembers, checkRoles, isLeader, leaderLast, leaderOf } from "./controllers.ts";

interface Node extends Controller {
  readonly client: Client;
  readonly plan: ApplyAnswer;
}

export async function applyToSeveral(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const { flags, positionals } = given;
  const file = flags.get("file");
  if (file === undefined || ["previous", "if-match", "confirm-within"].some((flag) => flags.has(flag))) {
    const not = "none of --previous, --if-match and --confirm-within";
    return fail("usage", `apply of several controllers takes --file FILE, and ${not}`);
  }
  const document = await readDocument(context, file, "node in service");
  if (!document.ok) return document;
  const blocks = blocksOf(document.value.text);
  if (!blocks.ok) return blocks;
  const body: ApplyBody = {
    blocks: blocks.value,
    coordinated: true,
    ...(flags.has("own-patch") ? { acknowledge: true } : {}),
  };
  const planned = await planAll(context, { addresses: positionals, body, document: document.value });
  if (!planned.ok) return planned;
  const nodes = planned.value;
  const changed = leaderLast(
    nodes.filter(({ plan }) => plan.status !== "unchanged"),
    leaderOf(nodes),
  );
  if (!flags.has("dry-run") && changed.length === 0) {
    for (const { client } of nodes) {
      const settled = await refuseWhileWaiting(client);
      if (!settled.ok) return settled;
    }
  }
  if (flags.has("dry-run") || changed.length === 0) {
    show(context, nodes);
    return ok(exitStatus.done);
  }
  if (context.output === "text") context.io.out(plansText(context, nodes));
  else if (context.io.ask !== undefined && !context.isAgreed) context.io.err(plansText(context, nodes));
  const names = changed.map(({ hostname }) => printable(hostname)).join(", ");
  const agreed = await agree(context, `Apply this to ${names}`);
  if (!agreed.ok) return agreed;
  const written = await writeAll(changed, body);
  if (!written.ok) return written;
  return restartAll(context, nodes, written.value);
}

/** Everything that can be refused is refused here, by all of them at once, before any is changed. */
async function planAll(
  context: Context,
  {
    addresses,
    body,
    document,
  }: { readonly addresses: readonly string[]; readonly body: ApplyBody; readonly document: DocumentFile },
): Promise<Result<readonly Node[], AppError>> {
  const clients: Client[] = [];
  for (const address of addresses) {
    const client = await clientFor(context, address);
    if (!client.ok) return client;
    if (clients.some(({ label }) => label === client.value.label)) {
      return fail("usage", `${client.value.label} is named twice`);
    }
    clients.push(client.value);
  }
  const found: { readonly label: string; readonly client: Client; readonly node: NodeAnswer }[] = [];
  for (const client of clients) {
    const answer = await client.get("/v1/node");
    if (!answer.ok) return untouched(client, answer.error);
    found.push({ label: client.label, client, node: answer.value.json as NodeAnswer });
  }
  const roles = checkRoles(found, document.cluster);
  if (!roles.ok) return roles;

  const nodes: Node[] = [];
  const refusals: string[] = [];
  for (const { label, client, node } of found) {
    const planned = await client.post("/v1/config?dryRun=true", body);
    if (!planned.ok) {
      if (planned.error.code === "unreachable") return untouched(client, planned.error);
      refusals.push(...formatError(planned.error).split("\n"));
      continue;
    }
    const plan = planned.value.json as ApplyAnswer;
    const { controlPlane } = plan;
    nodes.push({
      label,
      client,
      hostname: node.hostname,
      plan,
      ...(controlPlane === undefined ? {} : { controlPlane }),
    });
  }
  if (refusals.length > 0) {
    const who = found.filter(({ client }) => !nodes.some((node) => node.client === client)).map(({ label }) => label);
    return fail("refused", `refused by ${who.join(", ")}; nothing was changed on any node`, { details: refusals });
  }
  const members = checkMembers(nodes);
  return members.ok ? ok(nodes) : members;
}

const untouched = (client: Client, cause: AppError): Result<never, AppError> =>
  fail(cause.code, `${client.label} can't be asked; nothing was changed on any node`, { cause });

/** The same plan is shown once, with the names of all whose it is. */
function plansText(context: Context, nodes: readonly Node[]): string {
  const groups = new Map<string, Node[]>();
  for (const node of nodes) {
    const { status, fields, restarted, files, consequences, warnings } = node.plan;
    const key = JSON.stringify([status, fields, restarted, files, consequences, warnings]);
    groups.set(key, [...(groups.get(key) ?? []), node]);
  }
  const texts = [...groups.values()].map((group) => {
    const [first] = group;
    const names = group.map(({ label }) => label).join(", ");
    return first === undefined ? "" : planText(first.plan, names, context.paint);
  });
  const changed = nodes.filter(({ plan }) => plan.status !== "unchanged");
  const leader = leaderOf(nodes);
  const order = leaderLast(changed, leader).map(
    ({ hostname }) => `${printable(hostname)}${isLeader(hostname, leader) ? " (leads)" : ""}`,
  );
  const last = changed.length === 0 ? [] : [`written on all, then one at a time: ${order.join(", ")}\n`];
  return [...texts, ...last].join("");
}

function show(context: Context, nodes: readonly Node[]): void {
  if (context.output === "text") context.io.out(plansText(context, nodes));
  else
    printValue(
      context,
      nodes.map(({ label, plan }) => ({ node: label, answer: plan })),
    );
}

/** Written, not yet read by its k0s. */
interface Written {
  readonly node: Node;
  readonly operation: string;
}

/** In the order of restarts: an add-on's manifests are applied as soon as the leader has them. */
async function writeAll(nodes: readonly Node[], body: ApplyBody): Promise<Result<readonly Written[], AppError>> {
  const written: Written[] = [];
  for (const node of nodes) {
    const { etag } = node.plan;
    const answer = await node.client.post("/v1/config", body, etag === undefined ? {} : { "If-Match": etag });
    const { status, operation } = answer.ok ? (answer.value.json as ApplyAnswer) : {};
    if (answer.ok && status === "unchanged") continue;
    if (answer.ok && operation !== undefined) {
      written.push({ node, operation });
      continue;
    }
    const cause = answer.ok ? appError("protocol", `it answers ${status}`) : answer.error;
    const isUnknown = cause.code === "unreachable";
    const states = [
      ...(await takeBack(written)),
      isUnknown
        ? `${node.label}: not known; if it was written, it is put back within the hour, or by cctl cancel`
        : `${node.label}: as before`,
      ...nodes.slice(nodes.indexOf(node) + 1).map(({ label }) => `${label}: as before`),
    ];
    return fail(cause.code, `${node.label} could not write it, so no k0s was restarted`, {
      cause,
      details: states,
      hint: "apply to all of them again",
    });
  }
  return ok(written);
}

/** What became of each of them, in a line. */
async function takeBack(written: readonly Written[]): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const { node, operation } of written) {
    const answer = await node.client.post(`/v1/operations/${encodeURIComponent(operation)}/cancel`, {});
    lines.push(
      answer.ok
        ? `${node.label}: as before, k0s was not restarted`
        : `${node.label}: has the new files, which its k0s has not read; it puts them back within the hour (${answer.error.message})`,
    );
  }
  return lines;
}

async function restartAll(
  context: Context,
  nodes: readonly Node[],
  written: readonly Written[],
): Promise<Result<number, AppError>> {
  const done: { readonly node: Node; readonly answer: ApplyAnswer }[] = [];
  let left = written;
  let leader = leaderOf(nodes);
  for (;;) {
    // Asked after each restart: an election may have come in between.
    const [next] = leaderLast(
      left.map((one) => ({ ...one, hostname: one.node.hostname })),
      leader,
    );
    if (next === undefined) break;
    const { node, operation } = next;
    left = left.filter((one) => one.operation !== operation || one.node !== node);
    if (context.output === "text") context.io.err(`${printable(node.label)}: k0s restarts\n`);
    const path = `/v1/operations/${encodeURIComponent(operation)}/confirm`;
    const answer = await runConfirm(context, node.client, operation, () => node.client.post(path, {}));
    if (!answer.ok) return stopped({ nodes, done, failed: { node, error: answer.error }, left });
    const { value } = answer;
    done.push({ node, answer: value ?? { ...node.plan, status: "reconciled", operation } });
    leader = value?.controlPlane?.leader ?? leader;
  }
  if (context.output !== "text") {
    printValue(
      context,
      nodes.map((node) => ({ node: node.label, answer: done.find((one) => one.node === node)?.answer ?? node.plan })),
    );
    return ok(exitStatus.done);
  }
  for (const { node, answer } of done) {
    const restarted =
      answer.restarted.length === 0 ? "nothing restarted" : `restarted ${printable(answer.restarted.join(", "))}`;
    context.io.out(`${printable(node.label)}: applied, ${printable(restarted)}\n`);
  }
  return ok(exitStatus.done);
}

const BECAME: Readonly<Record<string, string>> = {
  "rolled-back": "failed, and has its old files again",
  stuck: "failed, and could not be put back; its next start tries again",
  "not-waiting": "was put back before it could restart",
};

async function stopped({
  nodes,
  done,
  failed,
  left,
}: {
  readonly nodes: readonly Node[];
  readonly done: readonly { readonly node: Node }[];
  readonly failed: { readonly node: Node; readonly error: AppError };
  readonly left: readonly Written[];
}): Promise<Result<number, AppError>> {
  const { node, error } = failed;
  const became = BECAME[error.code] ?? "does not answer, so what it has is not known; cctl operations says it later";
  const states = [
    ...nodes.filter(({ plan }) => plan.status === "unchanged").map(({ label }) => `${label}: has it, as before`),
    ...done.map((one) => `${one.node.label}: has it`),
    `${node.label}: ${became}`,
    ...(await takeBack(left)),
  ];
  const isSplit = done.length > 0 || nodes.some(({ plan }) => plan.status === "unchanged");
  return fail(error.code, `${node.label} did not come back with it; the others were not restarted`, {
    cause: error,
    details: states,
    hint: isSplit
      ? "until all have the same, what the cluster runs depends on who leads: correct the file and apply it to all again, or apply to all what they had before"
      : "correct the file and apply it to all again",
  });
}
