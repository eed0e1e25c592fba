/** What a crash or a power cut left of applies, at the start of the program and before each apply. */
import { ANY_TIME } from "../../config/load.ts";
import { mountPointsOf } from "../../config/mount-points.ts";
import { type AppError, appError } from "../../kit/app-error.ts";
import { err, ok, type Result } from "../../kit/result.ts";
import type { Operation } from "../../state/model.ts";
import { isOver } from "../../state/model.ts";
import { isAwaited } from "../confirmation.ts";
import { CHARTS_STEP, finishRecorded } from "../driver.ts";
import { parseRenderRecord, renderMark } from "../rerender/model.ts";
import type { ApplyDependencies } from "../service/model.ts";
import { readRecords, type Recovery, recoverApply } from "../undo/driver.ts";
import type { UndoRecord } from "../undo/model.ts";

/**
 * At each start before k0s is up: what a crash or a power cut left of an apply is undone or finished, and its
 * operation is ended with what became of it.
 */
export async function recoverApplies(dependencies: ApplyDependencies): Promise<Result<readonly Recovery[], AppError>> {
  const { host, paths, state } = dependencies;
  const baseline = state.baseline.get();
  const render = parseRenderRecord(state.meta.get("rendered"));
  // A render of its own writes no source 1: recorded, there is nothing left to finish.
  const rendered = render === undefined ? undefined : renderMark(render.operation);
  const recovered = await recoverApply({
    host,
    stateDir: paths.stateDir,
    mountPoints: baseline === undefined ? [] : mountPointsIn(dependencies, baseline.document.text),
    isRecorded: (hash) => baseline?.document.sha256 === hash || hash === rendered,
    isAwaited: (record) => isAwaitedHere(dependencies, record),
    finish: (record) =>
      record.documentSha256 === rendered
        ? Promise.resolve(ok(undefined))
        : baseline === undefined
          ? Promise.resolve(err(appError("undo", "there is no baseline")))
          : finishRecorded({ host, paths }, baseline.document, record),
  });
  if (!recovered.ok) return recovered;
  const records = await readRecords(host, paths.stateDir);
  if (!records.ok) return records;
  for (const operation of state.operations.abandoned().filter(({ kind }) => kind === "apply" || kind === "render")) {
    const record = records.value.find((one) => one.operation === operation.id);
    if (record !== undefined && isAwaitedHere(dependencies, record)) continue;
    const recovery = recovered.value.find((one) => one.operation === operation.id);
    endAbandoned(dependencies, operation, { record, wasAwaited: recovery?.wasAwaited === true });
  }
  return recovered;
}

/** What its operation has been ended for is not waited for any more. */
function isAwaitedHere({ host, state }: ApplyDependencies, record: UndoRecord): boolean {
  const phase = state.operations.get(record.operation)?.phase;
  const now = { bootId: state.bootId, monotonicMs: host.clock.monotonicMs() };
  return phase !== undefined && !isOver(phase) && isAwaited(record, now);
}

function mountPointsIn({ parse }: ApplyDependencies, text: string): readonly string[] {
  const { document } = parse(text, ANY_TIME);
  return document === undefined ? [] : mountPointsOf(document);
}

/** By its undo record, which is closed by now: also when only the operation's own end was missing. */
function endAbandoned(
  { host, state }: ApplyDependencies,
  { id, kind, steps }: Operation,
  { record, wasAwaited }: { readonly record: UndoRecord | undefined; readonly wasAwaited: boolean },
): void {
  const atMs = host.clock.nowMs();
  const isHelmOpen = steps.some((step) => step.id === CHARTS_STEP && step.state !== "done");
  const [phase, became] =
    ABANDONED[record?.state === "applied" && isHelmOpen ? "unreleased" : (record?.state ?? "open")];
  state.operations.adopt(id, atMs);
  const why = wasAwaited ? "it was not confirmed before the node or its program stopped" : STOPPED;
  const failureReason = `${why}; ${became}`;
  state.operations.end(id, phase === "succeeded" ? { phase } : { phase, failureReason }, atMs);
  const message = `the ${kind} ${id} was cut off; ${became}`;
  state.events.add({ atMs, kind: "apply-recovered", severity: "warning", message });
}

const STOPPED = "the node or its program stopped in the middle";

const ABANDONED = {
  applied: ["succeeded", "it had been recorded and was finished"],
  // Succeeded only when the release is there: whoever waited for it has died, and helm goes on without.
  unreleased: [
    "failed",
    "it had been recorded and is what the node runs, but nobody waited for helm any more; what became of the add-ons: kubectl get charts -n kube-system",
  ],
  undone: ["rolled-back", "everything was put back"],
  open: ["failed", "nothing had been changed"],
} as const;
