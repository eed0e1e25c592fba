/**
 * An installation onto loop devices with the real tools. What a machine has and a loop device does not is filled in:
 * serials, links by PARTUUID (there is no udev), FAT where the kernel has none, and md, which few test machines have.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readInventory } from "../../disks/driver.ts";
import { diskExecutors } from "../../disks/steps/driver.ts";
import { realHost } from "../../host/real.ts";
import type { AppError } from "../../kit/app-error.ts";
import { formatError } from "../../kit/app-error.ts";
import type { Disk, Inventory, Partition } from "../../kit/disk.ts";
import type { ExecRequest, ExecResult, Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import { execute } from "../../provision/execute.ts";
import { installExecutors } from "../../provision/install/driver.ts";
import type { InstallPlan } from "../../provision/install/plan.ts";
import { planInstall } from "../../provision/install/plan.ts";
import { readMarks } from "../../provision/install/remains/driver.ts";
import type { State } from "../../state/open.ts";
import { memoryState } from "../../state/open.ts";
import { createCarryOver } from "../../supervisor/carry-over.ts";
import type { LoopDevice } from "./loop-device.ts";
import { attach, sh } from "./loop-device.ts";
import { sha256Of } from "../../kit/sha256.ts";

export const MIB = 1024 ** 2;
export const SIZE_MIB = 4608;
const folder = mkdtempSync(join(tmpdir(), "corium-install-"));
export const medium = join(folder, "medium");
const bootFiles = join(folder, "boot");
const stateDir = join(folder, "state");

/** Thrown in place of a program: the power went. */
export class Killed extends Error {}

/** What the live system brings along. */
export function makeMedium(): void {
  for (const path of [medium, bootFiles, join(stateDir, "api")]) mkdirSync(path, { recursive: true });
  const noise = (bytes: number, seed: number): Uint8Array =>
    Uint8Array.from({ length: bytes }, (_, at) => (at * seed + (at >> 8)) & 0xff);
  for (const [name, bytes] of [
    ["root.img", 4 * MIB],
    ["vmlinuz", 100_000],
    ["initrd", 200_000],
  ] as const) {
    writeFileSync(join(medium, name), noise(bytes, bytes % 251));
  }
  writeFileSync(join(bootFiles, "boot.img"), noise(512, 7));
  writeFileSync(join(bootFiles, "core.img"), noise(60_000, 11));
  for (const name of ["shimx64.efi", "grubx64.efi", "mmx64.efi", "grub.cfg"])
    writeFileSync(join(bootFiles, name), name);
  writeFileSync(join(stateDir, "api", "server.pem"), "identity");
}
export const dropMedium = (): void => rmSync(folder, { recursive: true, force: true });
export const lookFolder = (): string => mkdtempSync(join(folder, "look-"));

const attached: LoopDevice[] = [];

export function blank(sectorBytes?: 512 | 4096): LoopDevice {
  const device = attach(SIZE_MIB, sectorBytes);
  attached.push(device);
  return device;
}

function unmountAll(device: LoopDevice): void {
  for (const line of sh("mount")
    .split("\n")
    .filter((each) => each.startsWith(device.path)))
    sh("umount", line.split(" ")[0] ?? "");
}

export function detachAll(): void {
  for (const device of attached.splice(0)) {
    unmountAll(device);
    device.detach();
  }
  arrays.clear();
}

/** The power comes back: nothing is mounted or running, and the kernel reads the tables anew. */
export function boot(devices: readonly LoopDevice[]): void {
  for (const at of fat.keys()) for (const name of readdirSync(at)) rmSync(join(at, name), { recursive: true });
  fat.clear();
  for (const device of devices) {
    unmountAll(device);
    // After sfdisk the kernel of this machine may still have none; early cuts left none.
    spawnSync("partx", ["--update", device.path]);
  }
  for (const array of arrays.values()) array.isRunning = false;
}

interface Row {
  readonly node: string;
  readonly uuid: string;
  readonly name?: string;
}

export function tableOf(device: LoopDevice): readonly Row[] {
  const dump = spawnSync("sfdisk", ["--json", device.path], { encoding: "utf8" });
  if (dump.status !== 0) return [];
  return (JSON.parse(dump.stdout) as { partitiontable: { partitions?: Row[] } }).partitiontable.partitions ?? [];
}

/** By UUID. What is written to an array lands on its first member, which is enough to see what is written where. */
const arrays = new Map<string, { readonly name: string; readonly members: readonly string[]; isRunning: boolean }>();

