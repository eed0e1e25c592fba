/** Carries out the steps of disks/model.ts. Destroys nothing but what its step names. */
import type { AppError } from "../../kit/app-error.ts";
import { fail } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import type { Executors, StepContext, StepState } from "../../kit/step.ts";
import { filesystemArgv, labelArgv, mkfsArgv, syncArgv, wipeArgv } from "../argv.ts";
import { describeIdentity } from "../describe.ts";
import { findMounts, howItEnded, probeSignatures, readTree } from "../driver.ts";
import { contentNodes, flatten, identityOf } from "../inventory.ts";
import { sameDisk } from "../../kit/disk.ts";
import { parseProperties } from "../parse.ts";
import { unmountExecutor } from "./unmount/driver.ts";
import type { BlockNode, DiskFilesystemStep, DiskMountStep, DiskStep, DiskWipeStep, StepDevice } from "../model.ts";

const mkfsTimeoutMs = 60 * 60_000;
const appearTimeoutMs = 30_000;

export const diskExecutors: Executors<DiskStep> = {
  "disk:wipe": {
    argv: (step) => [wipeArgv(step.device.path)],
    check: (step, context) => checkBlank(step, context),
    run: (step, context) => wipe(step, context),
  },
  "disk:filesystem": {
    argv: (step) => filesystemArgv(step),
    check: (step, context) => checkFilesystem(step, context),
    run: (step, context) => makeFilesystem(step, context),
  },
  "disk:mount": {
    argv: (step) => [
      ...(step.isPointImmutable ? [["chattr", "+i", step.point]] : []),
      ["systemctl", "start", step.unit],
      ["ln", "-s", unitPath(step), step.wantsLink],
    ],
    check: (step, context) => checkMount(step, context),
    run: (step, context) => mount(step, context),
  },
  "disk:unmount": unmountExecutor,
};

/** Whether the disk behind each path still is the one that was decided about; kernel names move when disks come and go. */
export async function confirmDevices(host: Host, devices: readonly StepDevice[]): Promise<Result<void, AppError>> {
  const wanted = devices.filter((device) => device.identity !== undefined);
  if (wanted.length === 0) return ok(undefined);
  const tree = await readTree(host);
  if (!tree.ok) return tree;
  const nodes = new Map([...flatten(tree.value).values()].map((node) => [node.path, node]));
  for (const { path, identity } of wanted) {
    const node = nodes.get(path);
    if (node === undefined || identity === undefined)
      return fail("disk-gone", `${path} is not there any more`, { hint: "connect the disk and try again" });
    // What stands under a multipath mapping has the serial, the mapping itself has none.
    const below = tree.value.find((top) => top.children.some((child) => child.path === path && child.type === "mpath"));
    const real = below ?? node;
    const shown = await host.exec({ argv: ["udevadm", "info", "--query=property", `--name=${real.path}`] });
    const udev = new Map(shown.exitCode === 0 ? [[real.path, parseProperties(shown.stdout)]] : []);
    const found = identityOf(real, { udev });
    if (!sameDisk(found, identity))
      return fail("disk-changed", `${path} is another disk now: ${describeIdentity(found)}`, {
        details: [`wanted: ${describeIdentity(identity)}`],
        hint: "nothing was written; try again, the disks are looked at anew",
      });
  }
  return ok(undefined);
}

async function nodeOf(host: Host, path: string): Promise<Result<BlockNode, AppError>> {
  const tree = await readTree(host);
  if (!tree.ok) return tree;
  const node = [...flatten(tree.value).values()].find((each) => each.path === path);
  return node === undefined ? fail("disk-gone", `${path} is not there any more`) : ok(node);
}

/** Blank: no partitions, nothing above it, and neither tool finds a signature. */
async function checkBlank(step: DiskWipeStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  const node = await nodeOf(host, step.device.path);
  if (!node.ok) return node;
  const holders = await holdersOf(host, node.value.kernelName);
  if (contentNodes(node.value).length > 1 || holders.length > 0) return ok("todo");
  const found = await probeSignatures(host, step.device.path);
  if (!found.ok) return found;
  return ok(found.value.length === 0 ? "done" : "todo");
}

async function wipe(step: DiskWipeStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  const { path } = step.device;
  const confirmed = await confirmDevices(host, [step.device]);
  if (!confirmed.ok) return confirmed;
  const node = await nodeOf(host, path);
  if (!node.ok) return node;
  const content = contentNodes(node.value);
  for (const each of content) {
    const freed = await takeDown(host, each.kernelName, report);
    if (!freed.ok) return freed;
  }
  // Partitions first: once the table is gone, what they held can't be found any more, but comes back with a like table.
  for (const each of content.toReversed()) {
    const blank = await wipeNode(host, each.path, report);
    if (!blank.ok) return blank;
  }
  await run(host, syncArgv(path));
  await host.exec({ argv: ["udevadm", "settle", "--timeout=30"], timeoutMs: 40_000 });
  return ok(undefined);
}

