/** The steps of disks/ on real block devices with the real tools. Arrays need md in the kernel: that is for VMs. */
import { spawn, spawnSync } from "node:child_process";
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { filesystemArgv, labelArgv, mkfsArgv } from "../../disks/argv.ts";
import { readInventory } from "../../disks/driver.ts";
import { filesystemLabel } from "../../disks/label.ts";
import type { DiskFilesystemStep, DiskWipeStep } from "../../disks/model.ts";
import { diskExecutors } from "../../disks/steps/driver.ts";
import { realHost } from "../../host/real.ts";
import { formatError } from "../../kit/app-error.ts";
import type { AppError } from "../../kit/app-error.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import type { Result } from "../../kit/result.ts";
import type { StepBase, StepContext, StepExecutor } from "../../kit/step.ts";
import { planStorage } from "../../provision/storage.ts";
import { countedUuids, plainDisk, storageDocument } from "../machines/machines.ts";
import type { LoopDevice } from "./loop-device.ts";
import { attach, sh, whyNoLoop } from "./loop-device.ts";

const reason = whyNoLoop("mkfs.ext4", "tune2fs", "e2fsck", "mkfs.xfs", "xfs_admin", "xfs_repair", "sfdisk", "mdadm");
if (reason !== undefined) process.stderr.write(`skipped test/loop: ${reason}\n`);

// Real tools on real devices: slow when the machine is busy, and no verdict on the code.
setDefaultTimeout(120_000);

const host = realHost();
const context: StepContext = { host, secrets: new Map(), report: () => {} };
const attached: LoopDevice[] = [];

afterEach(() => {
  for (const device of attached.splice(0)) device.detach();
});

function disk(sizeMib = 64): LoopDevice {
  const device = attach(sizeMib);
  attached.push(device);
  return device;
}

function value<T>(result: Result<T, AppError>): T {
  if (!result.ok) throw new Error(formatError(result.error));
  return result.value;
}

const bound = <S extends StepBase>(executor: StepExecutor<S>, step: S) => ({
  check: async () => value(await executor.check(step, context)),
  run: async () => value(await executor.run(step, context)),
});

/** Loop devices have neither serial nor links: what stands in for one is the size, and the path that must match. */
async function inventory(devices: readonly LoopDevice[]): Promise<Inventory> {
  const read = value(await readInventory(host, { mode: "disk" }, { diskTypes: ["loop"] }));
  const paths = devices.map((device) => device.path);
  const disks = read.disks
    .filter((each) => paths.includes(each.path))
    .map((each): Disk => ({ ...each, identity: { ...each.identity, serial: each.path } }));
  return { ...read, disks };
}

const wipeStep = (device: LoopDevice): DiskWipeStep => ({
  kind: "disk:wipe",
  id: "disk:x:wipe",
  title: "wipe",
  device: { path: device.path },
  destroys: [],
});

const filesystemStep = (device: LoopDevice, filesystem: "ext4" | "xfs"): DiskFilesystemStep => ({
  kind: "disk:filesystem",
  id: "disk:x:filesystem",
  title: "mkfs",
  device: { path: device.path },
  filesystem,
  uuid: "11111111-2222-4333-8444-555555555555",
  label: filesystemLabel("x", filesystem),
  destroys: [],
});

const isClean = (device: LoopDevice, filesystem: "ext4" | "xfs"): boolean =>
  spawnSync(
    filesystem === "ext4" ? "e2fsck" : "xfs_repair",
    filesystem === "ext4" ? ["-fn", device.path] : ["-n", device.path],
  ).status === 0;

