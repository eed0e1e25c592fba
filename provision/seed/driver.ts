/**
 * Source 2 without cloud-init: seeds on removable media (config.yaml on CORIUM, user-data on CIDATA). Each is mounted
 * read-only at a place of ours and unmounted again. Whatever touches a medium is a program with a timeout: a medium
 * that hangs holds up that program, never this one.
 */
import type { SeedFile, SeedReading } from "../../config/source.ts";
import { UNUSED_FILES, unusedFile } from "../../config/source.ts";
import { howItEnded, readTree } from "../../disks/driver.ts";
import { parseBlkid } from "../../disks/parse.ts";
import { type AppError, appError, fail } from "../../kit/app-error.ts";
import type { BootFacts } from "../../kit/paths.ts";
import type { ExecResult, Host } from "../../kit/ports.ts";
import { ok, type Result } from "../../kit/result.ts";
import type { SeedDevice, SeedLabel } from "./select.ts";
import { chooseFile, LISTING_FORMAT, parseListing, SEED_FILES, seedDevices, seedLabel } from "./select.ts";

export interface SeedOptions {
  readonly boot?: BootFacts;
  /** The mount point: one for each program, since two may look at once. */
  readonly folder: string;
}

const MAX_BYTES = 1024 * 1024;
const SETTLE_MS = 30_000;
const USB_WAIT_MS = 10_000;
const USB_POLL_MS = 500;
const MEDIUM_TIMEOUT_MS = 30_000;

/** noload: reading must not write, and replaying the journal would. */
const MOUNT_OPTIONS: Readonly<Record<string, string>> = {
  iso9660: "ro,nosuid,nodev,noexec",
  vfat: "ro,nosuid,nodev,noexec",
  ext4: "ro,nosuid,nodev,noexec,noload",
};

/** Reads again only when a medium was changed: a disc would spin up, and a hung stick hang one more program, each time. */
export function seedReader(host: Host, options: SeedOptions): () => Promise<Result<SeedReading, AppError>> {
  let last: { readonly fingerprint: string; readonly reading: SeedReading } | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  const read = async (): Promise<Result<SeedReading, AppError>> => {
    await waitForDevices(host);
    const tree = await readTree(host);
    if (!tree.ok) return tree;
    const devices = seedDevices(tree.value, await mediumPaths(host, options.boot));
    if (last?.fingerprint === devices.fingerprint) return ok(last.reading);
    const reading = await readAll(host, options.folder, devices.candidates);
    const notes = devices.fixed.map(
      ({ path, label }) => `${path} is labelled ${label}, but seeds are read from removable media only`,
    );
    last = { fingerprint: devices.fingerprint, reading: { ...reading, notes: [...notes, ...reading.notes] } };
    return ok(last.reading);
  };
  return () => {
    const mine = turn.then(read);
    turn = mine.catch(() => undefined);
    return mine;
  };
}

/** Without udev there is nothing to wait for. A stick is a USB device some seconds before it is a disk. */
async function waitForDevices(host: Host): Promise<void> {
  await host.exec({ argv: ["udevadm", "settle", `--timeout=${SETTLE_MS / 1000}`], timeoutMs: SETTLE_MS + 5_000 });
  const endMs = host.clock.monotonicMs() + USB_WAIT_MS;
  while ((await hasUsbWithoutDisk(host)) && host.clock.monotonicMs() < endMs) await host.clock.sleep(USB_POLL_MS);
}

async function hasUsbWithoutDisk(host: Host): Promise<boolean> {
  const drivers = ["usb-storage", "uas"].map((name) => host.files.list(`/sys/bus/usb/drivers/${name}`));
  const interfaces = (await Promise.all(drivers))
    .flatMap((listed) => (listed.ok ? listed.value : []))
    .filter((name) => /^\d+-[\d.]+:\d+\.\d+$/.test(name));
  if (interfaces.length === 0) return false;
  const blocks = await host.files.list("/sys/class/block");
  const names = blocks.ok ? blocks.value : [];
  const links = await Promise.all(names.map((name) => host.files.readlink(`/sys/class/block/${name}`)));
  return interfaces.some((each) => !links.some((link) => link.ok && link.value.includes(`/${each}/`)));
}

async function mediumPaths(host: Host, boot: BootFacts | undefined): Promise<readonly string[]> {
  if (boot?.medium === undefined) return [];
  const real = await host.files.realpath(boot.medium.device);
  return [boot.medium.device, ...(real.ok ? [real.value] : [])];
}

async function readAll(host: Host, folder: string, devices: readonly SeedDevice[]): Promise<SeedReading> {
  const files: SeedFile[] = [];
  const notes: string[] = [];
  for (const device of devices) {
    const probed = await probe(host, device, notes);
    const label = seedLabel(probed.label);
    if (label === undefined) continue;
    // A partition of the live system's own stick, which shows the same once more.
    if (device.isOnBootMedium && probed.filesystem === "iso9660") continue;
    const origin = `${SEED_FILES[label]} on ${device.path} (${label})`;
    const read = await readSeed(host, folder, { ...device, ...probed }, label);
    const names = read.ok ? read.value.names : [];
    const unused = UNUSED_FILES.filter((name) => names.includes(name));
    notes.push(...unused.map((name) => unusedFile(name, `${name} on ${device.path} (${label})`)));
    const content = read.ok ? ok(read.value.bytes) : read;
    if (content.ok && content.value === null)
      notes.push(`${device.path} is labelled ${label}, but has no ${SEED_FILES[label]}`);
    else if (!content.ok || content.value !== null) {
      files.push({ origin, isOurs: label === "CORIUM", content: content as SeedFile["content"] });
    }
  }
  return { files, notes };
}

