/**
 * What a power cut left of an apply or a hand-over, at the daemon's start. k0s is held until it is put back: it would release a new
 * add-on from the half of it, and uninstall it again with its data once the files are as before.
 */
import { recoverHandover } from "../apply/handover/driver.ts";
import { goOnWaiting } from "../apply/operation/driver.ts";
import { recoverApplies } from "../apply/recovery/driver.ts";
import type { ApplyDependencies } from "../apply/service/model.ts";
import { NOT_MOUNTED } from "../apply/undo/driver.ts";
import { type AppError, formatError } from "../kit/app-error.ts";
import type { Paths } from "../kit/paths.ts";
import { ok, type Result } from "../kit/result.ts";
import { closeAbandoned } from "./abandoned.ts";
import { isResetting } from "./reset-files.ts";
import { reconcileDocument } from "./reconcile-document.ts";

const LOOK_MS = 2_000;
const K0S_UNITS = ["k0scontroller.service", "k0sworker.service"] as const;

export interface CutApply extends ApplyDependencies {
  readonly paths: ApplyDependencies["paths"] & Pick<Paths, "runDir" | "config" | "resetIntent" | "resetErasing">;
  readonly say: (line: string) => void;
}

/** Both units of k0s have it as a condition (iso/rootfs). */
export const holdPath = (runDir: string): string => `${runDir}/apply-open`;

/**
 * Over at once in nearly every case. Else the promise inside is of the wait for a data disk, which ends with everything
 * put back and k0s started, or with the signal.
 */
export async function recoverCutApplies(
  cut: CutApply,
  signal: AbortSignal,
): Promise<{ readonly waiting?: Promise<void> }> {
  const first = await attempt(cut);
  if (first !== "waits") return {};
  const { host, paths, say } = cut;
  const held = await host.files.write(holdPath(paths.runDir), "", { mode: 0o644 });
  if (!held.ok) say(formatError(held.error));
  return { waiting: wait(cut, signal) };
}

async function wait(cut: CutApply, signal: AbortSignal): Promise<void> {
  const { host, paths, say } = cut;
  while (!signal.aborted) {
    await host.clock.sleep(LOOK_MS);
    if (signal.aborted || (await attempt(cut)) === "waits") continue;
    const released = await host.files.remove(holdPath(paths.runDir));
    if (!released.ok) say(formatError(released.error));
    for (const unit of K0S_UNITS) {
      const status = await host.systemd.status(unit);
      if (!status.ok || status.value.loadState === "not-found") continue;
      const started = await host.systemd.start(unit, { noBlock: true });
      if (!started.ok) say(formatError(started.error));
    }
    return;
  }
}

async function recover(cut: CutApply): Promise<Result<void, AppError>> {
  const applies = await recoverApplies(cut);
  return applies.ok ? recoverHandover(cut) : applies;
}

/** Operations stay open while it waits: nothing else is begun on a node that is neither the old one nor the new. */
async function attempt(cut: CutApply): Promise<"over" | "waits"> {
  const { host, state, say } = cut;
  const recovered = state.baseline.get() === undefined ? ok(undefined) : await recover(cut);
  if (!recovered.ok) {
    if (recovered.error.code === NOT_MOUNTED) {
      announce(cut, recovered.error.message);
      return "waits";
    }
    say(formatError(recovered.error));
  }
  if (recovered.ok) await goOnWaiting(cut);
  closeAbandoned(state, host.clock.nowMs(), { isResetting: await isResetting(host, cut.paths) });
  await reconcileDocument(cut);
  return "over";
}

function announce({ host, state, say }: CutApply, message: string): void {
  const atMs = host.clock.nowMs();
  for (const { id, kind, message: before } of state.operations.abandoned()) {
    if ((kind !== "apply" && kind !== "handover") || before === message) continue;
    state.operations.message(id, message, atMs);
    state.events.add({ atMs, kind: "apply-waits", severity: "warning", message });
    say(message);
  }
}
