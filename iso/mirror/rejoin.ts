/**
 * A disk that was away and is there again. Nobody but us takes its members back: mdadm leaves out what is older, and the
 * rules that would add it are not in the image.
 */
import type { AppError } from "../../kit/app-error.ts";
import { appError } from "../../kit/app-error.ts";
import type { Runner } from "../esp.ts";
import type { Mirror, MirrorArray, MirrorDisk } from "./model.ts";
import { MIRROR_WIDTH } from "./model.ts";
import { numberOf, ranAlone, roleOfArray } from "./parse.ts";

export interface Rejoined {
  /** Partitions that were taken back. */
  readonly added: readonly string[];
  readonly problems: readonly AppError[];
}

const timeoutMs = 60_000;

/** Lets go of members whose device is gone, and takes members back that say they are of the same array. */
export async function rejoin(host: Runner, mirror: Mirror, installation: string): Promise<Rejoined> {
  const added: string[] = [];
  const problems: AppError[] = [];
  for (const array of mirror.arrays) {
    if (array.members.some(({ state }) => state === "gone")) {
      // The array comes first on the line: mdadm takes it for a device otherwise.
      await host.exec({ argv: ["mdadm", array.path, "--fail", "detached", "--remove", "detached"], timeoutMs });
    }
    if (array.members.some(({ state }) => state === "joining")) await makeWritable(host, array);
    if (array.members.filter(({ state }) => state !== "gone").length >= MIRROR_WIDTH) continue;
    for (const disk of mirror.disks.filter(({ lacking }) => lacking.includes(array.role))) {
      const path = disk.partitions.get(numberOf(array.role));
      const outcome = path === undefined ? undefined : await takeBack(host, array, disk, path, installation);
      if (typeof outcome === "string") added.push(outcome);
      else if (outcome !== undefined) problems.push(outcome);
    }
  }
  return { added, problems };
}

/** Root and boot slots are never written to: without this a copy to their new member would wait for ever. */
async function makeWritable(host: Runner, { path, isAutoReadOnly }: MirrorArray): Promise<void> {
  if (isAutoReadOnly) await host.exec({ argv: ["mdadm", "--readwrite", path], timeoutMs });
}

async function takeBack(
  host: Runner,
  array: MirrorArray,
  disk: MirrorDisk,
  path: string,
  installation: string,
): Promise<string | AppError | undefined> {
  const exported = await host.exec({ argv: ["mdadm", "--examine", "--export", path], timeoutMs });
  const uuid = /^MD_UUID=(\S+)$/m.exec(exported.stdout)?.[1];
  // Another installation's disk, or one that holds nothing: `cctl disk replace` is asked for by a person.
  if (exported.exitCode !== 0 || uuid === undefined || roleOfArray(installation, uuid) !== array.role) return undefined;
  const examined = await host.exec({ argv: ["mdadm", "--examine", path], timeoutMs });
  if (examined.exitCode !== 0) return undefined;
  if (ranAlone(examined.stdout)) {
    return appError(
      "mirror-parted",
      `${path} on ${disk.path} went on alone while this system did, and is left as it is`,
      {
        hint: "both hold a state of their own: what is on that disk is given up by wiping and replacing it",
      },
    );
  }
  await makeWritable(host, array);
  const again = await host.exec({ argv: ["mdadm", array.path, "--re-add", path], timeoutMs });
  if (again.exitCode === 0) return path;
  // Its bitmap reaches back no longer: what is on it is stale, and it is copied from the start. mdadm makes no new member
  // of one whose superblock is still there.
  await host.exec({ argv: ["mdadm", "--zero-superblock", path], timeoutMs });
  const anew = await host.exec({ argv: ["mdadm", array.path, "--add", path], timeoutMs });
  if (anew.exitCode === 0) return path;
  return appError("mdadm", `${path} can't be taken back into ${array.path}`, {
    details: anew.stderr.trim().split("\n").slice(-3),
  });
}
