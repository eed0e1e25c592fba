/**
 * The step engine: bootstrap, installation and apply run their plans through it.
 *
 * For each step: check; done → next. A step that destroys is journalled (durably) before it runs and closed
 * after its check says done, so that power may be lost at any instant: an open intent is made again on the very
 * same disks, a closed one never. The machine decides what is done, the journal decides what may be destroyed.
 */
import type { AppError } from "../kit/app-error.ts";
import type { DiskIdentity, Inventory } from "../kit/disk.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import type { Secret } from "../kit/secret.ts";
import type { Executors, StepBase, StepContext, StepExecutor } from "../kit/step.ts";
import type { Intent, OperationStep } from "../state/model.ts";
import { appError, fail } from "../kit/app-error.ts";
import { sameDisk } from "../kit/disk.ts";
import { describeIdentity, sameDisks } from "./identity.ts";
import { err, ok } from "../kit/result.ts";

/** Intents, durable once `open` and `close` have returned. Opening an id again replaces its row. */
export interface Journal {
  intents(): readonly Intent[];
  open(intent: Intent): void;
  close(stepId: string, atMs: number): void;
}

export interface Execution {
  readonly host: Host;
  readonly secrets: ReadonlyMap<string, Secret>;
  readonly journal: Journal;
  /** Read anew before each destructive run: a disk is found by its identity or not touched. */
  readonly inventory: () => Promise<Result<Inventory, AppError>>;
  readonly onStep?: (step: StepBase, state: OperationStep["state"]) => void;
  /** What is being done or waited for; `undefined` clears it. */
  readonly onMessage?: (message: string | undefined) => void;
  /**
   * The document was replaced since this intent was written. Then other disks, or the same ones in another role, are a
   * new decision that the planner has consent for; otherwise they are a mix-up and refused.
   */
  readonly isSuperseded?: (intent: Intent) => boolean;
  /** Looked at between steps: what has begun is finished. */
  readonly signal?: AbortSignal;
}

/** The steps in order, until one fails; the error names the step and carries its cause. */
export async function execute<S extends StepBase>(
  steps: readonly S[],
  executors: Executors<S>,
  execution: Execution,
): Promise<Result<void, AppError>> {
  for (const step of steps) {
    if (execution.signal?.aborted === true) return fail("stopped", "stopped between two steps");
    execution.onStep?.(step, "running");
    execution.onMessage?.(step.title);
    const outcome = await executeStep(step, executorOf(executors, step), execution);
    execution.onMessage?.(undefined);
    execution.onStep?.(step, outcome.ok ? outcome.value : "failed");
    if (!outcome.ok)
      return err(appError("step-failed", `could not ${step.title} (${step.id})`, { cause: outcome.error }));
  }
  return ok(undefined);
}

/** The record has an executor for each kind of the union, so the look-up can't miss. */
export function executorOf<S extends StepBase>(executors: Executors<S>, step: S): StepExecutor<S> {
  return executors[step.kind as S["kind"]] as unknown as StepExecutor<S>;
}

async function executeStep<S extends StepBase>(
  step: S,
  executor: StepExecutor<S>,
  execution: Execution,
): Promise<Result<"done" | "skipped", AppError>> {
  const { host, journal, secrets } = execution;
  const context: StepContext = { host, secrets, report: (message) => execution.onMessage?.(message) };
  const intent = journal.intents().find((candidate) => candidate.stepId === step.id);

  const before = await executor.check(step, context);
  if (!before.ok) return before;
  if (before.value === "done") {
    if (intent !== undefined && intent.closedAtMs === undefined) journal.close(step.id, host.clock.nowMs());
    return ok("skipped");
  }

  const destroys = step.destroys ?? [];
  if (destroys.length > 0) {
    const allowed = await mayDestroy(step, destroys, intent, execution);
    if (!allowed.ok) return allowed;
    const isResumed = intent !== undefined && intent.closedAtMs === undefined && sameDisks(intent.disks, destroys);
    if (!isResumed) journal.open({ stepId: step.id, step, disks: destroys, openedAtMs: host.clock.nowMs() });
  }

  const ran = await executor.run(step, context);
  if (!ran.ok) return ran;
  const after = await executor.check(step, context);
  if (!after.ok) return after;
  if (after.value !== "done")
    return fail("not-done", "it ran without an error, but the machine does not show the result");
  if (destroys.length > 0) journal.close(step.id, host.clock.nowMs());
  return ok("done");
}

/** Last look before data is lost: the same decision as journalled, on disks that are there and not in use. */
async function mayDestroy(
  step: StepBase,
  destroys: readonly DiskIdentity[],
  intent: Intent | undefined,
  execution: Execution,
): Promise<Result<void, AppError>> {
  if (intent !== undefined && execution.isSuperseded?.(intent) !== true) {
    const decided = matchesIntent(step, destroys, intent);
    if (!decided.ok) return decided;
  }
  const inventory = await execution.inventory();
  if (!inventory.ok) return inventory;
  for (const identity of destroys) {
    const found = inventory.value.disks.filter((disk) => sameDisk(disk.identity, identity));
    const [disk] = found;
    if (disk === undefined)
      return fail("disk-gone", `disk ${describeIdentity(identity)} is not there`, {
        hint: "nothing was written; put the disk back, or give a corrected document",
      });
    if (found.length > 1)
      return fail("disk-ambiguous", `disk ${describeIdentity(identity)} is there more than once`, {
        details: found.map((each) => each.path),
      });
    if (disk.isBootMedium) return fail("boot-medium", `${disk.path} is the medium that this system came from`);
    const user = disk.users.find((each) => each.isBusy);
    if (user !== undefined)
      return fail("disk-busy", `${disk.path} (${describeIdentity(identity)}) is in use by ${user.kind} ${user.name}`);
  }
  return ok(undefined);
}

function matchesIntent(step: StepBase, destroys: readonly DiskIdentity[], intent: Intent): Result<void, AppError> {
  if (!sameDisks(intent.disks, destroys))
    return fail("intent-disks", "it was begun on other disks than it is planned for now", {
      details: [
        `begun on: ${intent.disks.map(describeIdentity).join(", ")}`,
        `planned for: ${destroys.map(describeIdentity).join(", ")}`,
      ],
      hint: "put the disks back as they were, or give a corrected document",
    });
  if (intent.closedAtMs !== undefined)
    return fail("intent-closed", "it was finished once and its result is gone; it is not made a second time", {
      hint: "the disks hold data of this node: look at them, then reset the node or give a corrected document",
    });
  const [begun, planned] = [chosenUuids(intent.step), chosenUuids(step)];
  if (begun !== planned)
    return fail("intent-uuids", "it is planned with other UUIDs than it was begun with", {
      details: [`begun with: ${begun}`, `planned with: ${planned}`],
    });
  return ok(undefined);
}

/** Filesystem, partition and array UUIDs anywhere in a step, sorted: what a resume must not choose anew. */
function chosenUuids(step: StepBase): string {
  const text = JSON.stringify({ ...step, destroys: [], title: "" }).toLowerCase();
  const uuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8}(?::[0-9a-f]{8}){3}/g;
  return [...new Set(text.match(uuid) ?? [])].sort().join(" ");
}
