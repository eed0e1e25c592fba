/**
 * Undo of an apply. Order is everything: the copies are durable before the record names them, the record before the
 * first file is replaced; so whenever power goes, either nothing was replaced or the record says how to go back.
 */
import { type AppError, appError, fail } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import { err, ok, type Result } from "../../kit/result.ts";
import type { K0sUnit } from "../../k0s/paths.ts";
import { service } from "../../k0s/service/driver.ts";
import { escapePath } from "../../systemd/escape.ts";
import { keepHandEdits } from "../by-hand/driver.ts";
import type { ApplyPlan, FileChange } from "../plan.ts";
import { type Awaited, type KeptFile, parseRecord, recordPath, undoFolder, type UndoRecord } from "./model.ts";
import { sha256Of } from "../../kit/sha256.ts";

/** Of operations that are over; an open one always stays. */
const KEPT_RECORDS = 3;

const PRIVATE = 0o600;

interface SnapshotInput {
  readonly stateDir: string;
  readonly operation: string;
  readonly plan: Pick<ApplyPlan, "files" | "timers">;
  readonly restarts: readonly K0sUnit[];
  readonly documentSha256: string;
  readonly sourceSha256?: string;
}

async function keepFile(host: Host, change: FileChange, copy: string): Promise<Result<KeptFile, AppError>> {
  const { path } = change;
  const after = change.action === "write" ? { after: sha256Of(change.file.content) } : {};
  const stat = await host.files.stat(path, { noFollow: true });
  if (!stat.ok) return stat;
  if (stat.value === null) return ok({ path, before: null, ...after });
  if (stat.value.kind !== "file") return fail("not-a-file", `${path} is a ${stat.value.kind}, not a file`);
  const content = await host.files.read(path);
  if (!content.ok) return content;
  const written = await host.files.write(copy, content.value, { mode: PRIVATE });
  return written.ok ? ok({ path, before: { mode: stat.value.mode, copy }, ...after }) : written;
}

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));

/** Copies what will be replaced. Anything unreadable fails here, when nothing is changed yet. */
export async function takeSnapshot(host: Host, input: SnapshotInput): Promise<Result<UndoRecord, AppError>> {
  const { stateDir, operation, plan } = input;
  const files: KeptFile[] = [];
  const newFolders = new Set<string>();
  const knownTimers: string[] = [];
  for (const [index, change] of plan.files.entries()) {
    const { path } = change;
    const kept = await keepFile(host, change, `${undoFolder(stateDir)}/${operation}/${index}`);
    if (!kept.ok) return err(appError("snapshot", `${path} can't be kept for an undo`, { cause: kept.error }));
    files.push(kept.value);
    if (kept.value.before !== null) {
      knownTimers.push(...plan.timers.wanted.filter((unit) => path.endsWith(`/${unit}`)));
      continue;
    }
    const folder = await host.files.stat(folderOf(path));
    if (!folder.ok) return folder;
    if (folder.value === null) newFolders.add(folderOf(path));
  }
  const known = await readRecords(host, stateDir);
  if (!known.ok) return known;
  const record: UndoRecord = {
    operation,
    atMs: host.clock.nowMs(),
    order: Math.max(0, ...known.value.map(orderOf)) + 1,
    state: "open",
    files,
    newFolders: [...newFolders],
    restarts: input.restarts,
    timers: plan.timers,
    knownTimers,
    documentSha256: input.documentSha256,
    ...(input.sourceSha256 === undefined ? {} : { sourceSha256: input.sourceSha256 }),
  };
  const written = await writeRecord(host, stateDir, record);
  return written.ok ? ok(record) : written;
}

const orderOf = ({ order = 0 }: UndoRecord): number => order;

const writeRecord = (host: Host, stateDir: string, record: UndoRecord): Promise<Result<void, AppError>> =>
  host.files.write(recordPath(stateDir, record.operation), `${JSON.stringify(record)}\n`, { mode: PRIVATE });

/** Makes it one that a later start goes on waiting for, or, without `awaited`, one that it undoes. */
export const markAwaited = (
  host: Host,
  stateDir: string,
  { awaited: _before, ...record }: UndoRecord,
  awaited?: Awaited,
): Promise<Result<void, AppError>> =>
  writeRecord(host, stateDir, { ...record, ...(awaited === undefined ? {} : { awaited }) });

