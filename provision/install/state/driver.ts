/** The filesystems of state and data. */
import type { AppError } from "../../../kit/app-error.ts";
import type { Host } from "../../../kit/ports.ts";
import type { Result } from "../../../kit/result.ts";
import type { StepContext, StepExecutor, StepState } from "../../../kit/step.ts";
import type { StateFilesystem, StateStep } from "../model.ts";
import { ok } from "../../../kit/result.ts";
import { minuteMs, tool } from "../block/driver.ts";

export const stateExecutor: StepExecutor<StateStep> = {
  argv: ({ filesystems }) => filesystems.map(stateMkfs),
  check: checkFilesystems,
  run: makeFilesystems,
};

const stateMkfs = ({ path, uuid }: StateFilesystem): readonly string[] => ["mkfs.ext4", "-q", "-F", "-U", uuid, path];

/** The label is set last: a filesystem that has it was made completely. */
async function hasFilesystem(host: Host, { path, uuid, label }: StateFilesystem): Promise<boolean> {
  const probe = await host.exec({ argv: ["blkid", "-p", "-o", "export", path], timeoutMs: minuteMs });
  const lines = probe.stdout.split("\n");
  return [`UUID=${uuid}`, `LABEL=${label}`, "TYPE=ext4"].every((line) => lines.includes(line));
}

async function checkFilesystems(
  { filesystems }: StateStep,
  { host }: StepContext,
): Promise<Result<StepState, AppError>> {
  for (const filesystem of filesystems) {
    if (!(await hasFilesystem(host, filesystem))) return ok("todo");
  }
  return ok("done");
}

async function makeFilesystems({ filesystems }: StateStep, { host }: StepContext): Promise<Result<void, AppError>> {
  for (const filesystem of filesystems) {
    if (await hasFilesystem(host, filesystem)) continue;
    const { path, label } = filesystem;
    for (const argv of [stateMkfs(filesystem), ["e2label", path, label], ["blockdev", "--flushbufs", path]]) {
      const done = await tool(host, argv, { timeoutMs: 30 * minuteMs });
      if (!done.ok) return done;
    }
  }
  return ok(undefined);
}
