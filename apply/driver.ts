/**
 * The apply: all of a document's safe difference becomes true now, or nothing of it.
 *
 * check → snapshot → write → restart → wait until k0s answers → confirm → record. Until it is recorded every failure puts
 * the files back; `recoverApply` does the same for a process or a machine that died in between.
 */
import { type AppError, appError, fail } from "../kit/app-error.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { err, ok, type Result } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import { parse } from "yaml";
import { fillSecrets } from "../k0s/fill.ts";
import { isWritten, validateConfig } from "../k0s/driver.ts";
import { valueAt } from "../k0s/merge.ts";
import { K0S_CONFIG, type K0sUnit } from "../k0s/paths.ts";
import { readCharts, restartAndWait, service, waitForCharts } from "../k0s/service/driver.ts";
import type { OperationStep, RenderedDigests } from "../state/model.ts";
import type { Document } from "../config/document.ts";
import { findHandEdits, keepHandEdits } from "./by-hand/driver.ts";
import type { ApplyPlan, FileChange } from "./plan.ts";
import {
  closeRecord,
  dropTimers,
  isUnitPath,
  markAwaited,
  restoreInTime,
  settleTimers,
  takeSnapshot,
} from "./undo/driver.ts";
import type { Made, UndoRecord } from "./undo/model.ts";
import { sha256Of } from "../kit/sha256.ts";

export interface ApplyRequest {
  readonly operation: string;
  readonly plan: ApplyPlan;
  readonly document: Document;
  /** As it was given; becomes source 1. */
  readonly text: string;
  /** Resolved, by field path. A secret that only its source knew is taken from the file that is in place. */
  readonly secrets: ReadonlyMap<string, Secret>;
  /** Of the baseline. */
  readonly rendered: RenderedDigests;
  /** Of the baseline's document, which source 1 holds. */
  readonly sourceSha256: string;
  /** What is recorded of all that was rendered with. */
  readonly inputsWith: (secrets: ReadonlyMap<string, Secret>) => Pick<Made, "inputHash" | "secretFingerprints">;
  /** How long k0s may take to answer before the files are put back. */
  readonly timeoutMs?: number;
}

export interface ApplyPorts {
  readonly host: Host;
  readonly paths: Pick<Paths, "stateDir" | "config">;
  readonly report: (message: string) => void;
  readonly onStep: (step: Pick<OperationStep, "id" | "title">, state: OperationStep["state"]) => void;
  /** Document and baseline; durable when it returns. */
  readonly record: (made: Made) => Result<void, AppError>;
  /** Between writing and restarting, where other controllers must have their files first; an error takes it back. */
  readonly hold?: () => Promise<Result<void, AppError>>;
  /** After the restart: until the cluster has this controller again. */
  readonly settle?: () => Promise<Result<void, AppError>>;
  /** Between the change and its record: until somebody says that it may stay; an error takes it back. */
  readonly confirm?: (made: Made, record: UndoRecord) => Promise<Result<void, AppError>>;
}

export type ApplyOutcome =
  | { readonly status: "unchanged" }
  | { readonly status: "reconciled"; readonly restarted: readonly string[]; readonly written: readonly string[] }
  /** It is what the node runs, but helm could not make a release of it; nothing is undone. */
  | { readonly status: "chart-failed"; readonly error: AppError }
  /** Nothing was changed. */
  | { readonly status: "failed"; readonly error: AppError }
  /** It was changed and is as before again. */
  | { readonly status: "rolled-back"; readonly error: AppError }
  /** It could not be put back: `recoverApply` will try again, and nothing else is applied before. */
  | { readonly status: "stuck"; readonly error: AppError };

/** The steps that an operation shows from the start. */
export function applySteps(
  plan: ApplyPlan,
  waits?: "hold" | "confirm",
): readonly Pick<OperationStep, "id" | "title">[] {
  const restarts = plan.restarts.map((unit) => ({ id: `apply:restart:${unit}`, title: `restart ${unit}` }));
  const charts = plan.charts.length === 0 ? [] : [STEPS.charts];
  const held = waits === "hold" ? [STEPS.hold] : [];
  const confirmed = waits === "confirm" ? [STEPS.confirm] : [];
  return [STEPS.check, STEPS.snapshot, STEPS.write, ...held, ...restarts, ...confirmed, STEPS.record, ...charts];
}

export const CHARTS_STEP = "apply:charts";

