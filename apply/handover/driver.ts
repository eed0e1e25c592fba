/**
 * Letting go of the bootstrap CNI. k0s deletes what vanishes under a leader that runs, and applies again what is there
 * when it starts: so it is stopped, the stack's folder is moved out of its sight by one rename, and it is started. At
 * each instant the folder is in one of two places, and k0s may start with either: as before, or handed over.
 */
import { type AppError, appError, fail, formatError } from "../../kit/app-error.ts";
import { ok, type Result } from "../../kit/result.ts";
import { mountPointsOf } from "../../config/mount-points.ts";
import { waitForMembers } from "../../k0s/cluster/driver.ts";
import { isUp, service, waitUntilReady } from "../../k0s/service/driver.ts";
import { inTheWay, type Requester } from "../../state/model.ts";
import { missingMount, NOT_MOUNTED } from "../undo/driver.ts";
import { baselineWithout } from "./baseline.ts";
import { type HandoverDependencies, type HandoverPlan, nodeOf, whereIs } from "./look/driver.ts";
import { keptFolder, stackFolder } from "./model.ts";

const UNIT = "k0scontroller";
const STEPS = {
  stop: { id: "handover:stop", title: `stop ${UNIT}` },
  move: { id: "handover:move", title: "move the stack out of its sight" },
  start: { id: "handover:start", title: `start ${UNIT} and wait until it answers` },
  record: { id: "handover:record", title: "record that GitOps has it" },
} as const;
type Step = (typeof STEPS)[keyof typeof STEPS];

export const HANDOVER_STEPS: readonly Step[] = Object.values(STEPS);

export type BegunHandover =
  | { readonly kind: "busy"; readonly operation: string; readonly message: string }
  /** It was planned on something else than what the node is now. */
  | { readonly kind: "changed"; readonly operation: string }
  /** `ended`: for those who wait. */
  | { readonly kind: "begun"; readonly operation: string; readonly ended: Promise<void> };

/** The operation is the intent: whoever finds it abandoned looks where the folder is (`recoverHandover`). */
export function beginHandover(
  dependencies: HandoverDependencies,
  plan: HandoverPlan,
  requester: Requester,
): BegunHandover {
  const { host, state, version } = dependencies;
  const steps = HANDOVER_STEPS.map((step) => ({ ...step, state: "pending" as const }));
  const atMs = host.clock.nowMs();
  const begun = state.operations.begin({ kind: "handover", requester, version, steps, atMs });
  if (!begun.ok) {
    const { running } = begun.error;
    return { kind: "busy", operation: running.id, message: inTheWay(running) };
  }
  const { id } = begun.value;
  // Only from here on nobody else changes the node.
  if (state.baseline.get()?.document.id !== plan.document || state.handover.done() !== undefined) {
    const failureReason = "somebody changed the node in between; nothing was done";
    state.operations.end(id, { phase: "failed", failureReason }, host.clock.nowMs());
    return { kind: "changed", operation: id };
  }
  return { kind: "begun", operation: id, ended: carryOut({ ...dependencies, operation: id }, plan) };
}

interface Running extends HandoverDependencies {
  readonly operation: string;
}

const reportOf =
  ({ host, state, operation }: Running) =>
  (message: string): void =>
    state.operations.message(operation, message, host.clock.nowMs());

async function carryOut(running: Running, plan: HandoverPlan): Promise<void> {
  const { host, state, operation } = running;
  const done = await letGo(running, plan);
  if (done.ok) {
    const atMs = host.clock.nowMs();
    state.operations.end(operation, { phase: "succeeded" }, atMs);
    const message = `${plan.stack} was handed over to GitOps; its files are kept in ${plan.to}`;
    state.events.add({ atMs, kind: "handed-over", severity: "info", message });
    return;
  }
  const back = await putBack(running, plan);
  const error = back.ok
    ? done.error
    : appError("stuck", `${done.error.message}, and it could not be put back`, { cause: back.error });
  const failureReason = formatError(error);
  const phase = back.ok && back.value === "was-out" ? "rolled-back" : "failed";
  const atMs = host.clock.nowMs();
  state.operations.end(operation, { phase, failureReason }, atMs);
  const message = `the hand-over ${operation} came to nothing: ${error.message}`;
  // Said until somebody asks again: tried again by itself, each try would stop k0s.
  state.handover.set({ status: "False", reason: "Failed", message: `${message}; \`cctl handover\` tries again`, atMs });
  state.events.add({ atMs, kind: "handover-failed", severity: "error", message });
}

async function step<T>(
  { host, state, operation }: Running,
  shown: Step,
  work: () => Promise<Result<T, AppError>>,
): Promise<Result<T, AppError>> {
  state.operations.step(operation, { ...shown, state: "running" }, host.clock.nowMs());
  const result = await work();
  state.operations.step(operation, { ...shown, state: result.ok ? "done" : "failed" }, host.clock.nowMs());
  return result;
}

