/**
 * Puts one disk in the place of another in an array that runs, as one operation. It may take hours, for the array is
 * rebuilt in it; after a power cut or a restart of the daemon the same operation goes on.
 */
import type { Document } from "../config/document.ts";
import { ANY_TIME } from "../config/load.ts";
import type { AppError } from "../kit/app-error.ts";
import { fail, formatError } from "../kit/app-error.ts";
import type { Inventory } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
import { formatFinding, hasErrors } from "../kit/finding.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import { describeIdentity } from "../disks/describe.ts";
import { readMirror } from "../iso/mirror/driver.ts";
import { SYSTEM_ARRAY } from "../iso/mirror/report.ts";
import { execute } from "../provision/execute.ts";
import { planSystemDisk, systemReplaceId } from "../provision/mirror/request.ts";
import type { ReplacePlan, ReplaceRequest } from "../provision/replace-plan.ts";
import { planReplacement } from "../provision/replace-plan.ts";
import { replaceExecutors } from "../provision/storage/driver.ts";
import { readArrays } from "../raid/driver.ts";
import { inTheWay, type OperationStep, type Requester } from "../state/model.ts";
import type { State } from "../state/open.ts";
import type { Replacement } from "../state/replacements.ts";
import { wantedArray } from "./array-watch.ts";
import type { ReadIdentities } from "./disk-identities.ts";

export interface DiskReplacing {
  readonly host: Host;
  readonly state: State;
  readonly version: string;
  readonly parse: (text: string, nowMs: number) => { readonly document?: Document };
  readonly inventory: () => Promise<Result<Inventory, AppError>>;
  readonly identities: ReadIdentities;
  /** Of a mirrored system: its disks are replaced like those of an array called "system". */
  readonly mirrored?: string;
  readonly say: (line: string) => void;
}

export type Begun =
  | { readonly kind: "begun"; readonly operation: string; readonly finished: Promise<void> }
  | { readonly kind: "busy"; readonly operation: string; readonly message: string };

/** What would be done, or why not. */
export async function planReplace(
  replacing: DiskReplacing,
  request: ReplaceRequest,
  begun?: Replacement,
): Promise<Result<ReplacePlan, AppError>> {
  const { host, state, mirrored } = replacing;
  const inventory = await replacing.inventory();
  if (!inventory.ok) return inventory;
  const owned = state.owned.list();
  const common = {
    request,
    id: begun?.id ?? state.replacements.nextId(),
    isResumed: begun !== undefined,
    inventory: inventory.value,
    owned,
    intents: state.journal.intents(),
  };
  if (mirrored !== undefined && request.array === SYSTEM_ARRAY) {
    // Also before the node is in service: it is what the node stands on.
    const mirror = await readMirror(host, mirrored);
    return mirror.ok ? ok(planSystemDisk({ ...common, installation: mirrored, mirror: mirror.value })) : mirror;
  }
  const baseline = state.baseline.get();
  if (baseline === undefined) return fail("no-baseline", "this node is not in service, so it has no arrays");
  const { document } = replacing.parse(baseline.document.text, ANY_TIME);
  if (document === undefined) return fail("baseline-unreadable", "the recorded document can't be read any more");
  const arrays = await readArrays(
    host,
    owned.filter(({ kind }) => kind === "raid").map(wantedArray),
    await replacing.identities(),
  );
  return ok(planReplacement({ ...common, document, arrays }));
}

/** The plan is made true in the background; the operation tells how far it is. */
export function beginReplace(
  replacing: DiskReplacing,
  request: ReplaceRequest,
  plan: ReplacePlan,
  requester: Requester,
): Begun {
  const { host, state, version } = replacing;
  const { replaced } = plan;
  if (replaced === undefined) throw new Error("a refused plan was begun");
  const atMs = host.clock.nowMs();
  const operation = state.operations.begin({ kind: "disk-replace", requester, version, atMs });
  if (!operation.ok) {
    const { running } = operation.error;
    return { kind: "busy", operation: running.id, message: inTheWay(running) };
  }
  const { isWipeAllowed } = request;
  const replacement = state.replacements.begin({ ...replaced, isWipeAllowed, begunAtMs: atMs });
  const { id } = operation.value;
  return { kind: "begun", operation: id, finished: carryOut(replacing, id, replacement, plan) };
}

