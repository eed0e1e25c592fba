/** Takes away a mount that an earlier document had. */
import type { AppError } from "../../../kit/app-error.ts";
import { fail } from "../../../kit/app-error.ts";
import type { Host } from "../../../kit/ports.ts";
import type { Result } from "../../../kit/result.ts";
import { ok } from "../../../kit/result.ts";
import type { StepContext, StepExecutor } from "../../../kit/step.ts";
import { findMounts } from "../../driver.ts";
import type { DiskUnmountStep } from "../../model.ts";

export const unmountExecutor: StepExecutor<DiskUnmountStep> = {
  argv: ({ unit, point }) => [
    ["systemctl", "stop", unit],
    ["chattr", "-i", point],
  ],
  check: async ({ point, unitPath }, { host }) => {
    if (await isMounted(host, point)) return ok("todo");
    const unit = await host.files.stat(unitPath);
    return unit.ok ? ok(unit.value === null ? "done" : "todo") : unit;
  },
  run: (step, context) => unmount(step, context),
};

const isMounted = async (host: Host, point: string): Promise<boolean> =>
  (await findMounts(host)).some((mount) => mount.point === point);

async function unmount(
  { unit, point, files, unitPath }: DiskUnmountStep,
  { host, report }: StepContext,
): Promise<Result<void, AppError>> {
  if (await isMounted(host, point)) {
    report(`unmounting ${point}`);
    const stopped = await host.systemd.stop(unit);
    if (!stopped.ok || (await isMounted(host, point)))
      return fail("mount-busy", `${point} is still mounted`, {
        ...(stopped.ok ? {} : { cause: stopped.error }),
        hint: "something uses it: restart the machine, and it goes on by itself",
      });
  }
  // Where nothing is mounted any more, nobody has to be kept from writing.
  await host.exec({ argv: ["chattr", "-i", point] });
  // The unit goes last: by it the rest is found again after a power cut.
  for (const path of [...files, unitPath]) {
    const removed = await host.files.remove(path);
    if (!removed.ok) return removed;
  }
  return host.systemd.daemonReload();
}
