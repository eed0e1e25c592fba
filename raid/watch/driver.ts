/** Looks at the arrays of this node, and carries out what raid/watch.ts decided. */
import type { AppError } from "../../kit/app-error.ts";
import { appError } from "../../kit/app-error.ts";
import { sameDisk } from "../../kit/disk.ts";
import type { Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { err, ok } from "../../kit/result.ts";
import { readRunning } from "../driver.ts";
import { parseExamineUuid } from "../parse.ts";
import type { Identities, RunningArray, WantedArray } from "../report.ts";
import { reportArrays } from "../report.ts";
import { judgeReturned, parseArrayEvents, parseMemberView } from "../returned.ts";
import type { ArrayAction, Look, ReturnedDisk, WatchedArray } from "../watch.ts";

/** Changes when a disk comes or goes, or an array does more than to make progress: two reads, no program. */
export async function glance(host: Host): Promise<string> {
  const mdstat = await host.files.readText("/proc/mdstat");
  const names = await host.files.list("/sys/class/block");
  const quiet = (mdstat.ok ? mdstat.value : "")
    .replace(/\s*finish=.*$/gm, "")
    .replace(/^\s*bitmap:.*$/gm, "")
    .replace(/\[[=>.]+\]\s+(\w+)\s*=\s*([\d.]+)%.*$/gm, (_line, action: string, done: string) => {
      return `${action} ${Math.floor(Number(done) / 5)}`;
    });
  return `${quiet}\n${names.ok ? names.value.join(" ") : ""}`;
}

export async function look(host: Host, wanted: readonly WantedArray[], identities: Identities): Promise<Look> {
  const running = await readRunning(host);
  const reports = reportArrays(wanted, running, identities);
  const arrays = wanted.flatMap((array, at): readonly WatchedArray[] => {
    const report = reports[at];
    const found = running.find((each) => each.detail.uuid === array.uuid);
    if (report === undefined) return [];
    const path = found === undefined ? {} : { path: `/dev/${found.mdstat.device}` };
    return [{ ...report, uuid: array.uuid, ...path, isAutoReadOnly: found?.mdstat.isAutoReadOnly === true }];
  });
  const returned: ReturnedDisk[] = [];
  for (const array of wanted) {
    const found = running.find((each) => each.detail.uuid === array.uuid);
    if (found !== undefined) returned.push(...(await findReturned(host, array, found, identities)));
  }
  return { arrays, returned };
}

/** By identity first: a disk that is not recorded, a clone of a member too, is not even opened. */
async function findReturned(
  host: Host,
  array: WantedArray,
  running: RunningArray,
  identities: Identities,
): Promise<readonly ReturnedDisk[]> {
  const members = new Set(running.mdstat.members.map(({ device }) => device));
  const absent = [...identities].filter(
    ([name, identity]) => !members.has(name) && array.disks?.some((one) => sameDisk(one, identity)) === true,
  );
  const found: ReturnedDisk[] = [];
  for (const [name, identity] of absent) {
    const device = `/dev/${name}`;
    const owner = await host.exec({ argv: ["mdadm", "--examine", "--export", device] });
    if (owner.exitCode !== 0 || parseExamineUuid(owner.stdout) !== array.uuid) continue;
    const [examined, detail] = await Promise.all([
      host.exec({ argv: ["mdadm", "--examine", device] }),
      host.exec({ argv: ["mdadm", "--detail", `/dev/${running.mdstat.device}`] }),
    ]);
    const view = parseMemberView(examined.stdout);
    const events = parseArrayEvents(detail.stdout);
    if (view === undefined || events === undefined) continue;
    const sequence = await host.files.readText(`/sys/class/block/${name}/diskseq`);
    const { serial } = identity;
    found.push({
      uuid: array.uuid,
      device,
      ...(serial === undefined ? {} : { serial }),
      sequence: sequence.ok ? sequence.value.trim() : "",
      judgement: judgeReturned(view, { events, activeRoles: activeRoles(running) }),
    });
  }
  return found;
}

const activeRoles = ({ slots, detached }: RunningArray): readonly number[] =>
  [...(slots ?? [])]
    .filter(([device, { state }]) => state.split(",").includes("in_sync") && !detached.includes(device))
    .map(([, { slot }]) => Number(slot));

export async function carryOut(host: Host, action: ArrayAction): Promise<Result<void, AppError>> {
  switch (action.kind) {
    case "drop-detached":
      return mdadm(host, [action.path, "--fail", "detached", "--remove", "detached"]);
    case "read-write":
      return mdadm(host, ["--readwrite", action.path]);
    case "re-add": {
      const back = await mdadm(host, [action.path, "--re-add", action.device]);
      if (back.ok) return back;
      // Too old for the bitmap, or its place is taken: then what is on it is stale, and it comes as a new one. mdadm refuses
      // to turn a member into a spare as long as the superblock is there.
      const cleared = await mdadm(host, ["--zero-superblock", action.device]);
      return cleared.ok ? mdadm(host, [action.path, "--add", action.device]) : cleared;
    }
    default: {
      const never: never = action;
      return never;
    }
  }
}

async function mdadm(host: Host, argv: readonly string[]): Promise<Result<void, AppError>> {
  const ran = await host.exec({ argv: ["mdadm", ...argv], timeoutMs: 120_000 });
  if (ran.exitCode === 0) return ok(undefined);
  const details = ran.stderr.split("\n").filter((line) => line.trim() !== "");
  return err(appError("mdadm", `mdadm ${argv.join(" ")} failed`, { details: details.slice(-3) }));
}
