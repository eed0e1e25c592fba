/** Writes Corium to a disk. Each check reads the disk, not the page cache: buffers are flushed after each write. */
import type { AppError } from "../../kit/app-error.ts";
import type { ExecResult, Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import type { Executors, StepContext, StepState } from "../../kit/step.ts";
import type { DiskWipeStep } from "../../disks/model.ts";
import type { BootStep, DocumentStep, InstallStep, LoaderStep, PartitionStep, SlotStep, StateStep } from "./model.ts";
import { confirmDevices } from "../../disks/steps/driver.ts";
import { BOOT_ENV_PATH, encodeBootEnv, newBootEnv } from "../../iso/bootenv.ts";
import { bootSectors } from "../../iso/loader.ts";
import { fail } from "../../kit/app-error.ts";
import { ok } from "../../kit/result.ts";
import { installingMark } from "./mark.ts";
import { mountRoot } from "./remains/driver.ts";
import { installingScript, isTable, STATE_NAME, STATE_NUMBER, stateName } from "./table.ts";

const minuteMs = 60_000;
/** Everything that the boot loader needs, put into the image by its build. */
const imageBootFiles = "/usr/share/corium/boot";

export const partitionPath = (partUuid: string): string => `/dev/disk/by-partuuid/${partUuid}`;

/** What a live system knows and the disk must know after it: written below `root`, the mounted state partition. */
export interface Handover {
  /** Absent until it was handed over completely. */
  isComplete(root: string, step: DocumentStep): Promise<Result<boolean, AppError>>;
  copy(root: string, step: DocumentStep): Promise<Result<void, AppError>>;
}

type OwnSteps = Exclude<InstallStep, DiskWipeStep>;

export function installExecutors(handover: Handover, bootFiles = imageBootFiles): Executors<OwnSteps> {
  return {
    "install:partition": {
      argv: ({ device }) => [["sfdisk", "--wipe", "always", "--wipe-partitions", "always", "--lock", device.path]],
      check: checkTable,
      run: writeTable,
    },
    "install:slot": {
      argv: ({ image, rootPartUuid, bootPartUuid }) => [
        ddArgv(`${image.directory}/root.img`, partitionPath(rootPartUuid)),
        bootMkfs(bootPartUuid),
      ],
      check: checkSlot,
      run: writeSlot,
    },
    "install:loader": {
      argv: (step) => [espMkfs(step)],
      check: (step, context) => checkLoader(step, context, bootFiles),
      run: (step, context) => writeLoader(step, context, bootFiles),
    },
    "install:state": {
      argv: ({ filesystems }) => filesystems.map(({ partUuid }) => stateMkfs(partUuid)),
      check: checkFilesystems,
      run: makeFilesystems,
    },
    "install:document": {
      argv: () => [],
      check: async (step, { host }) =>
        withMount(host, partitionPath(step.statePartUuid), "ext4", "ro", async (root) => {
          const complete = await handover.isComplete(root, step);
          return complete.ok ? ok(complete.value ? ("done" as const) : ("todo" as const)) : complete;
        }),
      run: async (step, { host }) =>
        withMount(host, partitionPath(step.statePartUuid), "ext4", "rw", (root) => handover.copy(root, step)),
    },
    "install:boot": {
      argv: ({ device }) => [relabelArgv(device.path)],
      check: checkBootable,
      run: makeBootable,
    },
  };
}

// --- partition table ---

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
  const argv = ["sfdisk", "--wipe", "always", "--wipe-partitions", "always", "--lock", device.path];
  const made = await tool(host, argv, { stdin: installingScript(layout) });
  if (!made.ok) return made;
  return settle(host, device.path);
}

/** The links by PARTUUID are there only when udev has seen the new table. */
async function settle(host: Host, path: string): Promise<Result<void, AppError>> {
  for (const argv of [
    ["blockdev", "--flushbufs", path],
    ["udevadm", "settle", "--timeout=60"],
  ]) {
    const done = await tool(host, argv, { timeoutMs: 2 * minuteMs });
    if (!done.ok) return done;
  }
  return ok(undefined);
}

// --- slot A ---

const ddArgv = (from: string, to: string): readonly string[] => [
  "dd",
  `if=${from}`,
  `of=${to}`,
  "bs=4M",
  "conv=notrunc,fsync",
  "status=none",
];

/** iflag=fullblock: a pipe gives less than a block at a time. */
const ddStdinArgv = (to: string): readonly string[] => [
  "dd",
  `of=${to}`,
  "bs=64K",
  "iflag=fullblock",
  "conv=notrunc,fsync",
  "status=none",
];