const STEPS = {
  check: { id: "apply:check", title: "check what was rendered" },
  snapshot: { id: "apply:snapshot", title: "keep what will be replaced" },
  write: { id: "apply:write", title: "write what changed" },
  hold: { id: "apply:hold", title: "wait until every controller has it" },
  confirm: { id: "apply:confirm", title: "wait until somebody confirms it" },
  charts: { id: CHARTS_STEP, title: "wait for helm" },
  record: { id: "apply:record", title: "record what the node runs" },
} as const;

/** `plan` must be of this baseline and not refused; callers run `recoverApply` first and one apply at a time. */
export async function applyDocument(request: ApplyRequest, ports: ApplyPorts): Promise<ApplyOutcome> {
  const { plan } = request;
  const { host, paths } = ports;
  if (plan.diff.result === "unchanged") return { status: "unchanged" };
  if (plan.diff.result === "refused") {
    return { status: "failed", error: appError("not-applicable", "this change is refused") };
  }
  const secrets = await withStoredSecrets(host, request.secrets);
  if (!secrets.ok) return { status: "failed", error: secrets.error };
  const changes = await step(ports, STEPS.check, () => prepare(plan, secrets.value, host));
  if (!changes.ok) return { status: "failed", error: changes.error };
  const snapshot = await step(ports, STEPS.snapshot, async () => {
    const place = await checkSource(host, paths.config);
    if (!place.ok) return place;
    const kept = await keepHandEdits(host, paths.stateDir, plan.handEdits ?? []);
    if (!kept.ok) return kept;
    return takeSnapshot(host, {
      stateDir: paths.stateDir,
      operation: request.operation,
      plan: { ...plan, files: changes.value },
      restarts: plan.restarts.includes("k0scontroller") ? ["k0scontroller"] : [],
      documentSha256: sha256Of(request.text),
      sourceSha256: request.sourceSha256,
    });
  });
  if (!snapshot.ok) return { status: "failed", error: snapshot.error };
  const chartsBefore = plan.charts.length === 0 ? undefined : await readCharts(host);
  const runs = ports.hold === undefined ? new Map<K0sUnit, number>() : await readRuns(host, snapshot.value.restarts);
  const before = { record: snapshot.value, runs };
  const done = await change(request, ports, changes.value, snapshot.value);
  if (!done.ok) return rollBack(ports, request, before, done.error);
  const made: Made = {
    text: request.text,
    rendered: digestsAfter(request.rendered, changes.value),
    ...request.inputsWith(secrets.value),
    // Unknown before counts as absent: then a release that is there is taken for the new one.
    charts: { names: plan.charts, before: chartsBefore?.ok === true ? [...chartsBefore.value] : [] },
  };
  return concludeApply(request, ports, before, made);
}

/** From the change that is made to the record of it; also of one that an earlier process has made. */
export async function concludeApply(
  request: Pick<ApplyRequest, "timeoutMs">,
  ports: ApplyPorts,
  before: Before,
  made: Made,
): Promise<ApplyOutcome> {
  const { record } = before;
  const { confirm } = ports;
  const confirmed =
    confirm === undefined ? ok(undefined) : await step(ports, STEPS.confirm, () => confirm(made, record));
  const recorded = confirmed.ok ? await step(ports, STEPS.record, async () => ports.record(made)) : confirmed;
  if (!recorded.ok) return rollBack(ports, request, before, recorded.error);
  const finished = await finish(made.text, ports, record);
  // Recorded: from here on it is what the node runs, and the next start finishes what is left.
  if (!finished.ok) ports.report(`recorded, but not yet tidied up: ${finished.error.message}`);
  const { names } = made.charts;
  if (names.length > 0) {
    const wanted = { names, before: new Map(made.charts.before) };
    const released = await step(ports, STEPS.charts, () => waitForCharts(ports, wanted));
    if (!released.ok) return { status: "chart-failed", error: released.error };
  }
  return { status: "reconciled", restarted: record.restarts, written: record.files.map(({ path }) => path) };
}

async function step<T>(
  ports: ApplyPorts,
  shown: Pick<OperationStep, "id" | "title">,
  work: () => Promise<Result<T, AppError>>,
): Promise<Result<T, AppError>> {
  ports.onStep(shown, "running");
  const result = await work();
  ports.onStep(shown, result.ok ? "done" : "failed");
  return result;
}