type Probed = Pick<SeedDevice, "label" | "filesystem">;

/** By the device itself. One that can't be read is what udev took it for: a seed then fails at the mount. */
async function probe(host: Host, { path, label, filesystem }: SeedDevice, notes: string[]): Promise<Probed> {
  const result = await host.exec({ argv: ["blkid", "-p", "-o", "export", path], timeoutMs: MEDIUM_TIMEOUT_MS });
  const [found] = result.exitCode === 0 ? parseBlkid(result.stdout) : [];
  if (result.exitCode === 0 && found !== undefined) {
    return { filesystem: found.type, ...(found.label === undefined ? {} : { label: found.label }) };
  }
  // 2: nothing on it, no disc in the drive, or an error of reading: then udev may have read it before.
  if (result.exitCode === 2 && seedLabel(label) === undefined) return {};
  if (result.exitCode !== 0 && result.exitCode !== 2)
    notes.push(`${path} can't be searched for a seed: ${howItEnded(result)}`);
  return { ...(label === undefined ? {} : { label }), ...(filesystem === undefined ? {} : { filesystem }) };
}

interface SeedContent {
  /** `null`: the file is not there. */
  readonly bytes: Uint8Array | null;
  /** Of all that is at the top. */
  readonly names: readonly string[];
}

async function readSeed(
  host: Host,
  folder: string,
  device: SeedDevice,
  label: SeedLabel,
): Promise<Result<SeedContent, AppError>> {
  const { path, filesystem = "no filesystem" } = device;
  const options = MOUNT_OPTIONS[filesystem];
  if (options === undefined) {
    return fail("seed", `${path} holds ${filesystem}, which is not read`, { hint: "make it FAT, ISO 9660 or ext4" });
  }
  const left = await unmountLeft(host, folder);
  if (!left.ok) return left;
  const made = await host.files.mkdir(folder, { mode: 0o700 });
  if (!made.ok) return made;
  // The live system's mount claims its whole stick; a loop device reads a partition of it without a claim.
  const how = device.isOnBootMedium ? `${options},loop` : options;
  const mounted = await run(host, ["mount", "-t", filesystem, "-o", how, path, folder]);
  const content = mounted.exitCode === 0 ? await readFile(host, folder, path, label) : broken(path, "mounted", mounted);
  // Also after a mount that failed: it may have been killed when all was done but its exit.
  const unmounted = await unmountLeft(host, folder);
  return content.ok && !unmounted.ok ? unmounted : content;
}

async function readFile(
  host: Host,
  folder: string,
  path: string,
  label: SeedLabel,
): Promise<Result<SeedContent, AppError>> {
  const listed = await run(host, ["find", folder, "-mindepth", "1", "-maxdepth", "1", "-printf", LISTING_FORMAT]);
  if (listed.exitCode !== 0) return broken(path, "listed", listed);
  const files = parseListing(listed.stdout);
  const names = files.map(({ name }) => name);
  const file = chooseFile(label, files);
  if (file === undefined) return ok({ bytes: null, names });
  if (file.type !== "f") return fail("seed", `${file.name} on ${path} is not a plain file`);
  if (file.sizeBytes > MAX_BYTES) return fail("seed", `${file.name} on ${path} is larger than 1 MiB`);
  // As text, for what a program prints is text.
  const read = await run(host, ["base64", "--wrap=0", `${folder}/${file.name}`]);
  if (read.exitCode !== 0) return broken(path, "read", read);
  return ok({ bytes: new Uint8Array(Buffer.from(read.stdout, "base64")), names });
}

/** A hung filesystem is detached at least: nothing new reaches it. */
async function unmountLeft(host: Host, folder: string): Promise<Result<void, AppError>> {
  const mounts = await host.files.readText("/proc/self/mounts");
  if (!mounts.ok) return mounts;
  const isMounted = mounts.value.split("\n").some((line) => line.split(" ")[1] === folder);
  if (!isMounted) return ok(undefined);
  const plain = await run(host, ["umount", folder]);
  if (plain.exitCode === 0) return ok(undefined);
  const lazy = await run(host, ["umount", "--lazy", folder]);
  return lazy.exitCode === 0 ? ok(undefined) : fail("seed", `${folder} can't be unmounted: ${howItEnded(lazy)}`);
}

const run = (host: Host, argv: readonly string[]): Promise<ExecResult> =>
  host.exec({ argv, timeoutMs: MEDIUM_TIMEOUT_MS });

const broken = (path: string, what: string, result: ExecResult): { readonly ok: false; readonly error: AppError } => ({
  ok: false,
  error: appError("seed", `${path} can't be ${what}: ${howItEnded(result)}`, {
    hint: "the medium may be damaged: write it again, or take it away",
  }),
});