/** GRUB's ext2 driver reads neither a journal nor the features that mke2fs added lately. */
const bootMkfs = (partUuid: string): readonly string[] => [
  "mkfs.ext4",
  "-q",
  "-F",
  "-O",
  "^has_journal,^metadata_csum_seed,^orphan_file,^64bit",
  "-U",
  partUuid,
  "-L",
  "corium-boot-a",
  partitionPath(partUuid),
];

async function checkSlot(step: SlotStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  const { image, rootPartUuid, bootPartUuid, slotEnv } = step;
  const root = await isEqual(host, `${image.directory}/root.img`, partitionPath(rootPartUuid), image.rootBytes);
  if (!root) return ok("todo");
  return whenMounted(host, partitionPath(bootPartUuid), "ext4", async (mounted) => {
    for (const name of ["vmlinuz", "initrd"]) {
      if (!(await isEqual(host, `${image.directory}/${name}`, `${mounted}/${name}`))) return false;
    }
    const env = await host.files.readText(`${mounted}/slot.env`);
    return env.ok && env.value === slotEnv;
  });
}

async function writeSlot(step: SlotStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  const { image, rootPartUuid, bootPartUuid } = step;
  report(`writing ${Math.ceil(image.rootBytes / 1024 ** 2)} MiB into slot A`);
  const root = partitionPath(rootPartUuid);
  const written = await tool(host, ddArgv(`${image.directory}/root.img`, root), { timeoutMs: 60 * minuteMs });
  if (!written.ok) return written;
  const flushed = await tool(host, ["blockdev", "--flushbufs", root]);
  if (!flushed.ok) return flushed;
  report("writing kernel and initramfs");
  const made = await tool(host, bootMkfs(bootPartUuid), { timeoutMs: 10 * minuteMs });
  if (!made.ok) return made;
  const filled = await withMount(host, partitionPath(bootPartUuid), "ext4", "rw", async (mounted) => {
    for (const name of ["vmlinuz", "initrd"]) {
      const copied = await tool(host, ["cp", `${image.directory}/${name}`, `${mounted}/${name}`], {
        timeoutMs: 10 * minuteMs,
      });
      if (!copied.ok) return copied;
    }
    return host.files.write(`${mounted}/slot.env`, step.slotEnv, { mode: 0o644 });
  });
  if (filled.ok) report("reading slot A back");
  return filled;
}

// --- boot loader ---

/** The volume id has 32 bits; sectors as the disk has them, or firmware finds nothing on a 4Kn disk. */
const espMkfs = ({ espPartUuid, sectorBytes }: LoaderStep): readonly string[] => [
  "mkfs.vfat",
  "-F",
  "32",
  "-S",
  String(sectorBytes),
  "-i",
  espPartUuid.slice(0, 8),
  "-n",
  "CORIUM-ESP",
  partitionPath(espPartUuid),
];

/** Removable-media path first: it needs no entry in the firmware's memory, which may be full or locked. */
const espFiles: Readonly<Record<string, string>> = {
  "EFI/BOOT/BOOTX64.EFI": "shimx64.efi",
  "EFI/BOOT/grubx64.efi": "grubx64.efi",
  "EFI/BOOT/mmx64.efi": "mmx64.efi",
  "EFI/debian/grub.cfg": "grub.cfg",
};

/** FAT knows no x bits; the kernel refuses a chmod that would take them away. */
const vfatMode = 0o755;

const idConfig = (installation: string): string => `set installation=${installation}\n`;

async function readSectors(host: Host, step: LoaderStep, bootFiles: string): Promise<ReturnType<typeof bootSectors>> {
  const boot = await host.files.read(`${bootFiles}/boot.img`);
  if (!boot.ok) return boot;
  const core = await host.files.read(`${bootFiles}/core.img`);
  if (!core.ok) return core;
  return bootSectors(boot.value, core.value, step.biosStartBytes, step.biosSizeBytes);
}

