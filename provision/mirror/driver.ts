/** Carries out the replacement of one disk of a mirrored system that runs. */
import type { AppError } from "../../kit/app-error.ts";
import { fail } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import type { Executors, StepContext, StepState } from "../../kit/step.ts";
import { diskExecutors } from "../../disks/steps/driver.ts";
import { withEspLock } from "../../iso/esp.ts";
import { readMirror } from "../../iso/mirror/driver.ts";
import { copyLoader, isBootEqual } from "../../iso/mirror/loader.ts";
import type { MirrorDisk } from "../../iso/mirror/model.ts";
import { arrayPath } from "../../raid/argv.ts";
import { parseDetailExport, parseExamineUuid } from "../../raid/parse.ts";
import { minuteMs, partitionPath, tool } from "../install/block/driver.ts";
import { finishTable, partitionExecutor } from "../install/table/driver.ts";
import type { MirrorJoinStep, MirrorRebuildStep, ReplacementStep } from "./model.ts";

const POLL_MS = 5_000;

export const systemReplaceExecutors: Executors<ReplacementStep> = {
  "disk:wipe": diskExecutors["disk:wipe"],
  "install:partition": partitionExecutor,
  "mirror:join": {
    argv: ({ members }) => members.map(({ name, partUuid }) => addArgv(`/dev/md/${name}`, partUuid)),
    check: checkJoined,
    run: join,
  },
  "mirror:rebuild": { argv: () => [], check: checkRebuilt, run: rebuild },
};

/** `array`: a short name of it. mdadm 4.4 changes nothing that it is given as `/dev/disk/by-id/md-uuid-…`. */
const addArgv = (array: string, partUuid: string): readonly string[] => [
  "mdadm",
  array,
  "--add",
  partitionPath(partUuid),
];

async function isMember(host: Host, arrayUuid: string, partUuid: string): Promise<boolean> {
  const argv = ["mdadm", "--detail", "--export", arrayPath(arrayUuid)];
  const detail = await host.exec({ argv, timeoutMs: minuteMs });
  const real = await host.files.realpath(partitionPath(partUuid));
  return (
    detail.exitCode === 0 && real.ok && parseDetailExport(detail.stdout).members.some(({ path }) => path === real.value)
  );
}

async function checkJoined({ members }: MirrorJoinStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  for (const { arrayUuid, partUuid } of members) if (!(await isMember(host, arrayUuid, partUuid))) return ok("todo");
  return ok("done");
}

async function join({ members }: MirrorJoinStep, { host }: StepContext): Promise<Result<void, AppError>> {
  for (const { name, arrayUuid, partUuid } of members) {
    if (await isMember(host, arrayUuid, partUuid)) continue;
    const running = await host.files.realpath(arrayPath(arrayUuid));
    if (!running.ok) return fail("mirror", `array ${name} does not run`, { cause: running.error });
    const array = running.value;
    // Whoever is gone or broken leaves its place; there may be nobody, and that is no failure.
    for (const who of [
      ["--fail", "detached", "--remove", "detached"],
      ["--remove", "failed"],
    ])
      await host.exec({ argv: ["mdadm", array, ...who], timeoutMs: minuteMs });
    // Nothing is copied to a member of an array that nobody wrote to yet; one that is writable says so, and is no failure.
    await host.exec({ argv: ["mdadm", "--readwrite", array], timeoutMs: minuteMs });
    const path = partitionPath(partUuid);
    const examined = await host.exec({ argv: ["mdadm", "--examine", "--export", path], timeoutMs: minuteMs });
    // Power was lost after it was added: mdadm makes no new member of one whose superblock is still there.
    if (parseExamineUuid(examined.stdout) !== undefined) {
      const cleared = await tool(host, ["mdadm", "--zero-superblock", path]);
      if (!cleared.ok) return cleared;
    }
    const added = await tool(host, addArgv(array, partUuid));
    if (!added.ok) return fail("mirror", `the disk can't become part of array ${name}`, { cause: added.error });
  }
  const state = members.find(({ name }) => name === "corium-state");
  const named = state === undefined ? ok(false) : await finishTable(host, partitionPath(state.partUuid));
  return named.ok ? ok(undefined) : named;
}

interface Pair {
  readonly source: MirrorDisk;
  readonly target: MirrorDisk;
}

async function findPair(host: Host, step: MirrorRebuildStep): Promise<Result<Pair, AppError>> {
  const mirror = await readMirror(host, step.installation);
  if (!mirror.ok) return mirror;
  const { disks } = mirror.value;
  const target = disks.find(({ path }) => path === step.device.path);
  const source = disks.find((disk) => disk !== target && disk.isInSync);
  if (target === undefined) return fail("disk-gone", `${step.device.path} is not there any more`);
  if (source === undefined) return fail("mirror", "no other disk of the system has everything");
  return ok({ source, target });
}

async function checkRebuilt(step: MirrorRebuildStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  const pair = await findPair(host, step);
  if (!pair.ok) return pair;
  const { source, target } = pair.value;
  if (!target.isInSync) return ok("todo");
  return withEspLock(host, async () => ok((await isBootEqual(host, source, target)) ? "done" : "todo"));
}

async function rebuild(step: MirrorRebuildStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  for (;;) {
    const pair = await findPair(host, step);
    if (!pair.ok) return pair;
    const { source, target } = pair.value;
    if (target.lacking.length > 0) {
      return fail("member-failed", `${target.path} is no longer part of ${target.lacking.join(", ")}`, {
        hint: "the system runs on the other disk; look at `cctl status`, and take another disk",
      });
    }
    if (target.isInSync) {
      const copied = await withEspLock(host, () => copyLoader(host, source, target));
      return copied.ok ? ok(undefined) : copied;
    }
    report(`copying the system to ${target.path}`);
    await host.clock.sleep(POLL_MS);
  }
}