/** Files with their secrets, checked by k0s itself; those that are in place already are left out. */
async function prepare(
  plan: ApplyPlan,
  secrets: ReadonlyMap<string, Secret>,
  host: Host,
): Promise<Result<readonly FileChange[], AppError>> {
  const changes: FileChange[] = [];
  for (const change of plan.files) {
    if (change.action === "remove") {
      changes.push(change);
      continue;
    }
    const filled = fillSecrets(change.file, secrets);
    if (!filled.ok) return filled;
    const written = await isWritten(host.files, filled.value);
    if (!written.ok) return written;
    if (written.value) continue;
    if (change.path === K0S_CONFIG) {
      const valid = await validateConfig(host, filled.value.content, secrets);
      if (!valid.ok) return valid;
    }
    changes.push({ ...change, file: filled.value });
  }
  return ok(changes);
}

/** The VRRP password can't change in service, and its source may be gone: the file in place has it. */
export async function withStoredSecrets(
  host: Host,
  secrets: ReadonlyMap<string, Secret>,
): Promise<Result<ReadonlyMap<string, Secret>, AppError>> {
  if (secrets.has("ha.authPass") || secrets.has("ha.authPassFrom")) return ok(secrets);
  const text = await host.files.readText(K0S_CONFIG);
  if (!text.ok) return text.error.code === "ENOENT" ? ok(secrets) : text;
  let config: unknown;
  try {
    config = parse(text.value, { uniqueKeys: false });
  } catch {
    return fail("k0s-config", `${K0S_CONFIG} on this node is no YAML`, { hint: "it was changed by hand: put it back" });
  }
  const instances = valueAt(config, ["spec", "network", "controlPlaneLoadBalancing", "keepalived", "vrrpInstances"]);
  const pass = Array.isArray(instances) ? valueAt(instances[0], ["authPass"]) : undefined;
  if (typeof pass !== "string") return ok(secrets);
  const field = "ha.authPassFrom";
  return ok(new Map([...secrets, [field, new Secret(field, pass)]]));
}

/** A failure anywhere is undone by the caller. */
async function change(
  request: ApplyRequest,
  ports: ApplyPorts,
  changes: readonly FileChange[],
  record: UndoRecord,
): Promise<Result<void, AppError>> {
  const { host } = ports;
  const written = await step(ports, STEPS.write, async () => {
    const dropped = await dropTimers(host, record.timers.gone);
    if (!dropped.ok) return dropped;
    for (const one of changes) {
      const done = one.action === "remove" ? await host.files.remove(one.path) : await writeRendered(host, one.file);
      if (!done.ok) return done;
    }
    const isChanged = changes.some(({ path }) => isUnitPath(path));
    return settleTimers(host, { isChanged, wanted: record.timers.wanted });
  });
  if (!written.ok) return written;
  const { hold } = ports;
  const told = hold === undefined ? ok(undefined) : await step(ports, STEPS.hold, hold);
  if (!told.ok) return told;
  return restart(request, ports, record);
}

export const writeRendered = (
  host: Host,
  { path, content, mode, owner }: RenderedFile,
): Promise<Result<void, AppError>> =>
  host.files.write(path, content, { mode, ...(owner === undefined ? {} : { owner }) });

