/** k0s on this machine: its files and its unit, one executor per step. Waiting for it: service/driver.ts. */
import { type AppError, fail } from "../kit/app-error.ts";
import type { Files, Host } from "../kit/ports.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { ok, type Result } from "../kit/result.ts";
import type { Executors, StepContext, StepState } from "../kit/step.ts";
import type { Secret } from "../kit/secret.ts";
import { fillSecrets, withoutSecrets } from "./fill.ts";
import type { ConfigStep, InstallStep, K0sStep, StartStep, TokenStep } from "./model.ts";
import { parseUnit } from "./parse.ts";
import { K0S_BINARY, type K0sUnit, unitFile, unitWant } from "./paths.ts";
import { failureOf, isUp, looped, service, waitFor, waitUntilReady, whatIsMissing } from "./service/driver.ts";
import { isSameCommand, wantedCommand } from "./unit.ts";

const INSTALL_TIMEOUT_MS = 120_000;
/** k0s is ordered after network-online.target, which a machine without network reaches only after a minute. */
const START_TIMEOUT_MS = 5 * 60_000;

/** In RAM and gone afterwards: it holds the secrets. */
const VALIDATED_FILE = "/run/corium/k0s-validate.yaml";

/** Does the file hold this very content with this mode? */
export async function isWritten(files: Files, file: RenderedFile): Promise<Result<boolean, AppError>> {
  const stat = await files.stat(file.path);
  if (!stat.ok) return stat;
  if (stat.value === null || stat.value.mode !== file.mode) return ok(false);
  const found = await files.readText(file.path);
  if (!found.ok) return found;
  return ok(found.value === file.content);
}

async function areWritten(
  files: readonly RenderedFile[],
  { host, secrets }: StepContext,
): Promise<Result<StepState, AppError>> {
  for (const file of files) {
    const filled = fillSecrets(file, secrets);
    if (!filled.ok) return filled;
    const written = await isWritten(host.files, filled.value);
    if (!written.ok) return written;
    if (!written.value) return ok("todo");
  }
  return ok("done");
}

async function writeAll(
  files: readonly RenderedFile[],
  { host, secrets }: StepContext,
): Promise<Result<void, AppError>> {
  for (const file of files) {
    const filled = fillSecrets(file, secrets);
    if (!filled.ok) return filled;
    const written = await isWritten(host.files, filled.value);
    if (!written.ok) return written;
    if (written.value) continue;
    const done = await host.files.write(file.path, filled.value.content, { mode: file.mode });
    if (!done.ok) return done;
  }
  return ok(undefined);
}

/** k0s's own check of a config with its secrets filled in; it knows what no schema says. */
export async function validateConfig(
  host: Host,
  content: string,
  secrets: ReadonlyMap<string, Secret>,
): Promise<Result<void, AppError>> {
  const written = await host.files.write(VALIDATED_FILE, content, { mode: 0o600 });
  if (!written.ok) return written;
  const result = await host.exec({ argv: [K0S_BINARY, "config", "validate", "--config", VALIDATED_FILE] });
  const removed = await host.files.remove(VALIDATED_FILE);
  if (result.exitCode === 0) return removed;
  if (result.exitCode === null) return fail("k0s-validate", `k0s config validate: ${failureOf(result)}`);
  // The order of the problems is random between runs (facts: section 1.2).
  const problems = withoutSecrets(result.stderr, secrets)
    .trim()
    .split("\n")
    .map((line) => line.replace(/^Error: /, ""))
    .toSorted();
  return fail("k0s-config", "k0s refuses its configuration", {
    details: problems,
    hint: "most often k0s.patch holds a value that k0s does not take",
  });
}

async function writeConfig(step: ConfigStep, context: StepContext): Promise<Result<void, AppError>> {
  const filled = fillSecrets(step.file, context.secrets);
  if (!filled.ok) return filled;
  const valid = await validateConfig(context.host, filled.value.content, context.secrets);
  if (!valid.ok) return valid;
  return context.host.files.write(step.file.path, filled.value.content, { mode: step.file.mode });
}

/** A token may be good for one fetch only: once it is stored, a later run does without its source. */
async function checkToken(step: TokenStep, context: StepContext): Promise<Result<StepState, AppError>> {
  if (fillSecrets(step.file, context.secrets).ok) return areWritten([step.file], context);
  const stored = await context.host.files.readText(step.file.path);
  if (!stored.ok && stored.error.code !== "ENOENT") return stored;
  return ok(stored.ok && stored.value.trim() !== "" ? "done" : "todo");
}

/** k0s reads it when it starts: one that still tries an earlier token is stopped, and started by a later step. */
async function writeToken(step: TokenStep, context: StepContext): Promise<Result<void, AppError>> {
  const { host } = context;
  const written = await writeAll([step.file], context);
  if (!written.ok) return written;
  const status = await host.systemd.status(service(step.unit));
  if (!status.ok || status.value.loadState === "not-found" || !isUp(status.value)) return ok(undefined);
  return host.systemd.stop(service(step.unit));
}

type Installed = "absent" | "other" | "same";

