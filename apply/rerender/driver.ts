/**
 * The first boot of a release that renders otherwise than the one before: what k0s reads is written anew, once, before
 * it starts. What takes more is left, and stays pending. An undo record makes it all or nothing over a power cut.
 */
import type { Document } from "../../config/document.ts";
import { ANY_TIME } from "../../config/load.ts";
import { inlineSecrets } from "../../config/secrets.ts";
import { mountPointsOf } from "../../config/mount-points.ts";
import { validateConfig } from "../../k0s/driver.ts";
import { fillSecrets } from "../../k0s/fill.ts";
import { unitOf } from "../../k0s/argv.ts";
import { K0S_CONFIG } from "../../k0s/paths.ts";
import { isUp, readVersion, service } from "../../k0s/service/driver.ts";
import { type AppError, formatError } from "../../kit/app-error.ts";
import type { RenderedFile } from "../../kit/rendered.ts";
import { ok, type Result } from "../../kit/result.ts";
import type { Baseline } from "../../state/model.ts";
import { findHandEdits, keepHandEdits } from "../by-hand/driver.ts";
import { withStoredSecrets, writeRendered } from "../driver.ts";
import { expectedNode } from "../expected.ts";
import { nodeFingerprintKey } from "../fingerprint-key.ts";
import { inputHash } from "../input-hash.ts";
import type { FileChange } from "../plan.ts";
import { RENDER_VERSION } from "../render-version.ts";
import type { ApplyDependencies } from "../service/model.ts";
import { recordTogether } from "../transaction.ts";
import { closeRecord, isUnitPath, missingMount, restoreFiles, takeSnapshot } from "../undo/driver.ts";
import type { UndoRecord } from "../undo/model.ts";
import { parseRenderRecord, planRerender, renderMark, type RenderRecord, type RerenderPlan } from "./model.ts";
import { sha256Of } from "../../kit/sha256.ts";

export interface RerenderDependencies extends ApplyDependencies {
  /** Of this release; another one for tests. */
  readonly renderVersion?: number;
}

/** Data disks that k0s waits for are there in a moment, or k0s does not start either. */
const MOUNT_WAIT_MS = 30_000;
const LOOK_MS = 1_000;

const STEPS = [
  { id: "render:check", title: "render anew, and check it" },
  { id: "render:write", title: "write what changed" },
  { id: "render:record", title: "record what the node runs" },
] as const;

/** Undefined: there was nothing to do. Never on a node whose k0s runs already: that is the next boot's. */
export async function rerender(dependencies: RerenderDependencies): Promise<"succeeded" | "failed" | undefined> {
  const { host, state, version } = dependencies;
  const renderVersion = dependencies.renderVersion ?? RENDER_VERSION;
  const baseline = state.baseline.get();
  if (baseline === undefined || renderVersion <= baseline.renderVersion) return undefined;
  if (parseRenderRecord(state.meta.get("rendered"))?.renderVersion === renderVersion) return undefined;
  const { document } = dependencies.parse(baseline.document.text, ANY_TIME);
  if (document === undefined) return undefined;
  const k0s = await host.systemd.status(service(unitOf(document)));
  if (!k0s.ok || isUp(k0s.value)) return undefined;
  const steps = STEPS.map((step) => ({ ...step, state: "pending" as const }));
  const requester = { kind: "document" } as const;
  const begun = state.operations.begin({ kind: "render", requester, version, steps, atMs: host.clock.nowMs() });
  if (!begun.ok) return undefined;
  const operation = begun.value.id;
  const done = await carryOut({ dependencies, operation, baseline, document, renderVersion });
  const atMs = host.clock.nowMs();
  if (done.ok) {
    state.operations.end(operation, { phase: "succeeded" }, atMs);
    const left = done.value.length === 0 ? "" : `; left for a later change: ${done.value.join(", ")}`;
    const message = `the configuration was rendered anew for this release${left}`;
    state.events.add({ atMs, kind: "rendered", severity: "info", message });
    return "succeeded";
  }
  const failureReason = formatError(done.error);
  state.operations.end(operation, { phase: "failed", failureReason }, atMs);
  const message = `this release renders otherwise, and that could not be made true: ${done.error.message}`;
  state.events.add({ atMs, kind: "render-failed", severity: "error", message });
  return "failed";
}

interface Work {
  readonly dependencies: RerenderDependencies;
  readonly operation: string;
  readonly baseline: Baseline;
  readonly document: Document;
  readonly renderVersion: number;
}

/** What is left. An error: everything is as before, or the next start of the program puts it back. */
async function carryOut(work: Work): Promise<Result<readonly string[], AppError>> {
  const { dependencies, operation, baseline } = work;
  const { host, paths } = dependencies;
  const step = stepper(work);
  const planned = await step(STEPS[0], () => prepare(work));
  if (!planned.ok) return planned;
  const { write, left } = planned.value;
  const written = await step(STEPS[1], async () => {
    const replaced = write.map(({ path, content }) => ({ path, recorded: baseline.rendered[path], content }));
    const kept = await keepHandEdits(host, paths.stateDir, await findHandEdits(host, paths.stateDir, replaced));
    if (!kept.ok) return kept;
    const record = await takeSnapshot(host, {
      stateDir: paths.stateDir,
      operation,
      plan: {
        files: write.map((file): FileChange => ({ action: "write", path: file.path, file, diff: "" })),
        timers: NONE,
      },
      restarts: [],
      documentSha256: renderMark(operation),
    });
    if (!record.ok) return record;
    const all = await writeAll(work, write);
    return all.ok ? record : takeBack(work, record.value, all.error);
  });
  if (!written.ok) return written;
  const recorded = await step(STEPS[2], async () => {
    // It is rendered for the k0s that this release brings; one that can't be asked is the one that was there.
    const version = await readVersion(host);
    const done = record(work, planned.value, version.ok ? version.value : baseline.k0sVersion);
    return done.ok
      ? closeRecord(host, paths.stateDir, written.value, "applied")
      : takeBack(work, written.value, done.error);
  });
  return recorded.ok ? ok(left) : recorded;
}

