/** Letting go of the bootstrap CNI: on one controller, or on all of a cluster, one after the other, the leader last. */
import type { HandoverAnswer, NodeAnswer } from "../api/contract.ts";
import { type AppError, fail, formatError } from "../kit/app-error.ts";
import { type Result, ok } from "../kit/result.ts";
import { agree } from "./agree.ts";
import { printValue } from "./answers.ts";
import type { Arguments } from "./arguments.ts";
import { type Client, clientFor } from "./client.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { followOperation } from "./follow.ts";
import { printable } from "./printable.ts";
import { type Controller, checkMembers, leaderLast, leaderOf } from "./several/controllers.ts";

const PATH = "/v1/handover";

interface Node extends Controller {
  readonly client: Client;
  readonly answer: HandoverAnswer;
}

export const handoverCommand: CctlCommand = {
  words: ["handover"],
  operands: "ADDR…",
  summary:
    "let go of the bootstrap CNI, which GitOps has: nothing of it is deleted; of a cluster name every controller",
  flags: [{ name: "dry-run", help: "show what would be done and stop" }],
  run: handover,
};

async function handover(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const planned = await planAll(context, given.positionals);
  if (!planned.ok) return planned;
  const nodes = planned.value;
  const open = leaderLast(
    nodes.filter(({ answer }) => answer.status !== "unchanged"),
    leaderOf(nodes),
  );
  if (context.output === "text") context.io.out(nodes.map(planText).join(""));
  if (given.flags.has("dry-run") || open.length === 0) {
    show(context, nodes);
    return ok(exitStatus.done);
  }
  const names = open.map(({ hostname }) => printable(hostname)).join(", then ");
  const agreed = await agree(context, `Hand the CNI over on ${names}`);
  return agreed.ok ? handOverAll(context, nodes, open) : agreed;
}

/** Everything that can be refused is refused here, before any k0s is stopped. */
async function planAll(context: Context, addresses: readonly string[]): Promise<Result<readonly Node[], AppError>> {
  const nodes: Node[] = [];
  for (const address of addresses) {
    const client = await clientFor(context, address);
    if (!client.ok) return client;
    const { label } = client.value;
    if (nodes.some((node) => node.label === label)) return fail("usage", `${label} is named twice`);
    const node = await client.value.get("/v1/node");
    if (!node.ok) return node;
    const answer = await client.value.post(`${PATH}?dryRun=true`, {});
    if (!answer.ok) return answer;
    const planned = answer.value.json as HandoverAnswer;
    const { controlPlane } = planned;
    const { hostname } = node.value.json as NodeAnswer;
    nodes.push({
      label,
      client: client.value,
      hostname,
      answer: planned,
      ...(controlPlane === undefined ? {} : { controlPlane }),
    });
  }
  // A node with a datastore of its own has nobody beside it.
  if (nodes.length === 1 && nodes[0]?.controlPlane === undefined) return ok(nodes);
  const members = checkMembers(nodes);
  return members.ok ? ok(nodes) : members;
}

function planText({ label, answer: { status, stack, keptAt } }: Node): string {
  const name = printable(label);
  if (status === "unchanged")
    return `${name}: ${printable(stack)} was handed over before; kept in ${printable(keptAt)}\n`;
  return `${name}: k0scontroller stops, the files of ${printable(stack)} move to ${printable(keptAt)}, k0scontroller starts without them\n`;
}

async function handOverAll(
  context: Context,
  nodes: readonly Node[],
  open: readonly Node[],
): Promise<Result<number, AppError>> {
  const done: Node[] = [];
  let left = open;
  for (let next = left[0]; next !== undefined; next = left[0]) {
    const node = next;
    if (context.output === "text") context.io.err(`${printable(node.label)}: k0s stops and starts\n`);
    const answer = await handOverOne(context, node);
    left = left.filter((one) => one !== node);
    if (!answer.ok) return stopped({ node, error: answer.error }, nodes, [...done, ...nodes.filter(isDone)], left);
    done.push({ ...node, answer: answer.value });
    if (context.output === "text") context.io.out(`${printable(node.label)}: handed over\n`);
    left = leaderLast(left, await askLeader(left));
  }
  show(
    context,
    nodes.map((node) => done.find(({ label }) => label === node.label) ?? node),
  );
  return ok(exitStatus.done);
}

const isDone = ({ answer }: Node): boolean => answer.status === "unchanged";

async function handOverOne(context: Context, { client }: Node): Promise<Result<HandoverAnswer, AppError>> {
  const begun = await client.post(PATH, {});
  if (!begun.ok) return begun;
  const answer = begun.value.json as HandoverAnswer;
  if (answer.operation === undefined) return ok(answer);
  const followed = await followOperation(context, client, answer.operation);
  return followed.ok ? ok(answer) : followed;
}

/** An election may have come with the restart. */
async function askLeader([first]: readonly Node[]): Promise<string | undefined> {
  const answer = await first?.client.post(`${PATH}?dryRun=true`, {});
  return answer?.ok === true ? (answer.value.json as HandoverAnswer).controlPlane?.leader : undefined;
}

function stopped(
  { node, error }: { readonly node: Node; readonly error: AppError },
  nodes: readonly Node[],
  done: readonly Node[],
  left: readonly Node[],
): Result<never, AppError> {
  if (nodes.length === 1) return { ok: false, error };
  return fail(error.code, `${node.label} could not hand over; the others were not touched`, {
    cause: error,
    details: [
      ...done.map(({ label }) => `${label}: handed over`),
      `${node.label}: ${formatError(error).split("\n")[0] ?? error.message}`,
      ...left.map(({ label }) => `${label}: as before`),
    ],
    hint: "name all of them again when that is mended: what is handed over stays so",
  });
}

/** For programs: of one node its own answer, of several by node. */
function show(context: Context, nodes: readonly Node[]): void {
  if (context.output === "text") return;
  printValue(
    context,
    nodes.length === 1 ? nodes[0]?.answer : nodes.map(({ label, answer }) => ({ node: label, answer })),
  );
}