async function checkLoader(
  step: LoaderStep,
  { host }: StepContext,
  bootFiles: string,
): Promise<Result<StepState, AppError>> {
  const sectors = await readSectors(host, step, bootFiles);
  if (!sectors.ok) return sectors;
  const { bootCode, core } = sectors.value;
  for (const [bytes, path] of [
    [bootCode, step.device.path],
    [core, partitionPath(step.biosPartUuid)],
  ] as const) {
    const argv = ["cmp", "--silent", `--bytes=${bytes.length}`, "-", path];
    if ((await host.exec({ argv, stdin: bytes })).exitCode !== 0) return ok("todo");
  }
  return whenMounted(host, partitionPath(step.espPartUuid), "vfat", async (mounted) => {
    for (const [to, from] of Object.entries(espFiles)) {
      if (!(await isEqual(host, `${bootFiles}/${from}`, `${mounted}/${to}`))) return false;
    }
    const id = await host.files.readText(`${mounted}/corium/id.cfg`);
    return id.ok && id.value === idConfig(step.installation);
  });
}

async function writeLoader(
  step: LoaderStep,
  { host }: StepContext,
  bootFiles: string,
): Promise<Result<void, AppError>> {
  const sectors = await readSectors(host, step, bootFiles);
  if (!sectors.ok) return sectors;
  const confirmed = await confirmDevices(host, [step.device]);
  if (!confirmed.ok) return confirmed;
  const { bootCode, core } = sectors.value;
  for (const [bytes, path] of [
    [core, partitionPath(step.biosPartUuid)],
    [bootCode, step.device.path],
  ] as const) {
    const written = await tool(host, ddStdinArgv(path), { stdin: bytes });
    if (!written.ok) return written;
    const flushed = await tool(host, ["blockdev", "--flushbufs", path]);
    if (!flushed.ok) return flushed;
  }
  // udev reads the table again when a whole disk was written: meanwhile its partitions and their links are gone.
  const settled = await settle(host, step.device.path);
  if (!settled.ok) return settled;
  const made = await tool(host, espMkfs(step), { timeoutMs: 10 * minuteMs });
  if (!made.ok) return made;
  return withMount(host, partitionPath(step.espPartUuid), "vfat", "rw", async (mounted) => {
    for (const folder of ["EFI/BOOT", "EFI/debian", "corium"]) {
      const folders = await tool(host, ["mkdir", "-p", `${mounted}/${folder}`]);
      if (!folders.ok) return folders;
    }
    for (const [to, from] of Object.entries(espFiles)) {
      const copied = await tool(host, ["cp", `${bootFiles}/${from}`, `${mounted}/${to}`]);
      if (!copied.ok) return copied;
    }
    return host.files.write(`${mounted}/corium/id.cfg`, idConfig(step.installation), { mode: vfatMode });
  });
}

// --- state and data ---

const stateMkfs = (partUuid: string): readonly string[] => [
  "mkfs.ext4",
  "-q",
  "-F",
  "-U",
  partUuid,
  partitionPath(partUuid),
];

/** The label is set last: a filesystem that has it was made completely. */
async function hasFilesystem(host: Host, partUuid: string, label: string): Promise<boolean> {
  const probe = await host.exec({
    argv: ["blkid", "-p", "-o", "export", partitionPath(partUuid)],
    timeoutMs: minuteMs,
  });
  const lines = probe.stdout.split("\n");
  return [`UUID=${partUuid}`, `LABEL=${label}`, "TYPE=ext4"].every((line) => lines.includes(line));
}

async function checkFilesystems(
  { filesystems }: StateStep,
  { host }: StepContext,
): Promise<Result<StepState, AppError>> {
  for (const { partUuid, label } of filesystems) {
    if (!(await hasFilesystem(host, partUuid, label))) return ok("todo");
  }
  return ok("done");
}

async function makeFilesystems({ filesystems }: StateStep, { host }: StepContext): Promise<Result<void, AppError>> {
  for (const { partUuid, label } of filesystems) {
    if (await hasFilesystem(host, partUuid, label)) continue;
    const path = partitionPath(partUuid);
    for (const argv of [stateMkfs(partUuid), ["e2label", path, label], ["blockdev", "--flushbufs", path]]) {
      const done = await tool(host, argv, { timeoutMs: 30 * minuteMs });
      if (!done.ok) return done;
    }
  }
  return ok(undefined);
}

// --- the last act ---

const relabelArgv = (path: string): readonly string[] => [
  "sfdisk",
  "--part-label",
  path,
  String(STATE_NUMBER),
  STATE_NAME,
];

async function checkBootable(step: BootStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  const dump = await host.exec({ argv: ["sfdisk", "--json", step.device.path], timeoutMs: minuteMs });
  if (dump.exitCode !== 0 || !isComplete(dump)) return ok("todo");
  return whenMounted(host, partitionPath(step.espPartUuid), "vfat", async (mounted) => {
    const env = await host.files.stat(`${mounted}/${BOOT_ENV_PATH}`);
    return env.ok && env.value !== null;
  });
}