async function letGo(running: Running, plan: HandoverPlan): Promise<Result<void, AppError>> {
  const { host } = running;
  const stopped = await step(running, STEPS.stop, () => stop(running));
  if (!stopped.ok) return stopped;
  const moved = await step(running, STEPS.move, async () => {
    const renamed = await host.files.rename(plan.from, plan.to);
    // Taken away by hand, or moved by one that was cut off: k0s reads nothing of it, which is what is wanted.
    return !renamed.ok && renamed.error.code === "ENOENT" ? ok(undefined) : renamed;
  });
  if (!moved.ok) return moved;
  const started = await step(running, STEPS.start, () => start(running, plan));
  if (!started.ok) return started;
  return step(running, STEPS.record, async () => record(running, plan));
}

async function stop({ host }: Running): Promise<Result<void, AppError>> {
  const stopped = await host.systemd.stop(service(UNIT));
  if (!stopped.ok) return stopped;
  const status = await host.systemd.status(service(UNIT));
  if (!status.ok) return status;
  const { activeState, mainPid } = status.value;
  return isUp(status.value) || mainPid !== 0
    ? fail("not-stopped", `${UNIT} was told to stop and is ${activeState}`, {
        hint: `cctl logs NODE --unit ${UNIT} says why`,
      })
    : ok(undefined);
}

async function start(running: Running, { controlPlane }: HandoverPlan): Promise<Result<void, AppError>> {
  const { host, timeoutMs } = running;
  const context = { host, report: reportOf(running) };
  const status = await host.systemd.status(service(UNIT));
  if (status.ok && status.value.activeState === "failed") await host.systemd.resetFailed(service(UNIT));
  const started = await host.systemd.start(service(UNIT));
  if (!started.ok) return started;
  const ready = await waitUntilReady(context, { unit: UNIT, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
  return ready.ok && controlPlane !== undefined ? waitForMembers(context, controlPlane.members) : ready;
}

/** All that the node remembers of it, at once. */
function record(
  { host, state, parse }: HandoverDependencies,
  { stack, to }: Pick<HandoverPlan, "stack" | "to">,
): Result<void, AppError> {
  const node = nodeOf({ state, parse });
  if (node === undefined) return fail("state", "the recorded document of this node can't be read by this release");
  const atMs = host.clock.nowMs();
  try {
    state.transaction(() => {
      state.handover.finish({ stack, keptAt: to, atMs });
      state.baseline.set(baselineWithout(node, stack, { host, state }));
    });
    return ok(undefined);
  } catch (error) {
    return fail("state", `it could not be recorded: ${error instanceof Error ? error.message : "unknown"}`);
  }
}

/** As before, with k0s running again; that k0s does not answer with the old files either is no reason to stay halfway. */
async function putBack(running: Running, plan: HandoverPlan): Promise<Result<"was-out" | "was-in", AppError>> {
  const { host } = running;
  const report = reportOf(running);
  const place = await whereIs(host, plan.from, plan.to);
  if (!place.ok) return place;
  if (place.value === "out") {
    report("putting the stack back");
    const stopped = await stop(running);
    if (!stopped.ok) return stopped;
    const moved = await host.files.rename(plan.to, plan.from);
    if (!moved.ok) return moved;
  }
  const back = await start(running, plan);
  if (!back.ok) report(`${UNIT} does not answer with the old files either: ${back.error.message}`);
  return ok(place.value === "out" ? "was-out" : "was-in");
}

/**
 * At each start of the program, before k0s is up: a hand-over that was cut off is over where the folder was moved, and
 * never was where it was not. Both are whole, so nothing is moved here.
 */
export async function recoverHandover(dependencies: HandoverDependencies): Promise<Result<void, AppError>> {
  const { host, state } = dependencies;
  const left = state.operations.abandoned().find(({ kind }) => kind === "handover");
  const node = nodeOf(dependencies);
  const stack = state.handover.done()?.stack ?? (node?.wish?.mode === "disabled" ? undefined : node?.wish?.stack);
  if (left === undefined || node === undefined || stack === undefined) return ok(undefined);
  const [from, to] = [stackFolder(stack), keptFolder(stack)];
  const missing = await missingMount(host, [from], mountPointsOf(node.document));
  if (!missing.ok) return missing;
  if (missing.value !== undefined) {
    return fail(
      NOT_MOUNTED,
      `the hand-over ${left.id} was cut off, and what k0s reads is on ${missing.value}, which is not mounted`,
      {
        hint: "it is looked at, and k0s started, as soon as it is",
      },
    );
  }
  const place = await whereIs(host, from, to);
  if (!place.ok) return place;
  const isOut = place.value === "out";
  const recorded = isOut ? record(dependencies, { stack, to }) : ok(undefined);
  if (!recorded.ok) return recorded;
  const atMs = host.clock.nowMs();
  const became = isOut ? "it had been done, and is recorded now" : "nothing had been changed";
  state.operations.adopt(left.id, atMs);
  state.operations.end(
    left.id,
    isOut
      ? { phase: "succeeded" }
      : { phase: "failed", failureReason: `the node or its program stopped in the middle; ${became}` },
    atMs,
  );
  state.events.add({
    atMs,
    kind: "handover-recovered",
    severity: "warning",
    message: `the hand-over ${left.id} was cut off; ${became}`,
  });
  // The program may have died between stopping and starting it.
  return host.systemd.start(service(UNIT), { noBlock: true });
}