const NONE = { gone: [], wanted: [] } as const;

function stepper({ dependencies: { host, state }, operation }: Work) {
  return async <T>(
    shown: (typeof STEPS)[number],
    run: () => Promise<Result<T, AppError>>,
  ): Promise<Result<T, AppError>> => {
    state.operations.step(operation, { ...shown, state: "running" }, host.clock.nowMs());
    const result = await run();
    state.operations.step(operation, { ...shown, state: result.ok ? "done" : "failed" }, host.clock.nowMs());
    return result;
  };
}

/** Files that are nothing but a secret are of the first boot: neither read nor written. */
async function prepare({ dependencies, baseline, document }: Work): Promise<Result<RerenderPlan, AppError>> {
  const { host, state } = dependencies;
  const secrets = await withStoredSecrets(host, inlineSecrets(document));
  if (!secrets.ok) return secrets;
  const handedOver = state.handover.done()?.stack;
  const expected = expectedNode({ document, node: baseline, owned: state.owned.list(), handedOver });
  const filled: RenderedFile[] = [];
  const untouched = new Set<string>();
  for (const file of expected.files.values()) {
    const isSecret = file.path !== K0S_CONFIG && file.content.includes("<secret:");
    if (isSecret) untouched.add(file.path);
    const done = isSecret ? undefined : fillSecrets(file, secrets.value);
    if (done?.ok === false) return done;
    if (done !== undefined) filled.push(done.value);
  }
  const known = Object.entries(baseline.rendered).filter(([path]) => !untouched.has(path));
  const plan = planRerender(filled, Object.fromEntries(known), sha256Of);
  const config = plan.write.find(({ path }) => path === K0S_CONFIG);
  const valid = config === undefined ? ok(undefined) : await validateConfig(host, config.content, secrets.value);
  if (!valid.ok) return valid;
  return afterMounts(dependencies, document, plan);
}

/** Written beneath a mount that is not there yet, it would be covered by it. */
async function afterMounts(
  { host }: Pick<RerenderDependencies, "host">,
  document: Document,
  plan: RerenderPlan,
): Promise<Result<RerenderPlan, AppError>> {
  const until = host.clock.monotonicMs() + MOUNT_WAIT_MS;
  for (;;) {
    const paths = plan.write.map(({ path }) => path);
    const missing = await missingMount(host, paths, mountPointsOf(document));
    if (!missing.ok) return missing;
    if (missing.value === undefined) return ok(plan);
    if (host.clock.monotonicMs() >= until) {
      const isBelow = (path: string): boolean => path.startsWith(`${missing.value}/`);
      const rest = {
        write: plan.write.filter(({ path }) => !isBelow(path)),
        left: [...plan.left, ...paths.filter(isBelow)],
      };
      return afterMounts({ host }, document, rest);
    }
    await host.clock.sleep(LOOK_MS);
  }
}

async function writeAll(
  { dependencies: { host } }: Work,
  files: readonly RenderedFile[],
): Promise<Result<void, AppError>> {
  for (const file of files) {
    const done = await writeRendered(host, file);
    if (!done.ok) return done;
  }
  if (!files.some(({ path }) => isUnitPath(path))) return ok(undefined);
  const reloaded = await host.systemd.daemonReload();
  if (!reloaded.ok) return reloaded;
  // Not waited for: at boot a timer comes after much that comes after this program.
  for (const unit of files.map(({ path }) => path.slice(path.lastIndexOf("/") + 1))) {
    if (!unit.endsWith(".timer")) continue;
    const stopped = await host.systemd.stop(unit);
    const started = stopped.ok ? await host.systemd.start(unit, { noBlock: true }) : stopped;
    if (!started.ok) return started;
  }
  return ok(undefined);
}

async function takeBack(
  { dependencies: { host, paths } }: Work,
  record: UndoRecord,
  error: AppError,
): Promise<Result<never, AppError>> {
  const restored = await restoreFiles(host, paths.stateDir, record);
  if (restored.ok) await closeRecord(host, paths.stateDir, record, "undone");
  return { ok: false, error };
}

/** The renderer's version is the baseline's only when nothing is left: until then that is pending. */
function record(
  { dependencies, operation, baseline, document, renderVersion }: Work,
  { write, left }: RerenderPlan,
  k0sVersion: string,
): Result<void, AppError> {
  const { host, state } = dependencies;
  const recorded = left.length === 0 ? renderVersion : baseline.renderVersion;
  const digests = new Map(Object.entries(baseline.rendered));
  for (const { path, content } of write) digests.set(path, sha256Of(content));
  const { secretFingerprints, addresses, hostname } = baseline;
  const hash = inputHash({
    document,
    secrets: secretFingerprints,
    addresses,
    hostname,
    k0sVersion,
    fingerprintKey: nodeFingerprintKey(state.meta, host.random),
    isHandedOver: state.handover.done() !== undefined,
    renderVersion: recorded,
  });
  const next: Baseline = {
    ...baseline,
    k0sVersion,
    rendered: Object.fromEntries([...digests].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    renderVersion: recorded,
    inputHash: hash,
    atMs: host.clock.nowMs(),
  };
  return recordTogether(state, () => {
    state.baseline.set(next);
    state.meta.set("rendered", JSON.stringify({ operation, renderVersion } satisfies RenderRecord));
  });
}
