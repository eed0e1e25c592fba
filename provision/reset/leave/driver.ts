/** How a node leaves its cluster: what it is to it, and the steps before the point of no return. */
import type { Role } from "../../../config/document.ts";
import { K0S_BINARY, unitFile } from "../../../k0s/paths.ts";
import { readMembers } from "../../../k0s/cluster/driver.ts";
import { ownMember } from "../../../k0s/cluster/members.ts";
import { drainNode, readNodes, setCordon } from "../../../k0s/nodes/driver.ts";
import { failureOf } from "../../../k0s/service/driver.ts";
import type { AppError } from "../../../kit/app-error.ts";
import { fail } from "../../../kit/app-error.ts";
import type { Host } from "../../../kit/ports.ts";
import type { Result } from "../../../kit/result.ts";
import { ok } from "../../../kit/result.ts";
import type { Executors, StepContext, StepState } from "../../../kit/step.ts";
import type { LeaveStep, ResetDrainStep, ResetLeaveStep, ResetPorts, Standing } from "../model.ts";

const UNITS = ["k0scontroller", "k0sworker"] as const;
const TOOL_TIMEOUT_MS = 120_000;
const DRAIN_LIMIT_MS = 120_000;
const PEER_TIMEOUT_MS = 5_000;

export function leaveExecutors(ports: ResetPorts): Executors<LeaveStep> {
  // Tried once by each process: nothing on the machine tells a drain that did what it could from none.
  let isDrained = false;
  return {
    "reset:drain": {
      argv: (step) => [drainArgv(step)],
      check: async () => ok(isDrained ? "done" : "todo"),
      run: async (step, context) => {
        await drain(step, context, ports);
        isDrained = true;
        return ok(undefined);
      },
    },
    "reset:leave": {
      argv: (step) => [...objectsArgv(step), LEAVE_ARGV],
      check: async (step, context) => hasLeft(step, context, ports),
      run: (step, context) => leave(step, context, ports),
    },
  };
}

const kubectl = (...argv: readonly string[]): readonly string[] => [K0S_BINARY, "kubectl", ...argv];

const drainArgv = ({ node }: ResetDrainStep): readonly string[] => kubectl("drain", node);

const LEAVE_ARGV: readonly string[] = [K0S_BINARY, "etcd", "leave"];

/** What the cluster keeps of a controller: its Node, where it has a kubelet, and the object that k0s made of its member. */
const objectsArgv = ({ node, member }: ResetLeaveStep): readonly (readonly string[])[] =>
  [...(node === undefined ? [] : [["node", node]]), ["etcdmembers.etcd.k0sproject.io", member]].map((object) =>
    kubectl("delete", ...object, "--ignore-not-found", "--wait=false"),
  );

/** What came of it is said, and that is all: a reset does not stand still for a pod that will not go. */
async function drain({ node }: ResetDrainStep, context: StepContext, ports: ResetPorts): Promise<void> {
  const drained = await tryDrain(node, context, ports);
  if (!drained.ok) ports.warn(`${drained.error.message}; what still runs on it ends with it`);
}

async function tryDrain(name: string, context: StepContext, ports: ResetPorts): Promise<Result<void, AppError>> {
  const { host } = context;
  const nodes = await readNodes(host);
  if (!nodes.ok) return nodes;
  const node = nodes.value.find((each) => each.name === name);
  if (node === undefined) return ok(undefined);
  if (!node.isCordoned) {
    const noted = await ports.noteCordoning();
    if (!noted.ok) return noted;
    const cordoned = await setCordon(host, name, "a reset");
    if (!cordoned.ok) return cordoned;
  }
  return drainNode(context, name, DRAIN_LIMIT_MS);
}

/** Of a member that was told to go and does not answer any more it is believed. */
async function hasLeft(
  { member }: ResetLeaveStep,
  { host }: StepContext,
  ports: ResetPorts,
): Promise<Result<StepState, AppError>> {
  const members = await readMembers(host);
  if (members.ok) return ok(members.value.some(({ name }) => name === member) ? "todo" : "done");
  return ok(ports.hasBegunLeaving() ? "done" : "todo");
}

async function leave(
  step: ResetLeaveStep,
  { host, report }: StepContext,
  ports: ResetPorts,
): Promise<Result<void, AppError>> {
  // Before it leaves: the API server of a member that has left has no etcd any more.
  for (const argv of objectsArgv(step)) {
    const ran = await host.exec({ argv, timeoutMs: TOOL_TIMEOUT_MS });
    if (ran.exitCode !== 0)
      ports.warn(`${argv.slice(2, 5).join(" ")}: ${failureOf(ran)}; delete it on another controller`);
  }
  const noted = await ports.noteLeaving();
  if (!noted.ok) return noted;
  report(`waiting for etcd to let ${step.member} go`);
  const ran = await host.exec({ argv: LEAVE_ARGV, timeoutMs: TOOL_TIMEOUT_MS });
  if (ran.exitCode === 0) return ok(undefined);
  return fail("leave", `k0s etcd leave: ${failureOf(ran)}`);
}

/** What this node is to its cluster, asked of k0s and of the other members. */
export async function readStanding(
  host: Host,
  node: {
    readonly role?: Role;
    readonly storage?: "etcd" | "sqlite";
    readonly hostname: string;
    readonly peerAddress?: string;
    /** Recorded: then k0s was installed, whatever became of its unit. */
    readonly isInService: boolean;
  },
): Promise<Result<Standing, AppError>> {
  const { role, storage } = node;
  let isInstalled = node.isInService;
  for (const unit of UNITS) {
    const found = await host.files.stat(unitFile(unit));
    if (!found.ok) return found;
    isInstalled ||= found.value !== null;
  }
  if (!isInstalled || role === undefined) return ok({ kind: "none" });
  if (role === "worker") return ok({ kind: "worker" });
  if (role === "single" || storage === "sqlite") return ok({ kind: "last" });
  const members = await readMembers(host);
  if (!members.ok) return ok({ kind: "silent", reason: members.error.message });
  const own = ownMember(members.value, node);
  if (own === undefined) return ok({ kind: "gone" });
  const others = members.value.filter((member) => member !== own);
  if (others.length === 0) return ok({ kind: "last" });
  const seen = await Promise.all(
    others.map(async ({ name, url }) => ({ name, isReachable: await isAlive(host, url) })),
  );
  return ok({ kind: "member", member: own.name, others: seen });
}

/** Whoever refuses our certificate is there; nothing else is asked of it. */
async function isAlive(host: Host, url: string): Promise<boolean> {
  const asked = await host.http({ url: `${url}/version`, timeoutMs: PEER_TIMEOUT_MS, maxBytes: 65_536 });
  return asked.ok || !["dns", "refused", "timeout"].includes(asked.error.code);
}