/** The operation is over; of older sets only the newest stay. */
export async function closeRecord(
  host: Host,
  stateDir: string,
  { awaited: _over, ...record }: UndoRecord,
  state: "applied" | "undone",
): Promise<Result<void, AppError>> {
  const written = await writeRecord(host, stateDir, { ...record, state });
  if (!written.ok) return written;
  const records = await readRecords(host, stateDir);
  if (!records.ok) return records;
  const over = records.value
    .filter((one) => one.state !== "open")
    .toSorted((a, b) => orderOf(b) - orderOf(a) || b.atMs - a.atMs);
  for (const old of over.slice(KEPT_RECORDS)) {
    const removed = await host.files.remove(`${undoFolder(stateDir)}/${old.operation}`, { recursive: true });
    if (!removed.ok) return removed;
  }
  return ok(undefined);
}

/** Of sets whose record was written; copies without one are of an apply that replaced nothing. */
export async function readRecords(host: Host, stateDir: string): Promise<Result<readonly UndoRecord[], AppError>> {
  const names = await host.files.list(undoFolder(stateDir));
  if (!names.ok) return names.error.code === "ENOENT" ? ok([]) : names;
  const records: UndoRecord[] = [];
  for (const name of names.value) {
    const text = await host.files.readText(recordPath(stateDir, name));
    if (!text.ok && text.error.code === "ENOENT") continue;
    if (!text.ok) return text;
    const record = parseRecord(text.value);
    if (record === undefined) {
      return fail(
        "undo-record",
        `${recordPath(stateDir, name)} is damaged: what the apply ${name} replaced can't be put back`,
        {
          hint: `copies of it are beside that file; move the folder ${undoFolder(stateDir)}/${name} away once they are where they belong`,
        },
      );
    }
    records.push(record);
  }
  return ok(records);
}

/** Puts every file back as it was. May be run again after it was cut off at any point. */
export async function restoreFiles(host: Host, stateDir: string, record: UndoRecord): Promise<Result<void, AppError>> {
  const edited = await keepLateEdits(host, stateDir, record);
  if (!edited.ok) return edited;
  const addedTimers = record.timers.wanted.filter((unit) => !record.knownTimers.includes(unit));
  const stopped = await dropTimers(host, addedTimers);
  if (!stopped.ok) return stopped;
  for (const { path, before } of record.files) {
    if (before === null) {
      const removed = await host.files.remove(path);
      if (!removed.ok) return removed;
      continue;
    }
    const content = await host.files.read(before.copy);
    if (!content.ok) return content;
    const written = await host.files.write(path, content.value, { mode: before.mode });
    if (!written.ok) return written;
  }
  for (const folder of record.newFolders) {
    const removed = await host.files.remove(folder, { recursive: true });
    if (!removed.ok) return removed;
  }
  return settleTimers(host, { isChanged: hasUnits(record), wanted: [...record.timers.gone, ...record.knownTimers] });
}

/** What somebody has changed by hand since the apply wrote it: neither from before nor from it. */
async function keepLateEdits(host: Host, stateDir: string, { files }: UndoRecord): Promise<Result<void, AppError>> {
  const edits: { readonly path: string }[] = [];
  for (const { path, before, after } of files) {
    const found = await host.files.read(path);
    if (!found.ok) continue;
    const digest = sha256Of(found.value);
    if (digest === after) continue;
    const old = before === null ? undefined : await host.files.read(before.copy);
    if (old?.ok === false) return old;
    if (old === undefined || digest !== sha256Of(old.value)) edits.push({ path });
  }
  return keepHandEdits(host, stateDir, edits);
}

/** A disk that is full now may have room a moment later, and until then the node is half of each. */
const RESTORE_LIMIT_MS = 10 * 60_000;
const RESTORE_AGAIN_MS = 10_000;

/** As `restoreFiles`, tried again for ten minutes, which is told. */
export async function restoreInTime(
  { host, report }: { readonly host: Host; readonly report: (message: string) => void },
  stateDir: string,
  record: UndoRecord,
): Promise<Result<void, AppError>> {
  const untilMs = host.clock.monotonicMs() + RESTORE_LIMIT_MS;
  for (;;) {
    const restored = await restoreFiles(host, stateDir, record);
    if (restored.ok || host.clock.monotonicMs() >= untilMs) return restored;
    report(`the files can't be put back yet, and it is tried again: ${restored.error.message}`);
    await host.clock.sleep(RESTORE_AGAIN_MS);
  }
}

const hasUnits = (record: UndoRecord): boolean => record.files.some(({ path }) => isUnitPath(path));

export const isUnitPath = (path: string): boolean => path.startsWith("/etc/systemd/system/");

/** Before their files go: systemd can't disable what it does not find any more. */
export async function dropTimers(host: Host, units: readonly string[]): Promise<Result<void, AppError>> {
  for (const unit of units) {
    const status = await host.systemd.status(unit);
    if (!status.ok) return status;
    if (status.value.loadState === "not-found") continue;
    const stopped = await host.systemd.stop(unit);
    if (!stopped.ok) return stopped;
    const disabled = await host.systemd.disable(unit);
    if (!disabled.ok) return disabled;
  }
  return ok(undefined);
}