async function installedUnit(step: InstallStep, host: Host): Promise<Result<Installed, AppError>> {
  const text = await host.files.readText(unitFile(step.unit));
  if (!text.ok) return text.error.code === "ENOENT" ? ok("absent") : text;
  const found = parseUnit(text.value);
  // A unit that can't be read is not the one we want.
  return ok(found.ok && isSameCommand(found.value, wantedCommand(step.argv)) ? "same" : "other");
}

async function checkInstalled(step: InstallStep, context: StepContext): Promise<Result<StepState, AppError>> {
  const { host } = context;
  const held = await areWritten(step.files, context);
  if (!held.ok || held.value === "todo") return held;
  const found = await installedUnit(step, host);
  if (!found.ok || found.value !== "same") return found.ok ? ok("todo") : found;
  const status = await host.systemd.status(service(step.unit));
  if (!status.ok) return status;
  return ok(status.value.unitFileState === "enabled" ? "done" : "todo");
}

async function install(step: InstallStep, context: StepContext): Promise<Result<void, AppError>> {
  const { host } = context;
  const isHeld = await areWritten(step.files, context);
  if (!isHeld.ok) return isHeld;
  if (isHeld.value === "todo") {
    const written = await writeAll(step.files, context);
    if (!written.ok) return written;
    const reloaded = await host.systemd.daemonReload();
    if (!reloaded.ok) return reloaded;
  }
  const found = await installedUnit(step, host);
  if (!found.ok) return found;
  if (found.value === "same") {
    const enabled = await host.systemd.enable(service(step.unit));
    if (!enabled.ok) return enabled;
    return keepUnit(step.unit, host);
  }
  // With --force on a first install k0s warns of a unit that is not there (k0s issue 4902).
  const force = found.value === "other" ? ["--force"] : [];
  const argv = [K0S_BINARY, ...step.argv, ...force];
  const result = await host.exec({ argv, timeoutMs: INSTALL_TIMEOUT_MS });
  if (result.exitCode !== 0) return fail("k0s-install", `k0s install: ${failureOf(result)}`);
  return keepUnit(step.unit, host);
}

/** k0s wrote these itself, and what is not kept of /etc is gone at the next boot. */
async function keepUnit(unit: K0sUnit, host: Host): Promise<Result<void, AppError>> {
  for (const path of [unitFile(unit), unitWant(unit)]) {
    const kept = await host.files.keep(path);
    if (!kept.ok) return kept;
  }
  return ok(undefined);
}

async function start(step: StartStep, context: StepContext): Promise<Result<void, AppError>> {
  const { host } = context;
  // Again: the process may have died between `k0s install` and keeping what it wrote.
  const kept = await keepUnit(step.unit, host);
  if (!kept.ok) return kept;
  const status = await host.systemd.status(service(step.unit));
  if (!status.ok) return status;
  if (status.value.activeState === "failed") {
    const reset = await host.systemd.resetFailed(service(step.unit));
    if (!reset.ok) return reset;
  }
  // Without waiting: the unit may be ordered after the very service that runs this.
  const started = await host.systemd.start(service(step.unit), { noBlock: true });
  if (!started.ok) return started;
  const before = status.value.restarts;
  return waitFor(context, {
    what: `${step.unit} to start`,
    timeoutMs: START_TIMEOUT_MS,
    probe: async () => {
      const now = await host.systemd.status(service(step.unit));
      if (!now.ok) return now;
      if (now.value.activeState === "active") return ok(undefined);
      if (now.value.activeState === "failed" || now.value.restarts > before)
        return looped(host, step.unit, now.value, step.isJoining);
      return ok(`it is ${now.value.activeState}`);
    },
  });
}

/** k0s answered once, which is what was waited for: on a slow machine the next question may go unanswered again. */
const answered = new WeakSet<object>();

export const k0sExecutors: Executors<K0sStep> = {
  "k0s:manifests": {
    argv: () => [],
    check: (step, context) => areWritten(step.files, context),
    run: (step, context) => writeAll(step.files, context),
  },
  "k0s:config": {
    argv: () => [[K0S_BINARY, "config", "validate", "--config", VALIDATED_FILE]],
    check: (step, context) => areWritten([step.file], context),
    run: writeConfig,
  },
  "k0s:token": {
    argv: () => [],
    check: checkToken,
    run: writeToken,
  },
  "k0s:install": {
    argv: (step) => [[K0S_BINARY, ...step.argv]],
    check: checkInstalled,
    run: install,
  },
  "k0s:start": {
    argv: (step) => [["systemctl", "start", "--no-block", service(step.unit)]],
    check: async (step, { host }) => {
      const status = await host.systemd.status(service(step.unit));
      return status.ok ? ok(isUp(status.value) ? "done" : "todo") : status;
    },
    run: start,
  },
  "k0s:ready": {
    argv: () => [
      [K0S_BINARY, "status", "-o", "json"],
      [K0S_BINARY, "kubectl", "get", "--raw", "/readyz"],
    ],
    check: async (step, { host }) =>
      ok(answered.has(step) || (await whatIsMissing(host)) === undefined ? "done" : "todo"),
    run: async (step, context) => {
      const ready = await waitUntilReady(context, { unit: step.unit, isJoining: step.isJoining });
      if (ready.ok) answered.add(step);
      return ready;
    },
  },
};
