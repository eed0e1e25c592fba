import type { AppError } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { Executors, StepState } from "../kit/step.ts";
import type { SystemdStep, UnitsStep } from "./model.ts";

export const systemdExecutors: Executors<SystemdStep> = {
  "systemd:units": {
    argv: (step) => [
      ["systemctl", "daemon-reload"],
      ...step.enable.map((unit) => ["systemctl", "enable", unit]),
      ...step.start.map((unit) => ["systemctl", "start", unit]),
    ],
    check: (step, { host }) => checkUnits(step, host),
    run: (step, { host }) => writeUnits(step, host),
  },
};

async function checkUnits(step: UnitsStep, host: Host): Promise<Result<StepState, AppError>> {
  for (const file of step.files) {
    const found = await host.files.readText(file.path);
    if (!found.ok || found.value !== file.content) return ok("todo");
  }
  for (const unit of new Set([...step.enable, ...step.start])) {
    const status = await host.systemd.status(unit);
    if (!status.ok) return status;
    const { unitFileState, activeState } = status.value;
    if (step.enable.includes(unit) && unitFileState !== "enabled") return ok("todo");
    if (step.start.includes(unit) && activeState !== "active") return ok("todo");
  }
  return ok("done");
}

/** Only what differs is written: an unchanged unit keeps its mtime, and systemd does not ask to be reloaded. */
async function writeUnits(step: UnitsStep, host: Host): Promise<Result<void, AppError>> {
  for (const file of step.files) {
    const found = await host.files.readText(file.path);
    if (found.ok && found.value === file.content) continue;
    const owner = file.owner === undefined ? {} : { owner: file.owner };
    const written = await host.files.write(file.path, file.content, { mode: file.mode, ...owner });
    if (!written.ok) return written;
  }
  const reloaded = await host.systemd.daemonReload();
  if (!reloaded.ok) return reloaded;
  for (const unit of step.enable) {
    const enabled = await host.systemd.enable(unit);
    if (!enabled.ok) return enabled;
  }
  // `systemctl enable` links below /etc by itself: the state partition has to learn of it.
  const kept = step.enable.length === 0 ? ok(undefined) : await host.files.keep("/etc/systemd/system/");
  if (!kept.ok) return kept;
  for (const unit of step.start) {
    const started = await host.systemd.start(unit);
    if (!started.ok) return started;
  }
  return ok(undefined);
}
