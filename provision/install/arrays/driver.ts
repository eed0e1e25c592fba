/** The arrays of a mirrored system. They identify themselves: a cut in between leaves members of a UUID that is known. */
import type { AppError } from "../../../kit/app-error.ts";
import type { Host } from "../../../kit/ports.ts";
import type { Result } from "../../../kit/result.ts";
import type { StepContext, StepExecutor, StepState } from "../../../kit/step.ts";
import type { ArraysStep, SystemArray } from "../model.ts";
import { arrayPath } from "../../../raid/argv.ts";
import { parseDetailExport, parseExamineUuid } from "../../../raid/parse.ts";
import { ok } from "../../../kit/result.ts";
import { minuteMs, partitionPath, settle, tool } from "../block/driver.ts";

export const arraysExecutor: StepExecutor<ArraysStep> = {
  argv: ({ arrays }) => arrays.flatMap((array) => createPrograms(array)),
  check: async ({ arrays }, { host }) => {
    for (const array of arrays) if (!(await isRunning(host, array))) return ok<StepState>("todo");
    return ok<StepState>("done");
  },
  run: makeArrays,
};

/**
 * Metadata 1.0 lies at the end: firmware, GRUB and our own eyes find the filesystem where a bare partition has it.
 * `--assume-clean`: all that is ever read was written through the array, to both disks alike; a copy of terabytes that
 * nobody wrote would leave the second disk unable to stand in for hours (docs/adr/0203-mirrored-system.md).
 */
const createArgv = ({ name, uuid, members }: SystemArray): readonly string[] => [
  "mdadm",
  "--create",
  `/dev/md/${name}`,
  "--metadata=1.0",
  "--homehost=any",
  `--name=${name}`,
  `--uuid=${uuid}`,
  "--level=1",
  `--raid-devices=${members.length}`,
  "--bitmap=internal",
  "--assume-clean",
  "--run",
  ...members.map(partitionPath),
];

const assembleArgv = ({ name, uuid, members }: SystemArray): readonly string[] => [
  "mdadm",
  "--assemble",
  `/dev/md/${name}`,
  "--config=none",
  `--uuid=${uuid}`,
  ...members.map(partitionPath),
];

/** With both disks: an installation is not begun on one. */
async function isRunning(host: Host, { uuid, members }: SystemArray): Promise<boolean> {
  const detail = await host.exec({ argv: ["mdadm", "--detail", "--export", arrayPath(uuid)], timeoutMs: minuteMs });
  if (detail.exitCode !== 0) return false;
  const found = parseDetailExport(detail.stdout);
  return found.uuid === uuid && found.members.length === members.length;
}

async function isMember(host: Host, partUuid: string, uuid: string): Promise<boolean> {
  const argv = ["mdadm", "--examine", "--export", partitionPath(partUuid)];
  const examined = await host.exec({ argv, timeoutMs: minuteMs });
  return examined.exitCode === 0 && parseExamineUuid(examined.stdout) === uuid;
}

async function makeArrays({ arrays }: ArraysStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  for (const array of arrays) {
    if (await isRunning(host, array)) continue;
    report(`making array ${array.name}`);
    const members = await Promise.all(array.members.map((member) => isMember(host, member, array.uuid)));
    const path = `/dev/md/${array.name}`;
    const programs = members.every(Boolean) ? [assembleArgv(array)] : createPrograms(array);
    for (const argv of programs) {
      const done = await tool(host, argv, { timeoutMs: 5 * minuteMs });
      if (!done.ok) return done;
    }
    const settled = await settle(host, path);
    if (!settled.ok) return settled;
  }
  return ok(undefined);
}

/**
 * Emptied before they are members: what an earlier attempt left on one of the disks must not pass for content of both,
 * and so no later step finds itself done.
 */
const createPrograms = (array: SystemArray): readonly (readonly string[])[] => [
  ...array.members.map((member) => [
    "dd",
    "if=/dev/zero",
    `of=${partitionPath(member)}`,
    "bs=1M",
    "count=1",
    "conv=notrunc,fsync",
    "status=none",
  ]),
  createArgv(array),
];
