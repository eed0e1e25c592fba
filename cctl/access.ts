/** What lets others into the cluster: to standard output alone, or into a file of one's own; reminders go to stderr. */
import { stringify } from "yaml";
import type { Document } from "../config/document.ts";
import { type AppError, fail } from "../kit/app-error.ts";
import { type Finding, formatFinding, hasErrors } from "../kit/finding.ts";
import { type Result, ok } from "../kit/result.ts";
import { checkDocument } from "../supervisor/check-document.ts";
import type { ConfigAnswer, JoinTokenAnswer, JoinTokenBody, KubeconfigAnswer } from "../api/contract.ts";
import { printAnswer } from "./answers.ts";
import type { Arguments, FlagSpec } from "./arguments.ts";
import { type ApiAnswer, type Client, clientFor } from "./client.ts";
import { type CctlCommand, type Context, exitStatus } from "./context.ts";
import { printable } from "./printable.ts";

const fileFlags: readonly FlagSpec[] = [
  {
    name: "output-file",
    value: "FILE",
    help: "into this file, which only you may read, instead of standard output",
  },
  { name: "to", value: "FILE", help: "the same" },
  { name: "force", help: "also over a file that is there" },
];
const expiry: FlagSpec = {
  name: "expiry",
  value: "TIME",
  help: "how long the token lets anybody in, 1m to 24h; default 1h",
};

export const accessCommands: readonly CctlCommand[] = [
  {
    words: ["kubeconfig"],
    operands: "ADDR",
    summary: "the kubeconfig of the cluster's administrator, from a controller",
    flags: [
      {
        name: "server",
        value: "HOST[:PORT]",
        help: "where it leads; default the cluster's endpoint, else the controller",
      },
      ...fileFlags,
    ],
    run: kubeconfig,
  },
  {
    words: ["join-token"],
    operands: "ADDR",
    summary: "a token with which a node joins the cluster, from a controller",
    flags: [
      { name: "role", value: "worker|controller", help: "of the node that joins; default worker" },
      expiry,
      ...fileFlags,
    ],
    run: joinToken,
  },
  {
    words: ["worker-config"],
    operands: "ADDR",
    summary: "a document for a new worker, from a controller: it joins the cluster",
    flags: [
      { name: "name", value: "NAME", help: "node.name of the worker" },
      { name: "label", value: "KEY=VALUE,…", help: "labels of its Node object" },
      expiry,
      ...fileFlags,
    ],
    run: workerConfig,
  },
];

async function kubeconfig(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const begun = await begin(context, given);
  if (!begun.ok) return begun;
  const server = given.flags.get("server");
  const query = server === undefined ? "" : `?server=${encodeURIComponent(server)}`;
  const answer = await begun.value.get(`/v1/kubeconfig${query}`);
  if (!answer.ok) return answer;
  const { kubeconfig: text, warnings } = answer.value.json as KubeconfigAnswer;
  for (const warning of warnings) context.io.err(`cctl: warning: ${printable(warning)}\n`);
  return give(context, given, { text, answer: answer.value });
}

async function joinToken(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const role = given.flags.get("role") ?? "worker";
  if (role !== "worker" && role !== "controller") {
    return fail("usage", `'${role}' is no role of a token: wanted worker or controller`);
  }
  const begun = await begin(context, given);
  if (!begun.ok) return begun;
  const answer = await mint(begun.value, given, role);
  if (!answer.ok) return answer;
  const { token, id, expiresAt } = answer.value.json as JoinTokenAnswer;
  context.io.err(`token ${printable(id)} lets a ${role} in until ${printable(expiresAt)}\n`);
  return give(context, given, { text: `${token}\n`, answer: answer.value });
}

async function workerConfig(context: Context, given: Arguments): Promise<Result<number, AppError>> {
  const labels = parseLabels(given.flags.get("label"));
  if (!labels.ok) return labels;
  const begun = await begin(context, given);
  if (!begun.ok) return begun;
  const client = begun.value;
  const config = await client.get("/v1/config");
  if (!config.ok) return config;
  const nowMs = context.clock.nowMs();
  const { document } = checkDocument((config.value.json as ConfigAnswer).document, { file: client.label, nowMs });
  if (document === undefined) return fail("document", `the document of ${client.label} can't be read by this cctl`);
  const name = given.flags.get("name");
  const own = { labels: labels.value, ...(name === undefined ? {} : { name }) };
  // Before anything lets anybody in: a token whose document is refused would be of use to others only.
  const draft = checkWorker(stringify(workerOf(document, { ...own, join: { tokenFrom: { file: "/token" } } })), nowMs);
  if (!draft.ok) return draft;
  const minted = await mint(client, given, "worker");
  if (!minted.ok) return minted;
  const { token, expiresAt } = minted.value.json as JoinTokenAnswer;
  const head = `# A worker of cluster ${document.cluster.name}. Its token lets anybody in until ${printable(expiresAt)}: keep it to yourself.\n`;
  const text = head + stringify(workerOf(document, { ...own, join: { token } }), { lineWidth: 0 });
  const checked = checkWorker(text, nowMs);
  if (!checked.ok) return checked;
  for (const warning of checked.value) context.io.err(`${formatFinding(warning)}\n`);
  if (document.wireguard.some(({ nodeAddress }) => nodeAddress)) {
    context.io.err(
      "the controllers are reached over WireGuard: give the worker a wireguard block of its own, and a peer's on them\n",
    );
  }
  return give(context, given, { text });
}

