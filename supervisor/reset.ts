/**
 * Carries a reset out, and goes on with it after whatever stopped it. What is to be done stands in a file outside the
 * database; how far it is, the machine tells. Until the mark of the point of no return is there the node is what it was,
 * and a failure leaves it so; from then on k0s is not started any more, and there is only forward.
 */
import type { AppError } from "../kit/app-error.ts";
import { fail, formatError } from "../kit/app-error.ts";
import type { Paths } from "../kit/paths.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { Executors, StepBase } from "../kit/step.ts";
import { setCordon } from "../k0s/nodes/driver.ts";
import { isUp, service } from "../k0s/service/driver.ts";
import type { Journal } from "../provision/execute.ts";
import { execute } from "../provision/execute.ts";
import { eraseExecutors } from "../provision/reset/driver.ts";
import { leaveExecutors } from "../provision/reset/leave/driver.ts";
import type { LeaveStep, ResetIntent, ResetPorts, Standing } from "../provision/reset/model.ts";
import { mayLeave } from "../provision/reset/standing.ts";
import type { ErasableState } from "../state/erase.ts";
import type { OperationStep } from "../state/model.ts";
import { isOver } from "../state/model.ts";
import { isErasing, markErasing, readResetIntent, removeResetFiles, writeResetIntent } from "./reset-files.ts";
import type { ResetReading } from "./reset-plan.ts";
import { readNodeStanding, readReset } from "./reset-plan.ts";

export interface Resetting extends Pick<ResetReading, "host" | "readInventory"> {
  readonly paths: Paths;
  readonly version: string;
  readonly openErasable: () => ErasableState;
  /** Onto the journal and the console. */
  readonly say: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** What is still in use is free after a restart, in which nothing of k0s is started; twice is no accident. */
const RESTARTS = 1;
/** k0s after a restart in the middle: etcd has to find its members. */
const ANSWER_MS = 300_000;
/** Where its answer would change nothing. */
const SHORT_ANSWER_MS = 30_000;
const POLL_MS = 10_000;

/** The exit status; 0 also when none was asked for. */
export async function carryOutReset(resetting: Resetting): Promise<number> {
  const { host, paths, say } = resetting;
  const read = await readResetIntent(host, paths);
  if (!read.ok) {
    say(formatError(read.error));
    return 1;
  }
  if (read.value === undefined) return 0;
  const records = resetting.openErasable();
  try {
    return await new Reset(resetting, records, read.value).run();
  } finally {
    records.close();
  }
}

class Reset {
  readonly #with: Resetting;
  readonly #records: ErasableState;
  #intent: ResetIntent;
  readonly #operation: string | undefined;

  constructor(resetting: Resetting, records: ErasableState, intent: ResetIntent) {
    this.#with = resetting;
    this.#records = records;
    this.#intent = intent;
    this.#operation = this.#adoptOperation();
  }