function digestsAfter(before: RenderedDigests, changes: readonly FileChange[]): RenderedDigests {
  const digests = new Map(Object.entries(before));
  for (const one of changes) {
    if (one.action === "remove") digests.delete(one.path);
    else digests.set(one.path, sha256Of(one.file.content));
  }
  return Object.fromEntries([...digests].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

async function restart(request: ApplyRequest, ports: ApplyPorts, record: UndoRecord): Promise<Result<void, AppError>> {
  for (const unit of record.restarts) {
    const shown = { id: `apply:restart:${unit}`, title: `restart ${unit}` };
    const done = await step(ports, shown, async () => {
      const wait = { unit, ...(request.timeoutMs === undefined ? {} : { timeoutMs: request.timeoutMs }) };
      const restarted = await restartAndWait(ports, wait);
      return restarted.ok && ports.settle !== undefined ? ports.settle() : restarted;
    });
    if (!done.ok) return done;
  }
  return ok(undefined);
}

async function finish(text: string, { host, paths }: ApplyPorts, record: UndoRecord): Promise<Result<void, AppError>> {
  const source = await replaceSource({ host, paths }, record, text);
  return source.ok ? closeRecord(host, paths.stateDir, record, "applied") : source;
}

/** What somebody has written there since the apply began is kept. */
async function replaceSource(
  { host, paths }: Pick<ApplyPorts, "host" | "paths">,
  { sourceSha256 }: UndoRecord,
  text: string,
): Promise<Result<void, AppError>> {
  if (sourceSha256 !== undefined) {
    const replaced = [{ path: paths.config, recorded: sourceSha256, content: text }];
    const kept = await keepHandEdits(host, paths.stateDir, await findHandEdits(host, paths.stateDir, replaced));
    if (!kept.ok) return kept;
  }
  return writeSource(host, paths.config, text);
}

/** Source 1: the document as it was given, comments and all; it may hold secrets. */
export const writeSource = (host: Host, path: string, text: string): Promise<Result<void, AppError>> =>
  host.files.write(path, text, { mode: 0o600 });

/** Before anything is changed: the document is written last, when nothing can be refused any more. */
async function checkSource(host: Host, path: string): Promise<Result<void, AppError>> {
  const found = await host.files.stat(path, { noFollow: true });
  if (!found.ok) return found;
  if (found.value?.kind !== "directory") return ok(undefined);
  return fail("source", `${path} is a folder, and the document is written there`, { hint: "move it away" });
}

export interface Before {
  readonly record: UndoRecord;
  /** Process by unit, as it was before anything was written. */
  readonly runs: ReadonlyMap<K0sUnit, number>;
}

/** Of units that run: one that does not has read nothing, but may be between two tries. */
async function readRuns(host: Host, units: readonly K0sUnit[]): Promise<ReadonlyMap<K0sUnit, number>> {
  const runs = new Map<K0sUnit, number>();
  for (const unit of units) {
    const status = await host.systemd.status(service(unit));
    if (status.ok && status.value.mainPid !== 0) runs.set(unit, status.value.mainPid);
  }
  return runs;
}

const TRIED_AGAIN = "the next apply, or the next start of the node, tries again first; until then nothing is applied";

async function rollBack(
  ports: ApplyPorts,
  request: Pick<ApplyRequest, "timeoutMs">,
  before: Before,
  cause: AppError,
): Promise<ApplyOutcome> {
  const { host, paths } = ports;
  const { record } = before;
  ports.report("putting the files back");
  // A start in the middle of it must not wait for a confirmation of what is half put back. Where no room is left for that
  // mark, what is put back is worth more.
  if (ports.confirm !== undefined) await markAwaited(host, paths.stateDir, record);
  const undone = await putBack(ports, request, before);
  if (undone.ok) {
    const closed = await closeRecord(host, paths.stateDir, record, "undone");
    if (closed.ok) return { status: "rolled-back", error: cause };
    const message = `the change failed (${cause.message}) and was taken back, which could not be recorded`;
    return { status: "stuck", error: appError("undo", message, { cause: closed.error, hint: TRIED_AGAIN }) };
  }
  return {
    status: "stuck",
    error: appError("undo", `the change failed (${cause.message}) and could not be taken back`, {
      cause: undone.error,
      hint: TRIED_AGAIN,
    }),
  };
}

async function putBack(
  ports: ApplyPorts,
  request: Pick<ApplyRequest, "timeoutMs">,
  { record, runs }: Before,
): Promise<Result<void, AppError>> {
  const restored = await restoreInTime(ports, ports.paths.stateDir, record);
  if (!restored.ok) return restored;
  const running = runs.size === 0 ? runs : await readRuns(ports.host, record.restarts);
  for (const unit of record.restarts) {
    // The very process from before has never read what was taken back.
    if (runs.has(unit) && runs.get(unit) === running.get(unit)) continue;
    const back = await restartAndWait(ports, {
      unit,
      ...(request.timeoutMs === undefined ? {} : { timeoutMs: request.timeoutMs }),
    });
    // The files are as before, and that is what can be done: k0s goes on trying by itself.
    if (!back.ok) ports.report(`${unit} does not answer with the old files either: ${back.error.message}`);
  }
  return ok(undefined);
}

/** For `recoverApply`: writes source 1 of a document that is already the baseline. */
export async function finishRecorded(
  { host, paths }: Pick<ApplyPorts, "host" | "paths">,
  document: { readonly text: string; readonly sha256: string },
  record: UndoRecord,
): Promise<Result<void, AppError>> {
  if (document.sha256 !== record.documentSha256) return err(appError("undo", "the recorded document is another one"));
  return replaceSource({ host, paths }, record, document.text);
}