/** Starts a program and kills it after so many milliseconds, as a power cut would. */
async function killed(argv: readonly string[], afterMs: number): Promise<boolean> {
  const [program = "", ...rest] = argv;
  const child = spawn(program, rest, {
    stdio: "ignore",
    env: { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` },
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), afterMs);
  const signal = await new Promise((resolve) => child.on("exit", (_code, how) => resolve(how)));
  clearTimeout(timer);
  return signal === "SIGKILL";
}

describe.skipIf(reason !== undefined)("disk:filesystem on a loop device", () => {
  for (const filesystem of ["ext4", "xfs"] as const) {
    const sizeMib = filesystem === "ext4" ? 64 : 512;

    test(`${filesystem}: made with the UUID and label asked for, clean, and done`, async () => {
      const device = disk(sizeMib);
      const step = filesystemStep(device, filesystem);
      const { check, run } = bound(diskExecutors["disk:filesystem"], step);
      expect(await check()).toBe("todo");
      await run();
      expect(await check()).toBe("done");
      expect(isClean(device, filesystem)).toBe(true);
      expect(sh("blkid", "-p", "-s", "UUID", "-s", "LABEL", "-o", "export", device.path)).toContain(
        `LABEL=corium-x\nUUID=${step.uuid}`,
      );
    });

    test(`${filesystem}: mkfs ended but power went before the label: made again`, async () => {
      const device = disk(sizeMib);
      const step = filesystemStep(device, filesystem);
      const { check, run } = bound(diskExecutors["disk:filesystem"], step);
      sh(...mkfsArgv(step));
      expect(sh("blkid", "-p", "-s", "UUID", "-o", "value", device.path)).toBe(step.uuid);
      expect(await check()).toBe("todo");
      await run();
      expect(await check()).toBe("done");
    });

    test(`${filesystem}: killed at any moment: never done unless it is clean, and done after it is resumed`, async () => {
      const device = disk(sizeMib);
      const step = filesystemStep(device, filesystem);
      const { check, run } = bound(diskExecutors["disk:filesystem"], step);
      // Slow enough to be hit in the middle: the journal and the inode tables are written out, not left for later.
      const slow = filesystem === "ext4" ? ["-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"] : ["-K"];
      const [program = "", ...rest] = mkfsArgv(step);
      let cut = 0;
      for (let afterMs = 0; afterMs < 24; afterMs += 3) {
        spawnSync("wipefs", ["-a", device.path]);
        if (await killed([program, ...slow, ...rest], afterMs)) cut += 1;
        expect(await check()).toBe("todo");
        await run();
        expect(await check()).toBe("done");
        expect(isClean(device, filesystem)).toBe(true);
      }
      expect(cut).toBeGreaterThan(0);
    }, 120_000);

    test(`${filesystem}: the label alone, or the UUID alone, is not done`, async () => {
      const device = disk(sizeMib);
      const step = filesystemStep(device, filesystem);
      const { check } = bound(diskExecutors["disk:filesystem"], step);
      const other = { ...step, uuid: "99999999-2222-4333-8444-555555555555" };
      for (const argv of filesystemArgv(other)) sh(...argv);
      expect(await check()).toBe("todo");
      for (const argv of filesystemArgv(step)) sh(...argv);
      expect(await check()).toBe("done");
      sh(...labelArgv({ ...step, label: "other" }));
      expect(await check()).toBe("todo");
    });
  }
});

/** What a disk may hold, by the tools that put it there. */
const contents: Readonly<Record<string, (device: LoopDevice) => void>> = {
  ext4: (device) => void sh("mkfs.ext4", "-q", "-F", "-L", "photos", device.path),
  "a partition table with a filesystem in it": (device) => partitioned(device),
  "nothing but a backup GPT": (device) => {
    partitioned(device);
    sh("dd", "if=/dev/zero", `of=${device.path}`, "bs=1M", "count=32", "conv=notrunc,fsync");
    spawnSync("blockdev", ["--rereadpt", device.path]);
  },
  swap: (device) => void sh("mkswap", device.path),
  "an md 1.0 superblock at the end over ext4": (device) => {
    sh("mkfs.ext4", "-q", "-F", device.path, "32M");
    superblock10(device);
  },
};

function partitioned(device: LoopDevice): void {
  spawnSync("sfdisk", ["--quiet", device.path], { input: "label: gpt\nstart=1MiB, size=20MiB\n" });
  const part = `${device.path}p1`;
  if (spawnSync("test", ["-b", part]).status === 0) sh("mkfs.ext4", "-q", "-F", "-L", "inner", part);
}

/** The kernel here may have no md, so mdadm can't create: the magic and a valid superblock are written by hand. */
function superblock10(device: LoopDevice): void {
  const sectors = Number(sh("blockdev", "--getsz", device.path));
  const offset = ((sectors - 16) & ~7) * 512;
  const sb = new DataView(new ArrayBuffer(256));
  sb.setUint32(0, 0xa92b4efc, true);
  sb.setUint32(4, 1, true);
  for (let at = 16; at < 32; at += 1) sb.setUint8(at, at);
  sb.setBigUint64(144, BigInt(offset / 512), true);
  let sum = 0;
  for (let at = 0; at < 256; at += 4) sum += sb.getUint32(at, true);
  sb.setUint32(216, ((sum & 0xffffffff) + Math.floor(sum / 2 ** 32)) >>> 0, true);
  const written = spawnSync("dd", [`of=${device.path}`, "bs=512", `seek=${offset / 512}`, "conv=notrunc,fsync"], {
    input: new Uint8Array(sb.buffer),
  });
  expect(written.status).toBe(0);
}

describe.skipIf(reason !== undefined)("a disk that holds data, on a loop device", () => {
  for (const [what, make] of Object.entries(contents)) {
    test(`${what}: refused and byte-identical without wipe; blank with it`, async () => {
      const device = disk();
      make(device);
      const before = device.digest();
      const plan = (machine: Inventory, wipe: boolean) =>
        planStorage({
          document: storageDocument({ disks: [plainDisk({ device: device.path, wipe })] }),
          inventory: machine,
          owned: [],
          intents: [],
          uuid: countedUuids(),
        });

      const machine = await inventory([device]);
      const refused = plan(machine, false);
      expect(refused.findings.filter((each) => each.severity === "error").map((each) => each.code)).toEqual([
        "holds-data",
      ]);
      expect(device.digest()).toBe(before);

      expect(plan(machine, true).steps.map((step) => step.kind)).toEqual([
        "disk:wipe",
        "disk:filesystem",
        "disk:mount",
      ]);
      const { check, run } = bound(diskExecutors["disk:wipe"], wipeStep(device));
      expect(await check()).toBe("todo");
      expect(device.digest()).toBe(before);
      await run();
      expect(await check()).toBe("done");
      expect((await inventory([device])).disks).toMatchObject([{ signatures: [], partitions: [] }]);
    });
  }

  test("mounted: in use whatever wipe says, and a wipe step that runs nevertheless changes nothing", async () => {
    const device = disk();
    sh("mkfs.ext4", "-q", "-F", device.path);
    const point = sh("mktemp", "-d");
    if (spawnSync("mount", ["-o", "ro,noload", device.path, point]).status !== 0) {
      process.stderr.write("skipped: mounting is forbidden here\n");
      return;
    }
    try {
      const before = device.digest();
      const machine = await inventory([device]);
      expect(machine.disks[0]?.users).toContainEqual({ kind: "mount", name: point, isBusy: true });
      const executor = diskExecutors["disk:wipe"];
      const quick = { ...context, host: { ...host, clock: { ...host.clock, sleep: async () => {} } } };
      expect(await executor.run(wipeStep(device), quick)).toMatchObject({ ok: false, error: { code: "wipe-failed" } });
      expect(device.digest()).toBe(before);
    } finally {
      sh("umount", point);
    }
  });

  test("another disk behind the path of a step: nothing is written", async () => {
    const device = disk();
    sh("mkfs.ext4", "-q", "-F", device.path);
    const before = device.digest();
    const step = {
      ...wipeStep(device),
      device: { path: device.path, identity: { serial: "GONE", sizeBytes: 64 << 20 } },
    };
    expect(await diskExecutors["disk:wipe"].run(step, context)).toMatchObject({
      ok: false,
      error: { code: "disk-changed" },
    });
    expect(device.digest()).toBe(before);
  });
});
