/**
 * Keeps the two disks of a mirrored system equal: takes a returned disk back, and writes its boot loader and boot
 * environment anew once it has everything. Until then GRUB prefers the other one.
 */
import { newestEnv } from "../iso/bootenv.ts";
import { readEnv, withEspLock } from "../iso/esp.ts";
import { readMirror, readMirrorArrays } from "../iso/mirror/driver.ts";
import { copyLoader } from "../iso/mirror/loader.ts";
import type { Mirror, MirrorArray, MirrorDisk } from "../iso/mirror/model.ts";
import { espOf, isWhole } from "../iso/mirror/parse.ts";
import { rejoin } from "../iso/mirror/rejoin.ts";
import type { AppError } from "../kit/app-error.ts";
import { fail, formatError } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";

export interface MirrorWatch {
  readonly host: Pick<Host, "exec" | "files" | "clock">;
  readonly installation: string;
  readonly tell: (severity: "info" | "warning" | "error", message: string) => void;
  /** While a disk of the system is replaced its new members are somebody else's work. */
  readonly isReplaced?: () => boolean;
}

const LOOK_AGAIN_MS = 10_000;
/** So many looks in a row an environment may be unreadable before it is taken for lost, and written from the other. */
const PATIENCE = 3;

export async function watchMirror(watch: MirrorWatch, signal: AbortSignal): Promise<void> {
  const tend = mirrorTender(watch);
  while (!signal.aborted) {
    await tend();
    await watch.host.clock.sleep(LOOK_AGAIN_MS, signal);
  }
}

/** One look, and what it asks for. Where nothing changed since the last one, it costs a few reads of sysfs. */
export function mirrorTender({ host, installation, tell, isReplaced = () => false }: MirrorWatch): () => Promise<void> {
  let settled = "";
  let wasWhole = true;
  let unreadable = 0;
  const told = new Set<string>();
  const complain = (error: AppError): void => {
    const message = formatError(error);
    if (!told.has(message)) tell("error", message);
    told.add(message);
  };
  return async () => {
    if (isReplaced()) return;
    const names = await host.files.list("/sys/block");
    const seen = JSON.stringify([names, await readMirrorArrays(host, installation)]);
    if (seen === settled) return;
    const read = await readMirror(host, installation);
    if (!read.ok) return complain(read.error);
    const mirror = read.value;
    const isWholeNow = isWhole(mirror);
    if (!isWholeNow && wasWhole) tell("warning", `the system runs without its mirror: ${describe(mirror)}`);
    const { added, problems } = await rejoin(host, mirror, installation);
    problems.forEach(complain);
    if (added.length > 0) tell("info", `taken back into the mirror and being copied to: ${added.join(", ")}`);
    if (isWholeNow) {
      const equal = await withEspLock(host, () => makeEqual(host, mirror, tell, unreadable >= PATIENCE));
      unreadable = equal.ok ? 0 : unreadable + 1;
      if (!equal.ok) return unreadable > PATIENCE ? complain(equal.error) : undefined;
      if (!wasWhole) tell("info", "the system is mirrored on both disks again");
      told.clear();
    }
    wasWhole = isWholeNow;
    settled = seen;
  };
}

const describe = ({ arrays, disks }: Mirror): string => {
  const working = disks.filter(({ isInSync }) => isInSync).map(({ path }) => path);
  return working.length === 1 ? `${working[0]} alone has everything` : arrays.map(describeArray).join("; ");
};

const describeArray = ({ role, members }: MirrorArray): string =>
  `${role} on ${members.map(({ kernelName, state }) => `${kernelName} (${state})`).join(", ")}`;

/** From the disk whose environment GRUB would take to the others, one after the other. */
async function makeEqual(
  host: MirrorWatch["host"],
  { disks }: Mirror,
  tell: MirrorWatch["tell"],
  isLossBelieved: boolean,
): Promise<Result<void, AppError>> {
  const whole = disks.filter(({ isInSync }) => isInSync);
  const source = await newestDisk(host, whole, isLossBelieved);
  if (!source.ok) return source;
  for (const disk of whole.filter((each) => each !== source.value)) {
    const copied = await copyLoader(host, source.value, disk);
    if (!copied.ok) return copied;
    if (copied.value)
      tell("info", `boot loader and boot environment of ${disk.path} are those of ${source.value.path} again`);
  }
  return ok(undefined);
}

/** What can't be read just now may be the newest. */
async function newestDisk(
  host: MirrorWatch["host"],
  disks: readonly MirrorDisk[],
  isLossBelieved: boolean,
): Promise<Result<MirrorDisk, AppError>> {
  const read = [];
  for (const disk of disks) read.push({ disk, env: await readEnv(host, espOf(disk)) });
  const lost = read.find(({ env }) => !env.ok);
  if (lost?.env.ok === false && !isLossBelieved) return lost.env;
  const newest = newestEnv(read.flatMap(({ env }) => (env.ok ? [env.value] : [])));
  const found = read.find(({ env }) => env.ok && env.value === newest);
  if (found !== undefined) return ok(found.disk);
  return lost?.env.ok === false ? lost.env : fail("mirror", "no disk of the system has everything");
}