/** Its warnings; or all that is wrong with it. */
function checkWorker(text: string, nowMs: number): Result<readonly Finding[], AppError> {
  const { document, findings } = checkDocument(text, { file: "the worker's document", nowMs });
  if (document !== undefined && !hasErrors(findings)) return ok(findings);
  return fail("document", "the worker's document is not valid, so it was not written", {
    details: findings.flatMap((finding) => formatFinding(finding).split("\n")),
  });
}

/** What a worker has to have in common with the controllers; all else is its own. */
function workerOf(
  { cluster, network }: Document,
  own: { readonly join: object; readonly name?: string; readonly labels: Readonly<Record<string, string>> },
): unknown {
  const usual = checkDocument("role: controller\n", { file: "", nowMs: 0 }).document?.network;
  const ranges = (["podCIDR", "serviceCIDR", "cni"] as const).filter((key) => network[key] !== usual?.[key]);
  const hasLabels = Object.keys(own.labels).length > 0;
  return {
    role: "worker",
    cluster: { name: cluster.name, ...(cluster.endpoint === undefined ? {} : { endpoint: cluster.endpoint }) },
    ...(ranges.length === 0 ? {} : { network: Object.fromEntries(ranges.map((key) => [key, network[key]])) }),
    ...(own.name === undefined && !hasLabels
      ? {}
      : {
          node: { ...(own.name === undefined ? {} : { name: own.name }), ...(hasLabels ? { labels: own.labels } : {}) },
        }),
    join: own.join,
  };
}

function parseLabels(text: string | undefined): Result<Readonly<Record<string, string>>, AppError> {
  const labels: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const pair of text === undefined ? [] : text.split(",")) {
    const [, key, value] = /^([^=]+)=(.*)$/.exec(pair) ?? [];
    if (key === undefined || value === undefined) return fail("usage", `'${pair}' is no label: wanted KEY=VALUE`);
    labels[key] = value;
  }
  return ok({ ...labels });
}

async function mint(
  client: Client,
  given: Arguments,
  role: JoinTokenBody["role"],
): Promise<Result<ApiAnswer, AppError>> {
  const wanted = given.flags.get("expiry");
  const body: JoinTokenBody = { role, ...(wanted === undefined ? {} : { expiry: wanted }) };
  return client.post("/v1/join-token", body);
}

const fileOf = ({ flags }: Arguments): string | undefined => flags.get("output-file") ?? flags.get("to");

/** The file is looked at before anything is minted. */
async function begin(context: Context, given: Arguments): Promise<Result<Client, AppError>> {
  const file = fileOf(given);
  const there = file === undefined ? ok(null) : await context.files.stat(file);
  if (!there.ok) return there;
  if (there.value !== null && !given.flags.has("force")) return taken(file ?? "");
  return clientFor(context, given.positionals[0] ?? "");
}

const taken = (file: string): Result<never, AppError> =>
  fail("file", `${file} is there already`, { hint: "--force writes over it" });

/** `answer`: what json and yaml show; a document of ours is the same in all of them. */
async function give(
  context: Context,
  given: Arguments,
  { text, answer }: { readonly text: string; readonly answer?: ApiAnswer },
): Promise<Result<number, AppError>> {
  const file = fileOf(given);
  if (file === undefined) {
    if (answer === undefined) context.io.out(printable(text, "line-feeds"));
    else printAnswer(context, answer, () => printable(text, "line-feeds"));
    return ok(exitStatus.done);
  }
  const isOver = given.flags.has("force");
  const written = await context.files.write(file, text, { mode: 0o600, ...(isOver ? {} : { isNew: true }) });
  if (!written.ok) return written.error.code === "EEXIST" ? taken(file) : written;
  context.io.err(`written to ${file}\n`);
  return ok(exitStatus.done);
}
