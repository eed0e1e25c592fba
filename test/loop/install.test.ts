/** An installation onto a real block device with the real tools, killed at any call and gone on with. */
// budget: 400 s
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readInventory } from "../../disks/driver.ts";
import { diskExecutors } from "../../disks/steps/driver.ts";
import { realHost } from "../../host/real.ts";
import { decodeBootEnv } from "../../iso/bootenv.ts";
import { formatError } from "../../kit/app-error.ts";
import type { AppError } from "../../kit/app-error.ts";
import type { Disk, Inventory, Partition } from "../../kit/disk.ts";
import type { ExecRequest, ExecResult, Host } from "../../kit/ports.ts";
import { ok } from "../../kit/result.ts";
import type { Result } from "../../kit/result.ts";
import { execute } from "../../provision/execute.ts";
import { installExecutors } from "../../provision/install/driver.ts";
import { planInstall, standingOf } from "../../provision/install/plan.ts";
import type { InstallPlan } from "../../provision/install/plan.ts";
import { memoryState, openState } from "../../state/open.ts";
import type { State } from "../../state/open.ts";
import { createHandover } from "../../supervisor/handover.ts";
import type { LoopDevice } from "./loop-device.ts";
import { attach, sh, whyNoLoop } from "./loop-device.ts";

const reason = whyNoLoop("mkfs.ext4", "mkfs.vfat", "sfdisk", "partx", "cmp", "mount", "mcopy");
if (reason !== undefined) process.stderr.write(`skipped test/loop: ${reason}\n`);

const MIB = 1024 ** 2;
const SIZE_MIB = 4608;
const text = "role: single\ninstall: {disk: {serial: LOOP}, wipe: false}\n";
const documentSha256 = createHash("sha256").update(text).digest("hex");
const folder = mkdtempSync(join(tmpdir(), "corium-install-"));
const medium = join(folder, "medium");
const bootFiles = join(folder, "boot");
const stateDir = join(folder, "state");
const identity = { serial: "LOOP", sizeBytes: SIZE_MIB * MIB };

class Killed extends Error {}

