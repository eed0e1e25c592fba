/** Writes Corium to a disk. Each check reads the disk, not the page cache: buffers are flushed after each write. */
import type { AppError } from "../../kit/app-error.ts";
import type { Result } from "../../kit/result.ts";
import type { Executors } from "../../kit/step.ts";
import type { DiskWipeStep } from "../../disks/model.ts";
import type { DocumentStep, InstallStep } from "./model.ts";
import { ok } from "../../kit/result.ts";
import { arraysExecutor } from "./arrays/driver.ts";
import { withMount } from "./block/driver.ts";
import { loaderExecutor } from "./loader/driver.ts";
import { slotExecutor } from "./slot/driver.ts";
import { stateExecutor } from "./state/driver.ts";
import { bootExecutor, partitionExecutor } from "./table/driver.ts";

const imageBootFiles = "/usr/share/corium/boot";

/** What a live system knows and the disk must know after it: written below `root`, the mounted state partition. */
export interface CarryOver {
  /** Absent until it was handed over completely. */
  isComplete(root: string, step: DocumentStep): Promise<Result<boolean, AppError>>;
  copy(root: string, step: DocumentStep): Promise<Result<void, AppError>>;
}

type OwnSteps = Exclude<InstallStep, DiskWipeStep>;

export function installExecutors(carryOver: CarryOver, bootFiles = imageBootFiles): Executors<OwnSteps> {
  return {
    "install:partition": partitionExecutor,
    "install:arrays": arraysExecutor,
    "install:slot": slotExecutor,
    "install:loader": loaderExecutor(bootFiles),
    "install:state": stateExecutor,
    "install:document": {
      argv: () => [],
      check: async (step, { host }) =>
        withMount(host, step.statePath, "ext4", "ro", async (root) => {
          const complete = await carryOver.isComplete(root, step);
          return complete.ok ? ok(complete.value ? ("done" as const) : ("todo" as const)) : complete;
        }),
      run: async (step, { host }) =>
        withMount(host, step.statePath, "ext4", "rw", (root) => carryOver.copy(root, step)),
    },
    "install:boot": bootExecutor,
  };
}