  async run(): Promise<number> {
    const { host, paths, say } = this.#with;
    const erasing = await isErasing(host, paths);
    if (!erasing.ok) return this.#fail(erasing.error);
    if (!erasing.value) {
      const left = await this.#leave();
      const marked = left.ok ? await markErasing(host, paths) : left;
      if (!marked.ok)
        return (await this.#isPastReturn()) ? this.#tryAfterRestart(marked.error) : this.#abandon(marked.error);
    }
    const erased = await this.#erase();
    if (!erased.ok) return this.#tryAfterRestart(erased.error);
    const over = await removeResetFiles(host, paths);
    if (!over.ok) return this.#tryAfterRestart(over.error);
    say("the node is reset and restarts; it comes back unclaimed and waits for a claim together with a document");
    return this.#reboot();
  }

  async #leave(): Promise<Result<void, AppError>> {
    const standing = await this.#standing();
    if (!standing.ok) return standing;
    const may = mayLeave(standing.value, this.#intent.mayDestroyCluster);
    if (!may.ok) return may;
    const read = await readReset(this.#reading(), standing.value, this.#intent.isWipingDisks);
    if (!read.ok) return read;
    this.#planSteps([...read.value.plan.leave, ...read.value.plan.erase]);
    return this.#execute(read.value.plan.leave, leaveExecutors(this.#ports()));
  }

  /** A member that left, or may have, is in no cluster any more, whether or not the mark could be written. */
  async #isPastReturn(): Promise<boolean> {
    if (this.#intent.isLeaving !== true) return false;
    const standing = await readNodeStanding(this.#reading());
    return !standing.ok || standing.value.kind !== "member";
  }

  /** k0s may be starting up, when the machine was restarted in the middle. */
  async #standing(): Promise<Result<Standing, AppError>> {
    const { host, signal } = this.#with;
    const { mayDestroyCluster, isLeaving } = this.#intent;
    const limitMs = mayDestroyCluster || isLeaving === true ? SHORT_ANSWER_MS : ANSWER_MS;
    const untilMs = host.clock.monotonicMs() + limitMs;
    for (;;) {
      const standing = await readNodeStanding(this.#reading());
      if (!standing.ok || standing.value.kind !== "silent") return standing;
      const unit = await host.systemd.status(service("k0scontroller"));
      const isComing = unit.ok && isUp(unit.value);
      if (!isComing || host.clock.monotonicMs() > untilMs) {
        if (isLeaving !== true) return standing;
        this.#warn(
          "etcd was told that this node leaves, and its answer was not heard: look with `k0s etcd member-list` on another controller",
        );
        return ok({ kind: "gone" });
      }
      this.#message(`waiting for etcd to answer: ${standing.value.reason}`);
      await host.clock.sleep(POLL_MS, signal);
      if (signal?.aborted === true) return fail("stopped", "stopped while waiting for etcd");
    }
  }

  async #erase(): Promise<Result<void, AppError>> {
    const { paths } = this.#with;
    const { isWipingDisks } = this.#intent;
    const read = await readReset(this.#reading(), { kind: "none" }, isWipingDisks);
    if (!read.ok) return read;
    if (isWipingDisks && this.#records.state === undefined)
      this.#warn("no data disk is wiped: the records that say which are this node's can't be read");
    return this.#execute(read.value.plan.erase, eraseExecutors(paths, this.#ports()));
  }

  #reading(): ResetReading {
    const { host, readInventory } = this.#with;
    const { state } = this.#records;
    return { host, readInventory, ...(state === undefined ? {} : { state }) };
  }

  #ports(): ResetPorts {
    const { host } = this.#with;
    return {
      warn: (message) => this.#warn(message),
      hasBegunLeaving: () => this.#intent.isLeaving === true,
      noteCordoning: () => this.#note({ isCordoning: true }),
      noteLeaving: () => this.#note({ isLeaving: true }),
      isErased: () => this.#records.isErased(),
      erase: () => {
        const { isWipingDisks, requestedBy } = this.#intent;
        return this.#records.erase({
          atMs: host.clock.nowMs(),
          isKeepingDisks: !isWipingDisks,
          message: `this node was reset by ${requestedBy}; its data disks were ${isWipingDisks ? "wiped" : "kept"}`,
        });
      },
    };
  }

  async #note(more: Partial<ResetIntent>): Promise<Result<void, AppError>> {
    const { host, paths } = this.#with;
    const noted = { ...this.#intent, ...more };
    const written = await writeResetIntent(host, paths, noted);
    if (written.ok) this.#intent = noted;
    return written;
  }

