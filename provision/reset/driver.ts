/** Carries out the steps of a reset. Every check looks at the machine, so that each may be begun again at any instant. */
import { syncArgv, wipeArgv } from "../../disks/argv.ts";
import { probeSignatures } from "../../disks/driver.ts";
import { diskExecutors } from "../../disks/steps/driver.ts";
import { K0S_BINARY, unitFile } from "../../k0s/paths.ts";
import { failureOf, isUp, service } from "../../k0s/service/driver.ts";
import type { AppError } from "../../kit/app-error.ts";
import { fail } from "../../kit/app-error.ts";
import type { Paths } from "../../kit/paths.ts";
import type { Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import type { Executors, StepContext, StepState } from "../../kit/step.ts";
import { closeArgv, mappingName } from "../../luks/argv.ts";
import { isOpen } from "../../luks/driver.ts";
import type { EraseStep, ResetPorts, ResetScrubStep } from "./model.ts";
import type { MountUnit } from "./mounts.ts";
import { K0S_FOLDERS, mountPoints, pointsToFree, readMountUnit } from "./mounts.ts";
import { overlayOf } from "../../wireguard/render.ts";

const UNITS = ["k0scontroller", "k0sworker"] as const;
const UNIT_FOLDER = "/etc/systemd/system";
const PODS_UNIT = "corium-pods.service";
/** Of a node that is not in service yet: it would begin in the middle. */
const BOOTSTRAP_UNIT = "corium-bootstrap.service";
/** Emptied by us beside what `k0s reset` takes: it leaves them, and another CNI would be started with them (B131). */
const LEFT_BY_K0S = [
  "/opt/cni/bin",
  "/etc/cni/net.d",
  "/usr/libexec/k0s",
  "/var/lib/kubelet",
  "/var/log/pods",
  "/var/log/containers",
];
/** Of these the one that is a mount of the image's own (iso/initramfs); what is mounted below it is not. */
const OWN_MOUNT = "/usr/libexec/k0s";
const TOOL_TIMEOUT_MS = 120_000;

export function eraseExecutors(paths: Paths, ports: ResetPorts): Executors<EraseStep> {
  // Once in each process, also where nothing is mounted: at a boot a mount may still be waiting for its disk.
  let hasFreed = false;
  return {
    "disk:wipe": diskExecutors["disk:wipe"],
    "reset:stop": {
      argv: () => [BOOTSTRAP_UNIT, ...UNITS.map(service), PODS_UNIT].map((unit) => ["systemctl", "stop", unit]),
      check: async (_, { host }) => isStopped(host),
      run: async (_, { host }) => stop(host),
    },
    "reset:unmount": {
      argv: () => [],
      check: async (_, { host }) => {
        const found = await toFree(host);
        return found.ok ? ok(hasFreed && found.value.points.length === 0 ? "done" : "todo") : found;
      },
      run: async (_, context) => {
        const freed = await unmount(context);
        hasFreed = freed.ok;
        return freed;
      },
    },
    "reset:k0s": {
      argv: () => [[K0S_BINARY, "reset"]],
      check: async (_, { host }) => isK0sGone(host, paths),
      run: (_, context) => removeK0s(context, paths, ports),
    },
    "reset:scrub": {
      argv: ({ path, volume }) => scrubArgv(path, volume !== undefined),
      check: async (step, { host }) => isScrubbed(host, step),
      run: async (step, { host }) => scrub(host, step),
    },
    "reset:files": {
      argv: () => [],
      check: async (_, { host }) => {
        const files = await filesToRemove(host, paths);
        return files.ok ? ok(files.value.length === 0 ? "done" : "todo") : files;
      },
      run: (_, context) => removeFiles(context, paths),
    },
    "reset:state": {
      argv: () => [],
      check: async (_, { host }) => {
        const marker = await host.files.stat(paths.marker);
        return marker.ok ? ok(ports.isErased() && marker.value === null ? "done" : "todo") : marker;
      },
      run: async (_, { host }) => {
        // What k0s reset deleted must not come back in a node that is nobody's: that was on another partition.
        const synced = await host.exec({ argv: ["sync", "--file-system", "/var"], timeoutMs: TOOL_TIMEOUT_MS });
        if (synced.exitCode !== 0) return fail("sync", `what was deleted can't be made durable: ${failureOf(synced)}`);
        const erased = ports.isErased() ? ok(undefined) : ports.erase();
        // Last: a marker without its database, or with an erased one, lets nobody in.
        return erased.ok ? host.files.remove(paths.marker) : erased;
      },
    },
  };
}

async function isStopped(host: Host): Promise<Result<StepState, AppError>> {
  for (const unit of [BOOTSTRAP_UNIT, ...UNITS.map(service), PODS_UNIT]) {
    const status = await host.systemd.status(unit);
    if (!status.ok) return status;
    if (isUp(status.value)) return ok("todo");
  }
  return ok("done");
}

/** k0s leaves pods and their shims running when it stops (KillMode=process); they hold what is to be unmounted. */
async function stop(host: Host): Promise<Result<void, AppError>> {
  for (const unit of [BOOTSTRAP_UNIT, ...UNITS.map(service)]) {
    const status = await host.systemd.status(unit);
    if (!status.ok) return status;
    if (status.value.loadState === "not-found") continue;
    const stopped = await host.systemd.stop(unit);
    if (!stopped.ok) return stopped;
    // Without a process left it says no, which is as well.
    await host.exec({ argv: ["systemctl", "kill", "--kill-whom=all", "--signal=KILL", unit], timeoutMs: 30_000 });
  }
  const pods = await host.systemd.status(PODS_UNIT);
  if (!pods.ok) return pods;
  return isUp(pods.value) ? host.systemd.stop(PODS_UNIT) : ok(undefined);
}

/** Units of mounts that the document made. */
export async function readMountUnits(host: Host): Promise<Result<readonly MountUnit[], AppError>> {
  const names = await host.files.list(UNIT_FOLDER);
  if (!names.ok) return names.error.code === "ENOENT" ? ok([]) : names;
  const units: MountUnit[] = [];
  for (const name of names.value.filter((each) => each.endsWith(".mount"))) {
    const text = await host.files.readText(`${UNIT_FOLDER}/${name}`);
    if (!text.ok) return text;
    const unit = readMountUnit(name, text.value);
    if (unit !== undefined) units.push(unit);
  }
  return ok(units);
}

async function toFree(
  host: Host,
): Promise<Result<{ readonly points: readonly string[]; readonly units: readonly MountUnit[] }, AppError>> {
  const units = await readMountUnits(host);
  if (!units.ok) return units;
  const mounts = await host.files.readText("/proc/self/mounts");
  if (!mounts.ok) return mounts;
  return ok({ points: pointsToFree(mounts.value, units.value), units: units.value });
}

async function unmount({ host, report }: StepContext): Promise<Result<void, AppError>> {
  const before = await toFree(host);
  if (!before.ok) return before;
  const ours = before.value.units.map(({ point }) => point);
  // What containers left goes first, and lazily: out of the tree nothing can be deleted through it any more.
  for (const point of before.value.points) {
    report(`unmounting ${point}`);
    const isOurs = ours.includes(point);
    const ran = await host.exec({ argv: ["umount", ...(isOurs ? [] : ["--lazy"]), point], timeoutMs: TOOL_TIMEOUT_MS });
    if (ran.exitCode !== 0 && isOurs)
      return fail("mounted", `${point} can't be unmounted: ${failureOf(ran)}`, {
        hint: "something still uses it; it is free after a restart",
      });
  }
  // Also of those that are only about to be mounted: at a boot a disk may be late.
  for (const { unit } of before.value.units) {
    const stopped = await host.systemd.stop(unit);
    if (!stopped.ok && stopped.error.code !== "unit-not-found") return stopped;
  }
  const after = await toFree(host);
  if (!after.ok) return after;
  const [still] = after.value.points;
  return still === undefined ? ok(undefined) : fail("mounted", `${still} is mounted still`);
}

async function isK0sGone(host: Host, paths: Paths): Promise<Result<StepState, AppError>> {
  for (const folder of [...K0S_FOLDERS, ...LEFT_BY_K0S]) {
    const names = await namesIn(host, folder);
    if (!names.ok) return names;
    if (names.value.length > 0) return ok("todo");
  }
  for (const unit of UNITS)
    for (const path of [unitFile(unit), keptPath(unitFile(unit), paths)]) {
      const found = await host.files.stat(path, { noFollow: true });
      if (!found.ok) return found;
      if (found.value !== null) return ok("todo");
    }
  return ok("done");
}

const keptPath = (path: string, paths: Paths): string => `${paths.keptEtc}${path.slice("/etc".length)}`;

async function namesIn(host: Host, folder: string): Promise<Result<readonly string[], AppError>> {
  const names = await host.files.list(folder);
  return names.ok || names.error.code !== "ENOENT" ? names : ok([]);
}

/** Never through a mount: what is on a data disk, or a server, is not k0s's to delete, nor ours. */
async function refuseMounted(host: Host, { stateDir }: Paths): Promise<Result<void, AppError>> {
  const ours = await toFree(host);
  if (!ours.ok) return ours;
  const others = await mountsInTheWay(host, stateDir);
  if (!others.ok) return others;
  const [found] = [...ours.value.points, ...others.value];
  if (found === undefined) return ok(undefined);
  return fail("mounted", `${found} is mounted, and what is on it would be deleted with k0s`, {
    hint: "nothing was deleted; unmount it, or restart the machine",
  });
}

/** Where neither k0s nor the document mounts anything, and we delete; backups go below the state, for one. */
async function mountsInTheWay(host: Host, stateDir: string): Promise<Result<readonly string[], AppError>> {
  const mounts = await host.files.readText("/proc/self/mounts");
  if (!mounts.ok) return mounts;
  const isEmptied = (point: string): boolean =>
    LEFT_BY_K0S.some((folder) => point.startsWith(`${folder}/`) || (point === folder && point !== OWN_MOUNT));
  return ok(mountPoints(mounts.value).filter((point) => isEmptied(point) || point.startsWith(`${stateDir}/`)));
}

async function removeK0s(
  { host, report }: StepContext,
  paths: Paths,
  ports: ResetPorts,
): Promise<Result<void, AppError>> {
  const free = await refuseMounted(host, paths);
  if (!free.ok) return free;
  report("waiting for k0s reset");
  const ran = await host.exec({ argv: [K0S_BINARY, "reset"], timeoutMs: 10 * 60_000 });
  if (ran.exitCode !== 0) {
    const why = failureOf(ran);
    if (/still running/.test(why)) return fail("k0s-running", `k0s reset: ${why}`);
    // A run that failed has deleted what the next one needs (k0s issue 8048); what it would have deleted is known.
    ports.warn(`k0s reset failed, and its folders are removed without it: ${why}`);
    const still = await refuseMounted(host, paths);
    if (!still.ok) return still;
  }
  for (const folder of [...K0S_FOLDERS, ...LEFT_BY_K0S]) {
    const emptied = await empty(host, folder);
    if (!emptied.ok) return emptied;
  }
  for (const unit of UNITS) {
    const removed = await host.files.remove(unitFile(unit));
    if (!removed.ok) return removed;
    // `k0s reset` takes the live one only; this one would be back at the next boot.
    const forgotten = await host.files.remove(keptPath(unitFile(unit), paths));
    if (!forgotten.ok) return forgotten;
  }
  return ok(undefined);
}

const scrubArgv = (path: string, isVolume: boolean): readonly (readonly string[])[] => [
  ...(isVolume ? [["cryptsetup", "-q", "erase", path]] : []),
  wipeArgv(path),
  syncArgv(path),
];

/** An array that does not run, or a volume that is not here, holds nothing that could be seen. */
async function isScrubbed(host: Host, { path }: ResetScrubStep): Promise<Result<StepState, AppError>> {
  const there = await host.files.stat(path);
  if (!there.ok) return there;
  if (there.value === null) return ok("done");
  const found = await probeSignatures(host, path);
  return found.ok ? ok(found.value.length === 0 ? "done" : "todo") : found;
}

async function scrub(host: Host, { path, volume }: ResetScrubStep): Promise<Result<void, AppError>> {
  if (volume !== undefined && (await isOpen(host, volume))) {
    const closed = await host.exec({ argv: closeArgv(mappingName(volume.name)), timeoutMs: TOOL_TIMEOUT_MS });
    if (closed.exitCode !== 0)
      return fail("volume-busy", `volume ${volume.name} can't be closed: ${failureOf(closed)}`, {
        hint: "something still uses it; it is free after a restart",
      });
  }
  for (const argv of scrubArgv(path, volume !== undefined)) {
    const ran = await host.exec({ argv, timeoutMs: TOOL_TIMEOUT_MS });
    if (ran.exitCode !== 0) return fail("scrub", `${argv[0]} on ${path} failed: ${failureOf(ran)}`);
  }
  return ok(undefined);
}

/** What is in it, not itself: some of these are mounts of the image's own. */
async function empty(host: Host, folder: string): Promise<Result<void, AppError>> {
  const names = await namesIn(host, folder);
  if (!names.ok) return names;
  for (const name of names.value) {
    const removed = await host.files.remove(`${folder}/${name}`, { recursive: true });
    if (!removed.ok) return removed;
  }
  return ok(undefined);
}

/** What stays on the state partition: the records, which go next, this reset's own files, and who the machine is. */
async function filesToRemove(host: Host, paths: Paths): Promise<Result<readonly string[], AppError>> {
  const staying = [
    ...["", "-wal", "-shm", "-journal"].map((suffix) => `${paths.database}${suffix}`),
    paths.marker,
    paths.resetIntent,
    paths.resetErasing,
    paths.keptEtc,
    // Where this very program was unpacked to; emptied at each boot.
    paths.tmpDir,
    `${paths.stateDir}/lost+found`,
  ];
  const state = await namesIn(host, paths.stateDir);
  if (!state.ok) return state;
  const etc = await namesIn(host, paths.keptEtc);
  if (!etc.ok) return etc;
  return ok([
    ...etc.value.filter((name) => name !== "machine-id").map((name) => `${paths.keptEtc}/${name}`),
    ...state.value.map((name) => `${paths.stateDir}/${name}`).filter((path) => !staying.includes(path)),
  ]);
}

const API_UNIT = "corium-apid.service";
/** For those who follow the operation: they learn that it is about to end for them. */
const LAST_WORD_MS = 2_000;

/**
 * Only the kept part of /etc: what lies in the live one is gone with the restart, and the image's own files are below it.
 * The API goes first; it would write some of it again.
 */
async function removeFiles({ host, report }: StepContext, paths: Paths): Promise<Result<void, AppError>> {
  const mounted = await mountsInTheWay(host, paths.stateDir);
  if (!mounted.ok) return mounted;
  const [found] = mounted.value;
  if (found !== undefined) {
    return fail("mounted", `${found} is mounted, and what is on it would be deleted with the node's records`, {
      hint: "unmount it, or restart the machine",
    });
  }
  report("the API ends now; the node restarts, unclaimed, and shows a new code");
  await host.clock.sleep(LAST_WORD_MS);
  const stopped = await host.systemd.stop(API_UNIT);
  if (!stopped.ok && stopped.error.code !== "unit-not-found") return stopped;
  const networks = await namesIn(host, `${paths.keptEtc}/systemd/network`);
  for (const name of networks.ok ? networks.value : []) {
    const overlay = overlayOf(name);
    // The interface with its keys; without it networkctl says no.
    if (overlay !== undefined) await host.exec({ argv: ["networkctl", "delete", overlay], timeoutMs: 20_000 });
  }
  const files = await filesToRemove(host, paths);
  if (!files.ok) return files;
  for (const path of files.value) {
    const removed = await host.files.remove(path, { recursive: true });
    if (!removed.ok) return removed;
  }
  return ok(undefined);
}