function mdadm(argv: readonly string[]): { readonly exitCode: number; readonly stdout?: string } {
  const value = (key: string): string => argv.find((each) => each.startsWith(`--${key}=`))?.slice(key.length + 3) ?? "";
  const last = argv.at(-1) ?? "";
  if (argv.includes("--create")) {
    const members = argv.slice(argv.indexOf("--run") + 1);
    arrays.set(value("uuid"), { name: value("name"), members, isRunning: true });
    return { exitCode: 0 };
  }
  const found = [...arrays].find(([uuid, { members }]) => last.includes(uuid) || members.includes(last));
  if (found === undefined) return { exitCode: 1 };
  const [uuid, array] = found;
  if (argv.includes("--assemble")) array.isRunning = true;
  if (argv.includes("--detail") && !array.isRunning) return { exitCode: 1 };
  const roles = array.members.map((member, at) => `MD_DEVICE_${at}_ROLE=${at}\nMD_DEVICE_${at}_DEV=${member}\n`);
  return { exitCode: 0, stdout: `MD_UUID=${uuid}\nMD_DEVICES=${roles.length}\n${roles.join("")}` };
}

const serialOf = (at: number): string => (at === 0 ? "LOOP" : `LOOP${at + 1}`);

/** `dieAt`: the n-th program is the last thing before the power goes. */
export function hostOn(
  devices: readonly LoopDevice[],
  dieAt = Number.POSITIVE_INFINITY,
): { readonly host: Host; readonly calls: () => number } {
  const real = realHost();
  let calls = 0;
  const partition = (uuid: string): string => {
    const rows = devices.flatMap(tableOf);
    return rows.find((each) => each.uuid.toLowerCase() === uuid)?.node ?? `/nowhere/${uuid}`;
  };
  const running = (path: string): string => {
    const array = [...arrays].find(([uuid, { name }]) => path.endsWith(uuid) || path.endsWith(`/${name}`))?.[1];
    return array?.isRunning === true ? (array.members[0] ?? path) : path;
  };
  const word = (each: string): string =>
    each
      .replace(/\/dev\/disk\/by-partuuid\/([0-9a-f-]{36})/, (_, uuid: string) => partition(uuid))
      .replace(/\/dev\/(md\/corium-[a-z-]+|disk\/by-id\/md-uuid-[0-9a-f:]+)/, running);
  const exec = async (request: ExecRequest): Promise<ExecResult> => {
    calls += 1;
    if (calls > dieAt) throw new Killed();
    const [program, ...rest] = request.argv;
    const done = async (stdout = ""): Promise<ExecResult> => ({
      ...(await real.exec({ argv: ["true"] })),
      argv: request.argv,
      stdout,
    });
    if (program === "mdadm") {
      const argv = rest.map((each) => (each.includes("/md") ? each : word(each)));
      return { ...(await done()), ...mdadm(argv) };
    }
    const argv = [program ?? "", ...rest.map(word)];
    if (program === "mount" && argv.includes("vfat"))
      return mountFat(
        argv.at(-2) ?? "",
        argv.at(-1) ?? "",
        argv.some((each) => /^rw(,|$)/.test(each)),
        done,
      );
    if (program === "umount" && fat.has(argv.at(-1) ?? "")) return unmountFat(argv.at(-1) ?? "", done);
    if (program === "udevadm" && rest[0] === "info") {
      const at = devices.findIndex(({ path }) => argv.some((each) => each === path || each === `--name=${path}`));
      return done(at === -1 ? "" : `ID_SERIAL_SHORT=${serialOf(at)}\n`);
    }
    if (program === "udevadm") {
      for (const { path } of devices) await real.exec({ argv: ["partx", "--update", path] });
      return done();
    }
    return real.exec({ ...request, argv });
  };
  return { host: { ...real, exec }, calls: () => calls };
}

/** lsblk has names and UUIDs of partitions from udev. */
function named(device: LoopDevice): (partition: Partition) => Partition {
  const table = tableOf(device);
  return (partition) => {
    const found = table.find(({ node }) => node === partition.path);
    return { ...partition, ...(found && { partUuid: found.uuid.toLowerCase(), label: found.name ?? "" }) };
  };
}

export async function inventoryOf(devices: readonly LoopDevice[]): Promise<Result<Inventory, AppError>> {
  const read = await readInventory(realHost(), { mode: "live" }, { diskTypes: ["loop"] });
  if (!read.ok) return read;
  const disks = read.value.disks.flatMap((disk): Disk[] => {
    const at = devices.findIndex(({ path }) => path === disk.path);
    const device = devices[at];
    if (device === undefined) return [];
    const identity = { serial: serialOf(at), sizeBytes: disk.sizeBytes };
    return [{ ...disk, identity, isSystemDisk: false, partitions: disk.partitions.map(named(device)) }];
  });
  return ok({ ...read.value, disks, unknown: [] });
}

