import type { AppError } from "../kit/app-error.ts";
import { appError, fail } from "../kit/app-error.ts";
import type { ExecResult, Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";
import type { Executors, StepContext, StepState } from "../kit/step.ts";
import { arrayPath, assembleArgv, createArgv } from "./argv.ts";
import type { RaidAssembleStep, RaidConfigStep, RaidCreateStep, RaidStep } from "./model.ts";
import { parseDetailExport, parseExamineUuid, parseMdstat } from "./parse.ts";
import type { ArrayReport, Identities, RunningArray, WantedArray } from "./report.ts";
import { reportArrays } from "./report.ts";

const appearTimeoutMs = 30_000;

export const raidExecutors: Executors<RaidStep> = {
  "raid:create": {
    argv: (step) => [createArgv(step)],
    check: (step, { host }) => checkRunning(host, step.uuid),
    run: (step, context) => create(step, context),
  },
  "raid:assemble": {
    argv: (step) => [
      assembleArgv(
        step.name,
        step.uuid,
        step.members.map((member) => member.path),
      ),
    ],
    check: (step, { host }) => checkRunning(host, step.uuid),
    run: (step, context) => assemble(step, context),
  },
  "raid:config": {
    argv: () => [],
    check: (step, { host }) => checkConfig(step, host),
    run: (step, { host }) => writeConfig(step, host),
  },
};

/** Every assembled array, and those of ours that are not. */
export async function readArrays(
  host: Host,
  wanted: readonly WantedArray[],
  identities?: Identities,
): Promise<readonly ArrayReport[]> {
  return reportArrays(wanted, await readRunning(host), identities);
}

export async function readRunning(host: Host): Promise<readonly RunningArray[]> {
  // Without the md module there is no such file, and no array.
  const mdstat = await host.files.readText("/proc/mdstat");
  if (!mdstat.ok) return [];
  return Promise.all(
    parseMdstat(mdstat.value).map(async (array): Promise<RunningArray> => {
      const detail = await host.exec({ argv: ["mdadm", "--detail", "--export", `/dev/${array.device}`] });
      const state = await host.files.readText(`/sys/block/${array.device}/md/array_state`);
      const detached: string[] = [];
      const slots = new Map<string, { readonly state: string; readonly slot: string }>();
      for (const member of array.members) {
        const node = await host.files.stat(`/sys/class/block/${member.device}`);
        if (node.ok && node.value === null) detached.push(member.device);
        const folder = `/sys/block/${array.device}/md/dev-${member.device}`;
        const [flags, slot] = [
          await host.files.readText(`${folder}/state`),
          await host.files.readText(`${folder}/slot`),
        ];
        if (flags.ok && slot.ok) slots.set(member.device, { state: flags.value.trim(), slot: slot.value.trim() });
      }
      return {
        mdstat: array,
        detail: parseDetailExport(detail.exitCode === 0 ? detail.stdout : ""),
        detached,
        slots,
        ...(state.ok ? { arrayState: state.value.trim() } : {}),
      };
    }),
  );
}

/** Done: it runs under this UUID, and udev has made the name by which everything else finds it. */
async function checkRunning(host: Host, uuid: string): Promise<Result<StepState, AppError>> {
  const found = (await readRunning(host)).find((each) => each.detail.uuid === uuid);
  if (found === undefined || !found.mdstat.isActive) return ok("todo");
  return ok((await hasLink(host, uuid)) ? "done" : "todo");
}

async function hasLink(host: Host, uuid: string): Promise<boolean> {
  const stat = await host.files.stat(arrayPath(uuid));
  return stat.ok && stat.value !== null;
}

async function create(step: RaidCreateStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  const everyone = [...step.members, ...step.spares];
  const stopped = await stopInactive(host, step.uuid);
  if (!stopped.ok) return stopped;
  if ((await isRunning(host, step.uuid)) === false) {
    // Power may have been lost after mdadm wrote all superblocks: then the array is there and is only started.
    const owners = await Promise.all(everyone.map((member) => readOwner(host, member.path)));
    const argv = owners.every((uuid) => uuid === step.uuid)
      ? assembleArgv(
          step.name,
          step.uuid,
          everyone.map((member) => member.path),
        )
      : createArgv(step);
    const ran = await host.exec({ argv, timeoutMs: 5 * 60_000 });
    if (ran.exitCode !== 0) return err(failed(`array ${step.name} could not be created`, ran));
  }
  return waitForLink(host, step.uuid, report);
}

async function assemble(step: RaidAssembleStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  const stopped = await stopInactive(host, step.uuid);
  if (!stopped.ok) return stopped;
  if ((await isRunning(host, step.uuid)) === false) {
    const argv = assembleArgv(
      step.name,
      step.uuid,
      step.members.map((member) => member.path),
    );
    const ran = await host.exec({ argv, timeoutMs: 120_000 });
    if (ran.exitCode !== 0) return err(failed(`array ${step.name} could not be started`, ran));
  }
  return waitForLink(host, step.uuid, report);
}

async function isRunning(host: Host, uuid: string): Promise<boolean> {
  return (await readRunning(host)).some((each) => each.detail.uuid === uuid && each.mdstat.isActive);
}

/** An incomplete array that was left inactive holds its members, so that nothing else can be made of them. */
async function stopInactive(host: Host, uuid: string): Promise<Result<void, AppError>> {
  for (const { mdstat, detail } of await readRunning(host)) {
    if (mdstat.isActive) continue;
    // An inactive array does not always tell its UUID; its members do.
    const owners =
      detail.uuid === undefined
        ? await Promise.all(mdstat.members.map((member) => readOwner(host, `/dev/${member.device}`)))
        : [detail.uuid];
    if (!owners.includes(uuid)) continue;
    const ran = await host.exec({ argv: ["mdadm", "--stop", `/dev/${mdstat.device}`], timeoutMs: 60_000 });
    if (ran.exitCode !== 0) return err(failed(`incomplete array ${mdstat.device} could not be stopped`, ran));
  }
  return ok(undefined);
}

async function readOwner(host: Host, path: string): Promise<string | undefined> {
  const examined = await host.exec({ argv: ["mdadm", "--examine", "--export", path] });
  return examined.exitCode === 0 ? parseExamineUuid(examined.stdout) : undefined;
}

async function waitForLink(host: Host, uuid: string, report: StepContext["report"]): Promise<Result<void, AppError>> {
  const until = host.clock.monotonicMs() + appearTimeoutMs;
  while (!(await hasLink(host, uuid))) {
    if (host.clock.monotonicMs() > until)
      return fail("device-absent", `${arrayPath(uuid)} did not appear within ${appearTimeoutMs / 1000} s`);
    report(`waiting for ${arrayPath(uuid)} to appear`);
    await host.clock.sleep(500);
  }
  return ok(undefined);
}

async function checkConfig(step: RaidConfigStep, host: Host): Promise<Result<StepState, AppError>> {
  for (const file of step.files) {
    const found = await host.files.readText(file.path);
    if (!found.ok || found.value !== file.content) return ok("todo");
  }
  return ok("done");
}

async function writeConfig(step: RaidConfigStep, host: Host): Promise<Result<void, AppError>> {
  for (const file of step.files) {
    const written = await host.files.write(file.path, file.content, { mode: file.mode });
    if (!written.ok) return written;
  }
  return ok(undefined);
}

function failed(message: string, ran: ExecResult): AppError {
  const details = ran.stderr.split("\n").filter((line) => line.trim() !== "");
  return appError("mdadm", message, { details: details.slice(-5) });
}