async function wipeNode(host: Host, path: string, report: StepContext["report"]): Promise<Result<void, AppError>> {
  const found = await probeSignatures(host, path);
  if (!found.ok) return found;
  // wipefs breaks the magic only; this clears the whole superblock. It says no where there is none for it (DDF).
  if (found.value.some((each) => each.type.endsWith("_raid_member")))
    await host.exec({ argv: ["mdadm", "--zero-superblock", path] });
  const attempts = 15;
  for (let attempt = 1; ; attempt += 1) {
    const wiped = await host.exec({ argv: wipeArgv(path), timeoutMs: 120_000 });
    if (wiped.exitCode === 0) return ok(undefined);
    const isBusy = /busy/i.test(wiped.stderr);
    if (!isBusy || attempt === attempts)
      return fail("wipe-failed", `wipefs on ${path} failed: ${howItEnded(wiped)}`, {
        hint: isBusy ? "something still uses the disk; it was left as it is" : "see the message of wipefs",
      });
    // A probe in the background lets go in a moment; whoever really uses the disk does not.
    report(`waiting for ${path} to be free`);
    await host.clock.sleep(1_000);
  }
}

async function holdersOf(host: Host, kernelName: string): Promise<readonly string[]> {
  const listed = await host.files.list(`/sys/class/block/${kernelName}/holders`);
  return listed.ok ? listed.value : [];
}

/** Stops what stands on a device, the topmost first. What is mounted or swapped on is never stopped. */
async function takeDown(
  host: Host,
  kernelName: string,
  report: StepContext["report"],
): Promise<Result<void, AppError>> {
  for (const holder of await holdersOf(host, kernelName)) {
    const tree = await readTree(host);
    if (!tree.ok) return tree;
    const node = flatten(tree.value).get(holder);
    const busy = node === undefined ? undefined : mountedOn(node);
    if (busy !== undefined)
      return fail("disk-busy", `/dev/${kernelName} is in use: ${holder} is mounted at ${busy}`, {
        hint: "free it first",
      });
    for (const name of [holder, ...(node?.children ?? []).map((child) => child.kernelName)]) {
      const above = await takeDown(host, name, report);
      if (!above.ok) return above;
    }
    const stopped = await stop(host, holder, report);
    if (!stopped.ok) return stopped;
  }
  return ok(undefined);
}

function mountedOn(node: BlockNode): string | undefined {
  return node.mountPoints[0] ?? node.children.map(mountedOn).find((point) => point !== undefined);
}

async function stop(host: Host, holder: string, report: StepContext["report"]): Promise<Result<void, AppError>> {
  // A holder below two members is gone when the second is looked at.
  if (!(await isThere(host, `/sys/class/block/${holder}`))) return ok(undefined);
  if (holder.startsWith("md")) {
    report(`stopping array ${holder}`);
    return run(host, ["mdadm", "--stop", `/dev/${holder}`]);
  }
  if (holder.startsWith("dm-")) {
    const name = await host.files.readText(`/sys/class/block/${holder}/dm/name`);
    if (!name.ok) return name;
    report(`removing mapping ${name.value.trim()}`);
    // Straight from the kernel: LVM's own tools would need the volume group to be complete.
    return run(host, ["dmsetup", "remove", "--retry", name.value.trim()]);
  }
  return fail("held", `${holder} holds the disk and is not taken down from here`, { hint: "take it down by hand" });
}

async function isThere(host: Host, path: string): Promise<boolean> {
  const stat = await host.files.stat(path);
  return stat.ok && stat.value !== null;
}

async function run(host: Host, argv: readonly string[], timeoutMs = 120_000): Promise<Result<void, AppError>> {
  const result = await host.exec({ argv, timeoutMs });
  if (result.exitCode === 0) return ok(undefined);
  return fail("tool-failed", `${argv[0]} on ${argv.at(-1)} failed: ${howItEnded(result)}`);
}

/** Done is a filesystem with both the UUID chosen and the label that is set last: without it mkfs may not have ended. */
async function checkFilesystem(step: DiskFilesystemStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  if (!(await isThere(host, step.device.path))) return ok("todo");
  const found = await probeSignatures(host, step.device.path);
  if (!found.ok) return found;
  const isDone =
    found.value.length === 1 &&
    found.value[0]?.type === step.filesystem &&
    found.value[0].uuid === step.uuid &&
    found.value[0].label === step.label;
  return ok(isDone ? "done" : "todo");
}