  #execute<S extends StepBase>(steps: readonly S[], executors: Executors<S>): Promise<Result<void, AppError>> {
    const { host, readInventory, say, signal } = this.#with;
    const { state } = this.#records;
    const none: Journal = { intents: () => [], open: () => undefined, close: () => undefined };
    return execute(steps, executors, {
      host,
      secrets: new Map(),
      journal: state?.journal ?? none,
      inventory: readInventory,
      ...(signal === undefined ? {} : { signal }),
      onStep: ({ id, title }, at) => {
        if (at === "running") say(title);
        this.#record((operation) => state?.operations.step(operation, { id, title, state: at }, host.clock.nowMs()));
      },
      onMessage: (message) => this.#message(message),
    });
  }

  /** The way back, before anything was erased: the node stays what it is. */
  async #abandon(error: AppError): Promise<number> {
    const { host, paths } = this.#with;
    if (isStopped(error)) return 0;
    const node = this.#records.state?.baseline.get()?.hostname.toLowerCase();
    if (this.#intent.isCordoning === true && node !== undefined) {
      const undone = await setCordon(host, node, undefined);
      if (!undone.ok) this.#warn(`${node} stays cordoned: ${undone.error.message}`);
    }
    const removed = await removeResetFiles(host, paths);
    if (!removed.ok) this.#warn(`the reset goes on at the next boot: ${removed.error.message}`);
    return this.#fail(error);
  }

  async #tryAfterRestart(error: AppError): Promise<number> {
    const { host, paths } = this.#with;
    const { restarts } = this.#intent;
    if (isStopped(error)) return 0;
    if (restarts >= RESTARTS) return this.#fail(error);
    this.#intent = { ...this.#intent, restarts: restarts + 1 };
    const written = await writeResetIntent(host, paths, this.#intent);
    if (!written.ok) return this.#fail(error);
    this.#warn(
      `${error.message}${error.cause === undefined ? "" : `: ${error.cause.message}`}; the node restarts and goes on`,
    );
    return this.#reboot();
  }

  async #fail(error: AppError): Promise<number> {
    const { host, say } = this.#with;
    const { state } = this.#records;
    const failureReason = formatError(error);
    const atMs = host.clock.nowMs();
    say(failureReason);
    this.#record((operation) => state?.operations.end(operation, { phase: "failed", failureReason }, atMs));
    const [message = ""] = failureReason.split("\n");
    state?.events.add({ atMs, kind: "reset-failed", severity: "error", message });
    // It may have been stopped for its files to be removed; whoever looks after this node asks it what went wrong.
    await host.systemd.start("corium-apid.service", { noBlock: true });
    return 1;
  }

  async #reboot(): Promise<number> {
    const ran = await this.#with.host.exec({ argv: ["systemctl", "--no-block", "reboot"], timeoutMs: 30_000 });
    if (ran.exitCode === 0) return 0;
    this.#with.say("systemctl could not restart the machine: restart it");
    return 1;
  }

  #adoptOperation(): string | undefined {
    const { host, version } = this.#with;
    const { state } = this.#records;
    if (state === undefined || this.#records.isErased()) return undefined;
    const atMs = host.clock.nowMs();
    const known = this.#intent.operation === undefined ? undefined : state.operations.get(this.#intent.operation);
    const open = known !== undefined && !isOver(known.phase) ? known : state.operations.running();
    if (open?.kind === "reset") {
      state.operations.adopt(open.id, atMs);
      return open.id;
    }
    // Asked for at the rescue menu, or failed before and gone on with.
    const requester = known?.requester ?? ({ kind: "console" } as const);
    const begun = state.operations.begin({ kind: "reset", requester, version, atMs });
    return begun.ok ? begun.value.id : undefined;
  }

  #planSteps(steps: readonly (LeaveStep | StepBase)[]): void {
    const { host } = this.#with;
    const pending = steps.map(({ id, title }): OperationStep => ({ id, title, state: "pending" }));
    this.#record((operation) => this.#records.state?.operations.plan(operation, pending, host.clock.nowMs()));
  }

  #message(message: string | undefined): void {
    const { host } = this.#with;
    this.#record((operation) => this.#records.state?.operations.message(operation, message, host.clock.nowMs()));
  }

  #warn(message: string): void {
    const { host, say } = this.#with;
    say(message);
    const atMs = host.clock.nowMs();
    this.#records.state?.events.add({ atMs, kind: "reset", severity: "warning", message });
  }

  /** Its operation is erased with the records. */
  #record(work: (operation: string) => void): void {
    const operation = this.#operation;
    if (operation === undefined || this.#records.state?.operations.get(operation) === undefined) return;
    work(operation);
  }
}

const isStopped = (error: AppError): boolean =>
  error.code === "stopped" || (error.cause !== undefined && isStopped(error.cause));