/** After their files came or changed: a running timer keeps its old schedule until it is restarted. */
export async function settleTimers(
  host: Host,
  units: { readonly isChanged: boolean; readonly wanted: readonly string[] },
): Promise<Result<void, AppError>> {
  if (!units.isChanged) return ok(undefined);
  const reloaded = await host.systemd.daemonReload();
  if (!reloaded.ok) return reloaded;
  for (const unit of units.wanted) {
    const enabled = await host.systemd.enable(unit);
    if (!enabled.ok) return enabled;
    const restarted = await host.systemd.restart(unit);
    if (!restarted.ok) return restarted;
  }
  return ok(undefined);
}

export interface Recovery {
  readonly operation: string;
  /** What became of the operation that a crash or a power cut had left in the middle. */
  readonly outcome: "undone" | "finished";
  /** It was made, and waited to be confirmed. */
  readonly wasAwaited: boolean;
}

export interface RecoverPorts {
  readonly host: Host;
  readonly stateDir: string;
  /** Does the baseline already hold the document with this hash? */
  readonly isRecorded: (documentSha256: string) => boolean;
  /** It is made and may still be confirmed: left as it is. */
  readonly isAwaited: (record: UndoRecord) => boolean;
  /** Of the baseline's data disks: files may lie beneath. */
  readonly mountPoints: readonly string[];
  /** The document was recorded, source 1 may still be the old one: writes it again. */
  readonly finish: (record: UndoRecord) => Promise<Result<void, AppError>>;
}

/**
 * To be run at each start before k0s is up, and before each apply. What was recorded is finished, what was not is
 * undone, so that the node is as before or as after, never between. k0s is restarted only where it already runs.
 */
export async function recoverApply(ports: RecoverPorts): Promise<Result<readonly Recovery[], AppError>> {
  const { host, stateDir } = ports;
  const records = await readRecords(host, stateDir);
  if (!records.ok) return records;
  const recoveries: Recovery[] = [];
  for (const record of records.value) {
    if (record.state !== "open") continue;
    const isRecorded = ports.isRecorded(record.documentSha256);
    if (!isRecorded && ports.isAwaited(record)) continue;
    const missing = isRecorded
      ? ok(undefined)
      : await missingMount(
          host,
          record.files.map(({ path }) => path),
          ports.mountPoints,
        );
    if (!missing.ok) return missing;
    if (missing.value !== undefined) {
      return fail(
        NOT_MOUNTED,
        `the apply ${record.operation} was cut off, and some of what it replaced is on ${missing.value}, which is not mounted`,
        { hint: "everything is put back, and k0s started, as soon as it is" },
      );
    }
    const done = isRecorded ? await ports.finish(record) : await undo(host, stateDir, record);
    if (!done.ok) {
      const what = isRecorded ? "is recorded and can't be finished" : "was cut off and can't be undone";
      return err(appError("undo", `the apply ${record.operation} ${what}`, { cause: done.error }));
    }
    const closed = await closeRecord(host, stateDir, record, isRecorded ? "applied" : "undone");
    if (!closed.ok) return closed;
    recoveries.push({
      operation: record.operation,
      outcome: isRecorded ? "finished" : "undone",
      wasAwaited: record.awaited !== undefined,
    });
  }
  return ok(recoveries);
}

export const NOT_MOUNTED = "not-mounted";

/**
 * Data disks may come long after PID 1, or not at all. What is put back into the empty mount point is not put back:
 * the mount then covers it, and shows what the apply had written.
 */
export async function missingMount(
  host: Host,
  paths: readonly string[],
  points: readonly string[],
): Promise<Result<string | undefined, AppError>> {
  for (const point of points) {
    if (!paths.some((path) => path.startsWith(`${point}/`))) continue;
    const status = await host.systemd.status(`${escapePath(point)}.mount`);
    if (!status.ok) return status;
    if (status.value.activeState !== "active") return ok(point);
  }
  return ok(undefined);
}

async function undo(host: Host, stateDir: string, record: UndoRecord): Promise<Result<void, AppError>> {
  const restored = await restoreFiles(host, stateDir, record);
  if (!restored.ok) return restored;
  for (const unit of record.restarts) {
    const status = await host.systemd.status(service(unit));
    if (!status.ok) return status;
    // The program died, not the machine: k0s may run with what has just been taken back.
    if (status.value.activeState === "inactive") continue;
    const restarted = await host.systemd.restart(service(unit));
    if (!restarted.ok) return restarted;
  }
  return ok(undefined);
}