/** At the daemon's start: what a power cut left in the middle. */
export async function resumeReplace(replacing: DiskReplacing): Promise<void> {
  const { host, state } = replacing;
  const replacement = state.replacements.open();
  const operation = state.operations.abandoned().find(({ kind }) => kind === "disk-replace");
  if (operation !== undefined) state.operations.adopt(operation.id, host.clock.nowMs());
  if (replacement === undefined) {
    // Its end was recorded, and the operation's was not.
    if (operation !== undefined) state.operations.end(operation.id, { phase: "succeeded" }, host.clock.nowMs());
    return;
  }
  if (operation === undefined) return state.replacements.end(replacement.id, "failed", host.clock.nowMs());
  const planned = await planReplace(replacing, requestOf(replacement), replacement);
  if (!planned.ok) return conclude(replacing, operation.id, replacement, planned);
  const { findings } = planned.value;
  if (hasErrors(findings)) {
    const [first] = findings.filter(({ severity }) => severity === "error");
    const why = fail("refused", first === undefined ? "it is refused now" : formatFinding(first));
    return conclude(replacing, operation.id, replacement, why);
  }
  await carryOut(replacing, operation.id, replacement, planned.value);
}

function requestOf({ array, old, new: next, newLinks, isWipeAllowed }: Replacement): ReplaceRequest {
  const [link] = newLinks;
  return {
    array,
    old: old.serial ?? old.wwn ?? old.byPath ?? "",
    new: next.serial ?? next.byPath ?? link ?? "",
    isWipeAllowed,
  };
}

async function carryOut(
  replacing: DiskReplacing,
  operation: string,
  replacement: Replacement,
  plan: ReplacePlan,
): Promise<void> {
  const { host, state } = replacing;
  const atMs = (): number => host.clock.nowMs();
  const pending = plan.steps.map(({ id, title }): OperationStep => ({ id, title, state: "pending" }));
  state.operations.plan(operation, pending, atMs());
  let result: Result<void, AppError>;
  try {
    result = await execute(plan.steps, replaceExecutors, {
      host,
      secrets: new Map(),
      journal: state.journal,
      inventory: replacing.inventory,
      onStep: (step, stepState) =>
        state.operations.step(operation, { id: step.id, title: step.title, state: stepState }, atMs()),
      onMessage: (message) => state.operations.message(operation, message, atMs()),
    });
    conclude(replacing, operation, replacement, result);
  } catch (thrown) {
    // The database is gone, or closed under a daemon that ends: the next one goes on.
    replacing.say(`disk replacement: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
}

function conclude(
  { host, state }: DiskReplacing,
  operation: string,
  replacement: Replacement,
  result: Result<unknown, AppError>,
): void {
  const atMs = host.clock.nowMs();
  const { id, array, old, new: next } = replacement;
  state.transaction(() => {
    // A volume that lies on the array is recorded with the same disks.
    for (const each of result.ok ? state.owned.list() : [])
      if (each.disks.some((disk) => sameDisk(disk, old)))
        state.owned.put({ ...each, disks: each.disks.map((disk) => (sameDisk(disk, old) ? next : disk)) });
    state.replacements.end(id, result.ok ? "done" : "failed", atMs);
    // A step that was done when power went, and that the plan after it had no more need of, was never closed.
    for (const { stepId } of state.journal.intents())
      if ([`raid:${array}:replace:${id}`, systemReplaceId(id)].some((prefix) => stepId.startsWith(`${prefix}:`)))
        state.journal.close(stepId, atMs);
  });
  if (result.ok) {
    state.operations.end(operation, { phase: "succeeded" }, atMs);
    const gone = old.sizeBytes === 0 ? (old.serial ?? old.byPath ?? "a disk") : describeIdentity(old);
    const message = `array ${array}: ${describeIdentity(next)} took the place of ${gone}`;
    state.events.add({ atMs, kind: "disk-replaced", severity: "info", message });
    return;
  }
  const failureReason = formatError(result.error);
  state.operations.end(operation, { phase: "failed", failureReason }, atMs);
  const [message = ""] = failureReason.split("\n");
  state.events.add({ atMs, kind: "disk-replace-failed", severity: "error", message });
}
