/** The other process: whether it may be disturbed, and how it is set going. */
import type { AppError } from "../kit/app-error.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { BootstrapStatus } from "./bootstrap-status.ts";
import { bootstrapStatusPath, parseBootstrapStatus } from "./bootstrap-status.ts";

export const BOOTSTRAP_UNIT = "corium-bootstrap.service";

export interface BootstrapControl {
  state(): Promise<BootstrapStatus["state"]>;
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
  return {
    read,
    async state() {
      const [status, isRunning] = await Promise.all([read(), isActivating()]);
      // It has begun and not said anything yet: that is no time to disturb it.
      if (status === undefined) return isRunning ? "running" : "idle";
      const isStale = !isRunning && (status.state === "running" || status.state === "waiting");
      return isStale ? "failed" : status.state;
    },
    async poke() {
      // It polls for claims and documents while it waits, and is not stopped while it works.
      if (await isActivating()) return ok(undefined);
      // RemainAfterExit: a start of the active unit would do nothing.
      const stopped = await host.systemd.stop(BOOTSTRAP_UNIT);
      if (!stopped.ok) return stopped;
      return host.systemd.start(BOOTSTRAP_UNIT, { noBlock: true });
    },
  };
}
