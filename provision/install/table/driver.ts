/** The partition table, whose last name says whether the installation is complete. */
import type { AppError } from "../../../kit/app-error.ts";
import type { ExecResult, Host } from "../../../kit/ports.ts";
import type { Result } from "../../../kit/result.ts";
import type { StepContext, StepExecutor, StepState } from "../../../kit/step.ts";
import type { BootStep, PartitionStep } from "../model.ts";
import { confirmDevices } from "../../../disks/steps/driver.ts";
import { BOOT_ENV_PATH, decodeBootEnv, newBootEnv } from "../../../iso/bootenv.ts";
import { writeEnv } from "../../../iso/esp.ts";
import { ok } from "../../../kit/result.ts";
import { ddStdinArgv, minuteMs, partitionPath, settle, tool, whenMounted } from "../block/driver.ts";
import { installingMark } from "../mark.ts";
import { installingScript, isTable, STATE_NAME, STATE_NUMBER, stateName } from "../table.ts";

const sfdiskArgv = (path: string): readonly string[] => [
  "sfdisk",
  "--wipe",
  "always",
  "--wipe-partitions",
  "always",
  "--lock",
  path,
];

export const partitionExecutor: StepExecutor<PartitionStep> = {
  argv: ({ device }) => [sfdiskArgv(device.path)],
  check: checkTable,
  run: writeTable,
};

export const bootExecutor: StepExecutor<BootStep> = {
  argv: ({ disks }) => disks.map(({ device }) => relabelArgv(device.path)),
  check: checkBootable,
  run: makeBootable,
};

async function checkTable(
  { device, layout }: PartitionStep,
  { host }: StepContext,
): Promise<Result<StepState, AppError>> {
  const dump = await host.exec({ argv: ["sfdisk", "--json", device.path], timeoutMs: minuteMs });
  return ok(dump.exitCode === 0 && isTable(dump.stdout, layout) ? "done" : "todo");
}

async function writeTable(step: PartitionStep, { host }: StepContext): Promise<Result<void, AppError>> {
  const { device, layout } = step;
  const confirmed = await confirmDevices(host, [device]);
  if (!confirmed.ok) return confirmed;
  const marked = await tool(host, ddStdinArgv(device.path), {
    stdin: installingMark(layout.diskGuid.replaceAll("-", "")),
  });
  if (!marked.ok) return marked;
  const made = await tool(host, sfdiskArgv(device.path), { stdin: installingScript(layout) });
  if (!made.ok) return made;
  return settle(host, device.path);
}

// --- the last act ---

const relabelArgv = (path: string): readonly string[] => [
  "sfdisk",
  "--part-label",
  path,
  String(STATE_NUMBER),
  STATE_NAME,
];

/** Partitions that a mount or an array holds can't be read in anew; of the name the kernel need not hear. */
const quietly = ([program = "", ...rest]: readonly string[]): readonly string[] => [
  program,
  "--no-reread",
  "--no-tell-kernel",
  ...rest,
];

async function checkBootable(step: BootStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  for (const { device, espPartUuid } of step.disks) {
    const dump = await host.exec({ argv: ["sfdisk", "--json", device.path], timeoutMs: minuteMs });
    if (dump.exitCode !== 0 || !isComplete(dump)) return ok("todo");
    const seen = await whenMounted(host, partitionPath(espPartUuid), "vfat", async (mounted) => {
      // It may be there and empty: of a file on FAT the name is durable before its size is.
      const bytes = await host.files.read(`${mounted}/${BOOT_ENV_PATH}`);
      const env = bytes.ok ? decodeBootEnv(bytes.value) : bytes;
      return env.ok && env.value.id === step.installation;
    });
    if (!seen.ok || seen.value === "todo") return seen;
  }
  return ok("done");
}

/** Named, and in both copies of the table: power lost while it was renamed leaves the old primary beside the new backup. */
const isComplete = (dump: ExecResult): boolean =>
  stateName(dump.stdout) === STATE_NAME && !/GPT table is corrupt/.test(dump.stderr);

/**
 * From the environment on the medium's own GRUB prefers this disk; its name says complete only after that. Of two
 * disks neither is complete before both can be booted.
 */
async function makeBootable(step: BootStep, { host }: StepContext): Promise<Result<void, AppError>> {
  for (const { espPartUuid } of step.disks) {
    const written = await writeEnv(host, partitionPath(espPartUuid), newBootEnv(step.installation));
    if (!written.ok) return written;
  }
  for (const { device } of step.disks) {
    const confirmed = await confirmDevices(host, [device]);
    if (!confirmed.ok) return confirmed;
    const named = await tool(
      host,
      step.disks.length === 1 ? relabelArgv(device.path) : quietly(relabelArgv(device.path)),
    );
    if (!named.ok) return named;
    const settled = await settle(host, device.path);
    if (!settled.ok) return settled;
  }
  return ok(undefined);
}

/**
 * Power may have been lost between the two halves of the last act; the disk booted all the same. Its name is made
 * right then, so that no installer takes it for half-made. The kernel keeps its own copy of the table meanwhile.
 */
export async function finishTable(
  host: Host,
  statePartition: string,
  complete: () => Promise<Result<void, AppError>> = async () => ok(undefined),
): Promise<Result<boolean, AppError>> {
  const argv = ["lsblk", "-ndo", "PKNAME", statePartition];
  const parent = (await host.exec({ argv, timeoutMs: minuteMs })).stdout.trim();
  if (!/^[\w!.-]+$/.test(parent)) return ok(false);
  const dump = await host.exec({ argv: ["sfdisk", "--json", `/dev/${parent}`], timeoutMs: minuteMs });
  if (dump.exitCode !== 0 || isComplete(dump)) return ok(false);
  // What comes before the name: an unusable boot environment would stay one for ever.
  const completed = await complete();
  if (!completed.ok) return completed;
  const named = await tool(host, quietly(relabelArgv(`/dev/${parent}`)));
  return named.ok ? ok(true) : named;
}
