/** Carries out the steps that put one disk in the place of another. The array stays mounted throughout. */
import type { AppError } from "../../kit/app-error.ts";
import { appError, fail } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { err, ok } from "../../kit/result.ts";
import type { Executors, StepContext, StepState } from "../../kit/step.ts";
import { readRunning } from "../driver.ts";
import type { RaidAddStep, RaidRebuildStep, RaidReplaceStep, RaidRetireStep } from "../model.ts";
import { parseExamineUuid } from "../parse.ts";
import type { RunningArray } from "../report.ts";

const POLL_MS = 2_000;
const RETIRE_ATTEMPTS = 10;

export const replaceExecutors: Executors<RaidReplaceStep> = {
  "raid:add": {
    argv: (step) => [["mdadm", `/dev/md/${step.name}`, "--add", step.member.path]],
    check: (step, { host }) => checkAdded(step, host),
    run: (step, { host }) => add(step, host),
  },
  "raid:rebuild": {
    argv: ({ name, leaving, member }) =>
      leaving === undefined ? [] : [["mdadm", `/dev/md/${name}`, "--replace", leaving.path, "--with", member.path]],
    check: (step, { host }) => checkRebuilt(step, host),
    run: (step, context) => rebuild(step, context),
  },
  "raid:retire": {
    argv: (step) => [["mdadm", "--zero-superblock", step.member.path]],
    check: (step, { host }) => checkRetired(step, host),
    run: (step, { host }) => retire(step, host),
  },
};

async function find(host: Host, step: RaidReplaceStep): Promise<Result<RunningArray, AppError>> {
  const found = (await readRunning(host)).find(({ detail, mdstat }) => detail.uuid === step.uuid && mdstat.isActive);
  return found === undefined ? fail("array-gone", `array ${step.name} does not run any more`) : ok(found);
}

type Membership = "absent" | "failed" | "spare" | "rebuilding" | "active";

function membership({ mdstat, slots, detached }: RunningArray, path: string): Membership {
  const name = path.replace("/dev/", "");
  const member = mdstat.members.find(({ device }) => device === name);
  if (member === undefined) return "absent";
  const seen = slots?.get(name);
  const flags = seen?.state.split(",") ?? [];
  if (member.isFailed || flags.includes("faulty") || detached.includes(name)) return "failed";
  if (flags.includes("in_sync")) return "active";
  return seen === undefined || seen.slot === "none" ? "spare" : "rebuilding";
}

async function checkAdded(step: RaidAddStep, host: Host): Promise<Result<StepState, AppError>> {
  const array = await find(host, step);
  if (!array.ok) return array;
  const now = membership(array.value, step.member.path);
  return ok(now === "absent" || now === "failed" ? "todo" : "done");
}

async function add(step: RaidAddStep, host: Host): Promise<Result<void, AppError>> {
  const array = await find(host, step);
  if (!array.ok) return array;
  const path = `/dev/${array.value.mdstat.device}`;
  const { member } = step;
  // Members that are gone or broken leave their places; there may be none, and that is no failure.
  for (const who of ["detached", "failed"])
    await mdadm(host, [path, ...(who === "detached" ? ["--fail", who] : []), "--remove", who]);
  if (array.value.mdstat.isAutoReadOnly) {
    const writable = await mdadm(host, ["--readwrite", path]);
    if (!writable.ok) return writable;
  }
  // Power was lost after the superblock was written: mdadm would take it for a member that it can't take back.
  if ((await ownerOf(host, member.path)) === step.uuid) {
    const cleared = await mdadm(host, ["--zero-superblock", member.path]);
    if (!cleared.ok) return cleared;
  }
  return mdadm(host, [path, "--add", member.path]);
}

async function checkRebuilt(step: RaidRebuildStep, host: Host): Promise<Result<StepState, AppError>> {
  const array = await find(host, step);
  if (!array.ok) return array;
  return ok(isRebuilt(step, array.value) ? "done" : "todo");
}

function isRebuilt({ member, leaving }: RaidRebuildStep, array: RunningArray): boolean {
  const now = membership(array, member.path);
  const isGone = leaving === undefined || membership(array, leaving.path) === "absent";
  const { expected, active } = array.mdstat;
  // A spare is what it stays when nobody is missing.
  const isIdleSpare =
    now === "spare" && expected !== undefined && expected === active && array.mdstat.action === undefined;
  return isGone && (now === "active" || isIdleSpare);
}

async function rebuild(step: RaidRebuildStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  const { name, member, leaving } = step;
  for (;;) {
    const array = await find(host, step);
    if (!array.ok) return array;
    const path = `/dev/${array.value.mdstat.device}`;
    const now = membership(array.value, member.path);
    if (now === "absent" || now === "failed") {
      const hint = "the array is as it was before, or degraded: look at `cctl status`, and take another disk";
      return fail("member-failed", `the new disk ${member.path} of array ${name} is ${now}`, { hint });
    }
    if (leaving !== undefined) {
      const stands = membership(array.value, leaving.path);
      const settled = await dismiss(host, path, { member, leaving, now, stands });
      if (!settled.ok) return settled;
    }
    if (isRebuilt(step, array.value)) return ok(undefined);
    const percent = array.value.mdstat.progressPercent;
    report(`array ${name} is being rebuilt${percent === undefined ? "" : `: ${Math.floor(percent)} %`}`);
    await host.clock.sleep(POLL_MS);
  }
}

/** The old disk serves until the new one has all that it has: no moment without its redundancy. */
async function dismiss(
  host: Host,
  path: string,
  at: {
    readonly member: { readonly path: string };
    readonly leaving: { readonly path: string };
    readonly now: Membership;
    readonly stands: Membership;
  },
): Promise<Result<void, AppError>> {
  const { member, leaving, now, stands } = at;
  if (stands === "active" && now === "spare")
    return mdadm(host, [path, "--replace", leaving.path, "--with", member.path]);
  if (stands === "failed" || stands === "spare") return mdadm(host, [path, "--remove", leaving.path]);
  return ok(undefined);
}

/** A disk that has just left an array is probed by udev, and mdadm opens it exclusively. */
async function retire(step: RaidRetireStep, host: Host): Promise<Result<void, AppError>> {
  for (let attempt = 1; ; attempt += 1) {
    const cleared = await mdadm(host, ["--zero-superblock", step.member.path]);
    if (cleared.ok || attempt === RETIRE_ATTEMPTS) return cleared;
    await host.clock.sleep(POLL_MS);
  }
}

async function checkRetired(step: RaidRetireStep, host: Host): Promise<Result<StepState, AppError>> {
  return ok((await ownerOf(host, step.member.path)) === step.uuid ? "todo" : "done");
}

async function ownerOf(host: Host, path: string): Promise<string | undefined> {
  const examined = await host.exec({ argv: ["mdadm", "--examine", "--export", path] });
  return examined.exitCode === 0 ? parseExamineUuid(examined.stdout) : undefined;
}

async function mdadm(host: Host, argv: readonly string[]): Promise<Result<void, AppError>> {
  const ran = await host.exec({ argv: ["mdadm", ...argv], timeoutMs: 120_000 });
  if (ran.exitCode === 0) return ok(undefined);
  const details = ran.stderr.split("\n").filter((line) => line.trim() !== "");
  return err(appError("mdadm", `mdadm ${argv.join(" ")} failed`, { details: details.slice(-3) }));
}