async function makeFilesystem(
  step: DiskFilesystemStep,
  { host, report }: StepContext,
): Promise<Result<void, AppError>> {
  const { path } = step.device;
  const there = await waitFor(host, path, report);
  if (!there.ok) return there;
  const confirmed = await confirmDevices(host, [step.device]);
  if (!confirmed.ok) return confirmed;
  for (const argv of [mkfsArgv(step), syncArgv(path), labelArgv(step), syncArgv(path)]) {
    const done = await run(host, argv, mkfsTimeoutMs);
    if (!done.ok) return done;
  }
  return ok(undefined);
}

async function waitFor(host: Host, path: string, report: StepContext["report"]): Promise<Result<void, AppError>> {
  const until = host.clock.monotonicMs() + appearTimeoutMs;
  while (!(await isThere(host, path))) {
    if (host.clock.monotonicMs() > until)
      return fail("device-absent", `${path} did not appear within ${appearTimeoutMs / 1000} s`);
    report(`waiting for ${path} to appear`);
    await host.clock.sleep(500);
  }
  return ok(undefined);
}

async function checkMount(step: DiskMountStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  for (const file of step.files) if (!(await isWritten(host, file.path, file.content))) return ok("todo");
  const link = await host.files.stat(step.wantsLink, { noFollow: true });
  if (!link.ok) return link;
  if (link.value === null) return ok("todo");
  return ok((await mountedHere(host, step)) === "ours" ? "done" : "todo");
}

async function isWritten(host: Host, path: string, content: string): Promise<boolean> {
  const found = await host.files.readText(path);
  return found.ok && found.value === content;
}

async function mountedHere(host: Host, step: DiskMountStep): Promise<"ours" | "other" | "nothing"> {
  const found = (await findMounts(host)).find((each) => each.point === step.point);
  if (found === undefined) return "nothing";
  if (found.uuid === step.uuid) return "ours";
  // findmnt knows UUIDs from udev; where it has none the link decides.
  const real = await host.files.realpath(`/dev/disk/by-uuid/${step.uuid}`);
  return real.ok && real.value === found.source ? "ours" : "other";
}

async function mount(step: DiskMountStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  const mounted = await mountedHere(host, step);
  if (mounted === "other")
    return fail("point-taken", `something else is mounted at ${step.point}`, { hint: "free the mount point" });
  for (const file of step.files) {
    if (await isWritten(host, file.path, file.content)) continue;
    const written = await host.files.write(file.path, file.content, { mode: file.mode });
    if (!written.ok) return written;
  }
  if (mounted === "nothing") {
    const ready = await preparePoint(step, host, report);
    if (!ready.ok) return ready;
  }
  await host.exec({ argv: ["udevadm", "settle", "--timeout=30"], timeoutMs: 40_000 });
  const reloaded = await host.systemd.daemonReload();
  if (!reloaded.ok) return reloaded;
  report(`waiting for ${step.point} to be mounted`);
  const started = await host.systemd.start(step.unit);
  if (!started.ok) {
    const tail = await host.systemd.journalTail(step.unit, 5);
    return fail("mount-failed", `${step.unit} could not be started`, {
      cause: started.error,
      details: tail.ok ? tail.value : [],
    });
  }
  // Not systemctl: it makes the link first, and a process that dies before keeping it leaves one that looks done here
  // and is gone at the next boot.
  return host.files.symlink(unitPath(step), step.wantsLink);
}

const unitPath = (step: DiskMountStep): string =>
  step.files.find(({ path }) => path.endsWith(`/${step.unit}`))?.path ?? "";

/** Nothing may be hidden by the mount; and where k0s does not wait for it, nothing may land beneath it. */
async function preparePoint(
  step: DiskMountStep,
  host: Host,
  report: StepContext["report"],
): Promise<Result<void, AppError>> {
  const listed = await host.files.list(step.point);
  if (!listed.ok) {
    const made = await host.files.mkdir(step.point, { mode: 0o755 });
    if (!made.ok) return made;
  } else if (listed.value.length > 0) {
    return fail("point-not-empty", `${step.point} is not empty, and the mount would hide what is in it`, {
      details: listed.value.slice(0, 5).map((name) => `${step.point}/${name}`),
      hint: "move it away, or choose another mount point",
    });
  }
  if (!step.isPointImmutable) return ok(undefined);
  const result = await host.exec({ argv: ["chattr", "+i", step.point] });
  // Not every filesystem has the flag; the mount is none the worse.
  if (result.exitCode !== 0) report(`${step.point} could not be made immutable: ${howItEnded(result)}`);
  return ok(undefined);
}