/** Named, and in both copies of the table: power lost while it was renamed leaves the old primary beside the new backup. */
const isComplete = (dump: ExecResult): boolean =>
  stateName(dump.stdout) === STATE_NAME && !/GPT table is corrupt/.test(dump.stderr);

/** From the environment on the medium's own GRUB prefers this disk; its name says complete only after that. */
async function makeBootable(step: BootStep, { host }: StepContext): Promise<Result<void, AppError>> {
  const written = await withMount(host, partitionPath(step.espPartUuid), "vfat", "rw", (mounted) =>
    host.files.write(`${mounted}/${BOOT_ENV_PATH}`, encodeBootEnv(newBootEnv(step.installation)), { mode: vfatMode }),
  );
  if (!written.ok) return written;
  const confirmed = await confirmDevices(host, [step.device]);
  if (!confirmed.ok) return confirmed;
  const named = await tool(host, relabelArgv(step.device.path));
  return named.ok ? settle(host, step.device.path) : named;
}

/**
 * Power may have been lost between the two halves of the last act; the disk booted all the same. Its name is made
 * right then, so that no installer takes it for half-made. The kernel keeps its own copy of the table meanwhile.
 */
export async function finishTable(host: Host, statePartUuid: string): Promise<Result<boolean, AppError>> {
  const argv = ["lsblk", "-ndo", "PKNAME", partitionPath(statePartUuid)];
  const parent = (await host.exec({ argv, timeoutMs: minuteMs })).stdout.trim();
  if (!/^[\w!.-]+$/.test(parent)) return ok(false);
  const dump = await host.exec({ argv: ["sfdisk", "--json", `/dev/${parent}`], timeoutMs: minuteMs });
  if (dump.exitCode !== 0 || isComplete(dump)) return ok(false);
  const [program = "", ...rest] = relabelArgv(`/dev/${parent}`);
  const named = await tool(host, [program, "--no-reread", "--no-tell-kernel", ...rest]);
  return named.ok ? ok(true) : named;
}

// --- tools ---

async function tool(
  host: Host,
  argv: readonly string[],
  more: { readonly stdin?: string | Uint8Array; readonly timeoutMs?: number } = {},
): Promise<Result<void, AppError>> {
  const ran = await host.exec({ argv, ...more });
  return ran.exitCode === 0 ? ok(undefined) : fail("tool", `${argv[0]} failed: ${wordsOf(ran)}`);
}

function wordsOf(ran: ExecResult): string {
  if (ran.failure !== undefined) return ran.failure;
  if (ran.timedOut) return "it took too long";
  const last = ran.stderr.trim().split("\n").at(-1);
  return last === undefined || last === "" ? `exit status ${ran.exitCode}` : last;
}

async function isEqual(host: Host, a: string, b: string, bytes?: number): Promise<boolean> {
  const limit = bytes === undefined ? [] : [`--bytes=${bytes}`];
  return (await host.exec({ argv: ["cmp", "--silent", ...limit, a, b], timeoutMs: 30 * minuteMs })).exitCode === 0;
}

/** For checks: what can't be mounted is not done. */
async function whenMounted(
  host: Host,
  device: string,
  type: "ext4" | "vfat",
  look: (root: string) => Promise<boolean>,
): Promise<Result<StepState, AppError>> {
  const seen = await withMount(host, device, type, "ro", async (root) => ok(await look(root)));
  return ok(seen.ok && seen.value ? "done" : "todo");
}

/** Unmounted whatever happens in between; a mount that an earlier try left behind goes first. */
async function withMount<T>(
  host: Host,
  device: string,
  type: "ext4" | "vfat",
  access: "ro" | "rw",
  work: (root: string) => Promise<Result<T, AppError>>,
): Promise<Result<T, AppError>> {
  const root = `${mountRoot}/${device.slice(device.lastIndexOf("/") + 1)}`;
  const folder = await tool(host, ["mkdir", "-p", root]);
  if (!folder.ok) return folder;
  await host.exec({ argv: ["umount", "--quiet", root] });
  const mounted = await tool(host, ["mount", "-t", type, "-o", access, device, root]);
  if (!mounted.ok) return mounted;
  const outcome = await work(root);
  const unmounted = await tool(host, ["umount", root], { timeoutMs: 10 * minuteMs });
  if (!outcome.ok) return outcome;
  if (!unmounted.ok) return unmounted;
  const flushed = await tool(host, ["blockdev", "--flushbufs", device]);
  return flushed.ok ? outcome : flushed;
}
