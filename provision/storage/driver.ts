import type { AppError } from "../../kit/app-error.ts";
import type { Result } from "../../kit/result.ts";
import type { Executors, StepBase, StepContext, StepExecutor } from "../../kit/step.ts";
import type { StepDevice } from "../../disks/model.ts";
import { confirmDevices, diskExecutors } from "../../disks/steps/driver.ts";
import { raidExecutors } from "../../raid/driver.ts";
import type { StorageStep } from "../storage.ts";

/** Before an array is made or started: behind each path is still the disk that was decided about. */
function guarded<S extends StepBase>(
  executor: StepExecutor<S>,
  devicesOf: (step: S) => readonly StepDevice[],
): StepExecutor<S> {
  return {
    argv: (step) => executor.argv(step),
    check: (step, context) => executor.check(step, context),
    async run(step: S, context: StepContext): Promise<Result<void, AppError>> {
      const confirmed = await confirmDevices(context.host, devicesOf(step));
      return confirmed.ok ? executor.run(step, context) : confirmed;
    },
  };
}

export const storageExecutors: Executors<StorageStep> = {
  ...diskExecutors,
  ...raidExecutors,
  "raid:create": guarded(raidExecutors["raid:create"], (step) => [...step.members, ...step.spares]),
  "raid:assemble": guarded(raidExecutors["raid:assemble"], (step) => step.members),
};