beforeAll(() => {
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
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const attached: LoopDevice[] = [];
afterEach(() => {
  for (const device of attached.splice(0)) {
    for (const line of sh("mount")
      .split("\n")
      .filter((each) => each.startsWith(device.path)))
      sh("umount", line.split(" ")[0] ?? "");
    device.detach();
  }
});

interface Row {
  readonly node: string;
  readonly uuid: string;
  readonly name?: string;
}

function tableOf(device: LoopDevice): readonly Row[] {
  const dump = spawnSync("sfdisk", ["--json", device.path], { encoding: "utf8" });
  if (dump.status !== 0) return [];
  return (JSON.parse(dump.stdout) as { partitiontable: { partitions?: Row[] } }).partitiontable.partitions ?? [];
}

/**
 * The real host. There is no udev here to make links by PARTUUID, nor has a loop device a serial: both are filled in.
 * `dieAt`: the n-th program is the last thing before the power goes.
 */
function hostOn(device: LoopDevice, dieAt = Number.POSITIVE_INFINITY): { host: Host; calls: () => number } {
  const real = realHost();
  let calls = 0;
  const partition = (uuid: string): string => {
    const table = JSON.parse(sh("sfdisk", "--json", device.path)) as {
      partitiontable: { partitions: { node: string; uuid: string }[] };
    };
    return table.partitiontable.partitions.find((each) => each.uuid.toLowerCase() === uuid)?.node ?? `/nowhere/${uuid}`;
  };
  const word = (each: string): string =>
    each.replace(/\/dev\/disk\/by-partuuid\/([0-9a-f-]{36})/, (_, uuid: string) => partition(uuid));
  const exec = async (request: ExecRequest) => {
    calls += 1;
    if (calls > dieAt) throw new Killed();
    const [program, ...rest] = request.argv;
    const argv = [program ?? "", ...rest.map(word)];
    const done = async (stdout = "") => ({ ...(await real.exec({ argv: ["true"] })), argv, stdout });
    if (program === "mount" && argv.includes("vfat"))
      return mountFat(argv.at(-2) ?? "", argv.at(-1) ?? "", argv.includes("rw"), done);
    if (program === "umount" && fat.has(argv.at(-1) ?? "")) return unmountFat(argv.at(-1) ?? "", done);
    if (program === "udevadm" && rest[0] === "info") return done("ID_SERIAL_SHORT=LOOP\n");
    if (program === "udevadm") {
      await real.exec({ argv: ["partx", "--update", device.path] });
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

async function inventoryOf(host: Host, device: LoopDevice): Promise<Result<Inventory, AppError>> {
  const read = await readInventory(host, { mode: "live" }, { diskTypes: ["loop"] });
  if (!read.ok) return read;
  const disks = read.value.disks
    .filter((disk) => disk.path === device.path)
    .map((disk): Disk => ({ ...disk, identity, isSystemDisk: false, partitions: disk.partitions.map(named(device)) }));
  return ok({ ...read.value, disks, unknown: [] });
}

/** Not every kernel has FAT: mtools copies its files out at mount, and back at umount. A cut in between loses them. */
const fat = new Map<string, { readonly device: string; readonly isWritable: boolean }>();
const isEmptyFat = (device: string): boolean =>
  spawnSync("mdir", ["-b", "-i", device, "::/"], { encoding: "utf8" }).stdout.trim() === "";

async function mountFat<T>(
  device: string,
  at: string,
  isWritable: boolean,
  done: () => Promise<T>,
): Promise<T | ExecResult> {
  if (spawnSync("minfo", ["-i", device, "::"]).status !== 0)
    return { ...((await done()) as ExecResult), exitCode: 32, stderr: "no FAT" };
  if (!isEmptyFat(device)) sh("mcopy", "-s", "-n", "-i", device, "::/*", `${at}/`);
  fat.set(at, { device, isWritable });
  return done();
}

function unmountFat<T>(at: string, done: () => Promise<T>): Promise<T> {
  const { device, isWritable } = fat.get(at) ?? { device: "", isWritable: false };
  fat.delete(at);
  const names = readdirSync(at).map((name) => join(at, name));
  if (isWritable && names.length > 0) sh("mcopy", "-s", "-D", "o", "-i", device, ...names, "::/");
  for (const name of names) rmSync(name, { recursive: true });
  return done();
}

interface Run {
  readonly plan: InstallPlan;
  readonly result: Result<void, AppError>;
  readonly calls: number;
}

/** One boot of a live system: its state is empty, only the disk remembers. */
async function install(device: LoopDevice, state: State, dieAt?: number): Promise<Run> {
  const { host, calls } = hostOn(device, dieAt);
  const inventory = await inventoryOf(realHost(), device);
  if (!inventory.ok) throw new Error(formatError(inventory.error));
  const plan = planInstall({
    document: { install: { disk: { serial: "LOOP" }, wipe: false } },
    documentSha256,
    inventory: inventory.value,
    image: { directory: medium, rootBytes: 4 * MIB, rootHash: "a".repeat(64), hashOffsetBytes: 3 * MIB },
    version: "0.1.0",
    args: "console=ttyS0",
    uuid: () => crypto.randomUUID(),
    intents: state.journal.intents(),
  });
  const begun = state.operations.begin({ kind: "install", requester: { kind: "document" }, version: "0", atMs: 1 });
  const operation = begun.ok ? begun.value.id : "";
  const handover = createHandover({
    host,
    stateDir,
    snapshotTo: (path) => state.snapshotTo(path),
    documentText: text,
    operation,
  });
  const result = await execute(
    plan.steps,
    { ...installExecutors(handover, bootFiles), ...diskExecutors },
    {
      host,
      secrets: new Map(),
      journal: state.journal,
      inventory: () => inventoryOf(realHost(), device),
    },
  );
  return { plan, result, calls: calls() };
}

/** Of the kernel: field 7 of its block statistics. */
const sectorsWritten = (device: LoopDevice): number =>
  Number(
    readFileSync(device.path.replace("/dev/", "/sys/block/") + "/stat", "utf8")
      .trim()
      .split(/\s+/)[6],
  );

const error = ({ result }: Run): string => (result.ok ? "" : formatError(result.error));

async function look(device: LoopDevice): Promise<void> {
  const inventory = await inventoryOf(realHost(), device);
  const [disk] = inventory.ok ? inventory.value.disks : [];
  if (disk === undefined) throw new Error("no disk");
  expect(standingOf(disk)).toBe("installed");
  const part = (number: number): string => disk.partitions.find((each) => each.number === number)?.path ?? "";
  const at = mkdtempSync(join(folder, "look-"));
  const mounted = (number: number, see: () => void): void => {
    sh("mount", "-o", "ro", part(number), at);
    try {
      see();
    } finally {
      sh("umount", at);
    }
  };
  const fatFiles = (device: string, to: string, see: () => void): void => {
    sh("mcopy", "-s", "-n", "-i", device, "::/*", `${to}/`);
    see();
    for (const name of readdirSync(to)) rmSync(join(to, name), { recursive: true });
  };
  sh("cmp", "-n", String(4 * MIB), join(medium, "root.img"), part(5));
  fatFiles(part(2), at, () => {
    const env = decodeBootEnv(readFileSync(join(at, "corium/env")));
    expect(env.ok && env.value).toMatchObject({ good: "A", state: { A: "good", B: "void" } });
    expect(readFileSync(join(at, "EFI/BOOT/BOOTX64.EFI"), "utf8")).toBe("shimx64.efi");
    expect(readFileSync(join(at, "corium/id.cfg"), "utf8")).toBe(`set installation=${env.ok ? env.value.id : ""}\n`);
  });
  mounted(3, () => expect(readFileSync(join(at, "slot.env"), "utf8")).toContain("args=console=ttyS0\n"));
  mounted(7, () => {
    expect(readFileSync(join(at, "etc/corium/config.yaml"), "utf8")).toBe(text);
    expect(readFileSync(join(at, "api/server.pem"), "utf8")).toBe("identity");
  });
  // Through a copy: to open a WAL database one has to write beside it.
  sh("mount", part(7), at);
  try {
    const opened = openState({ database: join(at, "corium.db"), marker: join(at, "bootstrapped") });
    expect(opened.ok && opened.value.claim.get()?.fingerprint).toBe("SHA256:x");
    expect(opened.ok && opened.value.operations.list().map(({ phase }) => phase)).toEqual(["succeeded"]);
    if (opened.ok) opened.value.close();
  } finally {
    sh("umount", at);
  }
  for (const number of [3, 7, 8]) sh("e2fsck", "-fn", part(number));
}

function liveState(): State {
  const state = memoryState();
  state.claim.record({ operatorCA: "x", fingerprint: "SHA256:x", atMs: 1, by: "enroll" });
  return state;
}

const blank = (): LoopDevice => {
  const device = attach(SIZE_MIB);
  attached.push(device);
  return device;
};

describe.skipIf(reason !== undefined)("installing to a disk [needs root, loop devices]", () => {
  test("B018, B097, B109, B176: everything is on it, read back, and a second run changes nothing", async () => {
    const device = blank();
    const run = await install(device, liveState());
    expect(error(run)).toBe("");
    await look(device);
    const before = sectorsWritten(device);
    const again = await install(device, liveState());
    expect(again.plan.findings.map(({ code }) => code)).toEqual(["installed"]);
    expect(sectorsWritten(device)).toBe(before);
  }, 120_000);

  test("B019, B020, B021: a disk with sectors of 4096 bytes gets its own table and a FAT of that sector size", async () => {
    const device = attach(SIZE_MIB, 4096);
    attached.push(device);
    expect(error(await install(device, liveState()))).toBe("");
    await look(device);
    const [, esp] = tableOf(device);
    expect(sh("blkid", "-p", "-s", "BLOCK_SIZE", "-o", "value", esp?.node ?? "")).toBe("4096");
  }, 120_000);

  test("power lost after any program: the next boot goes on with its own disk, without a second consent", async () => {
    const whole = blank();
    const total = (await install(whole, liveState())).calls;
    for (const device of attached.splice(0)) device.detach();
    expect(total).toBeGreaterThan(60);
    // A prime, so that runs of one tool are hit at different places.
    for (let dieAt = 1; dieAt < total; dieAt += 11) {
      const device = blank();
      await expect(install(device, liveState(), dieAt)).rejects.toBeInstanceOf(Killed);
      for (const at of fat.keys()) for (const name of readdirSync(at)) rmSync(join(at, name), { recursive: true });
      fat.clear();
      for (const line of sh("mount")
        .split("\n")
        .filter((each) => each.startsWith(device.path))) {
        sh("umount", line.split(" ")[0] ?? "");
      }
      // A boot reads the table anew; after sfdisk the kernel of this machine may still have none. Early cuts left none.
      spawnSync("partx", ["--update", device.path]);
      const run = await install(device, liveState());
      const [finding] = run.plan.findings;
      if (finding?.code === "installed") {
        // The very last act was done: there is nothing left to go on with.
        expect(dieAt).toBeGreaterThan(total - 12);
        await look(device);
        break;
      }
      expect({ dieAt, findings: run.plan.findings.filter(({ severity }) => severity === "error") }).toEqual({
        dieAt,
        findings: [],
      });
      expect({ dieAt, error: error(run) }).toEqual({ dieAt, error: "" });
      await look(device);
      for (const each of attached.splice(0)) each.detach();
    }
  }, 300_000);
});