/** Not every kernel has FAT: mtools copies its files out at mount, and back at umount. A cut in between loses them. */
const fat = new Map<string, { readonly device: string; readonly isWritable: boolean }>();
const isEmptyFat = (device: string): boolean =>
  spawnSync("mdir", ["-b", "-i", device, "::/"], { encoding: "utf8" }).stdout.trim() === "";

async function mountFat(
  device: string,
  at: string,
  isWritable: boolean,
  done: () => Promise<ExecResult>,
): Promise<ExecResult> {
  if (spawnSync("minfo", ["-i", device, "::"]).status !== 0)
    return { ...(await done()), exitCode: 32, stderr: "no FAT" };
  if (!isEmptyFat(device)) sh("mcopy", "-s", "-n", "-i", device, "::/*", `${at}/`);
  fat.set(at, { device, isWritable });
  return done();
}

function unmountFat(at: string, done: () => Promise<ExecResult>): Promise<ExecResult> {
  const { device, isWritable } = fat.get(at) ?? { device: "", isWritable: false };
  fat.delete(at);
  const names = readdirSync(at).map((name) => join(at, name));
  if (isWritable && names.length > 0) sh("mcopy", "-s", "-D", "o", "-i", device, ...names, "::/");
  for (const name of names) rmSync(name, { recursive: true });
  return done();
}

export interface Run {
  readonly plan: InstallPlan;
  readonly result: Result<void, AppError>;
  readonly calls: number;
  /** How many there had been at the end of each step. */
  readonly stepEnds: readonly number[];
}

export const errorOf = ({ result }: Run): string => (result.ok ? "" : formatError(result.error));

/** One boot of a live system: its state is empty, only the disks remember. Two devices: a mirrored system. */
export async function install(devices: readonly LoopDevice[], dieAt?: number): Promise<Run> {
  const state = liveState();
  const { host, calls } = hostOn(devices, dieAt);
  const inventory = await inventoryOf(devices);
  if (!inventory.ok) throw new Error(formatError(inventory.error));
  const text = documentFor(devices);
  const mirror = devices.length > 1 ? { mirror: { serial: serialOf(1) } } : {};
  const plan = planInstall({
    document: { install: { disk: { serial: serialOf(0) }, ...mirror, wipe: false } },
    documentSha256: sha256Of(text),
    inventory: inventory.value,
    image: { directory: medium, rootBytes: 4 * MIB, rootHash: "a".repeat(64), hashOffsetBytes: 3 * MIB },
    version: "0.1.0",
    args: "console=ttyS0",
    uuid: () => crypto.randomUUID(),
    intents: state.journal.intents(),
    marks: await readMarks(host, inventory.value),
  });
  const begun = state.operations.begin({ kind: "install", requester: { kind: "document" }, version: "0", atMs: 1 });
  const operation = begun.ok ? begun.value.id : "";
  const carryOver = createCarryOver({
    host,
    stateDir,
    snapshotTo: (path) => state.snapshotTo(path),
    documentText: text,
    operation,
  });
  const stepEnds: number[] = [];
  const result = await execute(
    plan.steps,
    { ...installExecutors(carryOver, bootFiles), ...diskExecutors },
    {
      host,
      secrets: new Map(),
      journal: state.journal,
      inventory: () => inventoryOf(devices),
      onStep: (_, stepState) => {
        if (stepState === "done") stepEnds.push(calls());
      },
    },
  );
  return { plan, result, calls: calls(), stepEnds };
}

export const documentFor = (devices: readonly LoopDevice[]): string =>
  `role: single\ninstall: {disk: {serial: LOOP}${devices.length > 1 ? ", mirror: {serial: LOOP2}" : ""}, wipe: false}\n`;

function liveState(): State {
  const state = memoryState();
  state.claim.record({ operatorCA: "x", fingerprint: "SHA256:x", atMs: 1, by: "enroll" });
  return state;
}

/** Of the kernel: field 7 of its block statistics. */
export const sectorsWritten = (device: LoopDevice): number =>
  Number(
    readFileSync(device.path.replace("/dev/", "/sys/block/") + "/stat", "utf8")
      .trim()
      .split(/\s+/)[6],
  );
