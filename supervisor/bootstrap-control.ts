/** The other process: whether it may be disturbed, and how it is set going. */
import type { AppError } from "../kit/app-error.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { BootstrapStatus } from "./bootstrap-status.ts";
import { bootstrapStatusPath, parseBootstrapStatus } from "./bootstrap-status.ts";

export const BOOTSTRAP_UNIT = "corium-bootstrap.service";

const SETTLE_MS = 120_000;
const POLL_MS = 500;
/** From the start to the first sign of the process, on a slow machine. */
const BEGIN_MS = 10_000;
const BEGIN_POLL_MS = 100;
/** From its start to its first word: on a slow machine that has just shown its claim code. */
const FIRST_WORD_MS = 60_000;

export interface BootstrapControl {
  state(): Promise<BootstrapStatus["state"]>;
  /** As `state`, but one that has begun and said nothing yet is given time to say whether it waits. */
  settled(): Promise<BootstrapStatus["state"]>;
  read(): Promise<BootstrapStatus | undefined>;
  poke(): Promise<Result<void, AppError>>;
}

export function bootstrapControl(host: Host, paths: Paths): BootstrapControl {
  const read = async (): Promise<BootstrapStatus | undefined> => {
    const text = await host.files.readText(bootstrapStatusPath(paths.runDir), { maxBytes: 65_536 });
    return text.ok ? parseBootstrapStatus(text.value) : undefined;
  };
  const isActivating = async (): Promise<boolean> => {
    const status = await host.systemd.status(BOOTSTRAP_UNIT);
    return status.ok && status.value.activeState === "activating";
  };
  const startAgain = async (): Promise<Result<void, AppError>> => {
    // RemainAfterExit: a start of the active unit would do nothing.
    const stopped = await host.systemd.stop(BOOTSTRAP_UNIT);
    if (!stopped.ok) return stopped;
    // What the one before said would pass for the new one's word: a document could come that it has read past already.
    const forgotten = await host.files.remove(bootstrapStatusPath(paths.runDir));
    if (!forgotten.ok) return forgotten;
    const started = await host.systemd.start(BOOTSTRAP_UNIT, { noBlock: true });
    if (!started.ok) return started;
    const endMs = host.clock.monotonicMs() + BEGIN_MS;
    while (host.clock.monotonicMs() < endMs && !(await isActivating()) && (await read()) === undefined) {
      await host.clock.sleep(BEGIN_POLL_MS);
    }
    return ok(undefined);
  };
  /**
   * It polls for claims and documents while it waits, and is not stopped while it works. But it may have looked just
   * before there was anything to see, and be on its way out: idle, or with the failure of the document before.
   */
  const startUnlessSeen = async (): Promise<void> => {
    const endMs = host.clock.monotonicMs() + SETTLE_MS;
    let isFailing = false;
    while (host.clock.monotonicMs() < endMs) {
      const isRunning = await isActivating();
      const status = await read();
      if (!isRunning) {
        if (status === undefined || status.state === "idle" || isFailing) await startAgain();
        return;
      }
      if (status?.state === "waiting" || status?.state === "running") return;
      isFailing ||= status?.state === "failed";
      await host.clock.sleep(POLL_MS);
    }
  };
  const state: BootstrapControl["state"] = async () => {
    const [status, isRunning] = await Promise.all([read(), isActivating()]);
    // It has begun and not said anything yet: that is no time to disturb it.
    if (status === undefined) return isRunning ? "running" : "idle";
    const isStale = !isRunning && (status.state === "running" || status.state === "waiting");
    return isStale ? "failed" : status.state;
  };
  return {
    read,
    state,
    async settled() {
      const endMs = host.clock.monotonicMs() + FIRST_WORD_MS;
      while (host.clock.monotonicMs() < endMs && (await read()) === undefined && (await isActivating())) {
        await host.clock.sleep(POLL_MS);
      }
      return state();
    },
    async poke() {
      if (!(await isActivating())) return startAgain();
      void startUnlessSeen();
      return ok(undefined);
    },
  };
}
