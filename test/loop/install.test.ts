/** An installation onto real block devices with the real tools, killed at any call and gone on with. */
// budget: 900 s
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { decodeBootEnv } from "../../iso/bootenv.ts";
import { readEnv, writeEnv } from "../../iso/esp.ts";
import { copyLoader, isBootEqual } from "../../iso/mirror/loader.ts";
import type { MirrorDisk } from "../../iso/mirror/model.ts";
import { twinOf } from "../../iso/uuids.ts";
import { standingOf } from "../../provision/install/standing.ts";
import { openState } from "../../state/open.ts";
import {
  blank,
  boot,
  detachAll,
  documentFor,
  dropMedium,
  errorOf,
  hostOn,
  install,
  inventoryOf,
  Killed,
  lookFolder,
  makeMedium,
  medium,
  MIB,
  sectorsWritten,
  tableOf,
} from "./install-rig.ts";
import type { LoopDevice } from "./loop-device.ts";
import { sh, whyNoLoop } from "./loop-device.ts";

const reason = whyNoLoop("mkfs.ext4", "mkfs.vfat", "sfdisk", "partx", "cmp", "mount", "mcopy");
if (reason !== undefined) process.stderr.write(`skipped test/loop: ${reason}\n`);

beforeAll(makeMedium);
afterAll(dropMedium);
afterEach(detachAll);

const nodesOf = (device: LoopDevice): readonly string[] => tableOf(device).map(({ node }) => node);

/** Firmware's part of one disk. Gives the installation that its boot environment names. */
function lookAtLoader(device: LoopDevice): string {
  const at = lookFolder();
  sh("mcopy", "-s", "-n", "-i", nodesOf(device)[1] ?? "", "::/*", `${at}/`);
  const env = decodeBootEnv(readFileSync(join(at, "corium/env")));
  expect(env.ok && env.value).toMatchObject({ good: "A", state: { A: "good", B: "void" } });
  const id = env.ok ? env.value.id : "";
  expect(readFileSync(join(at, "EFI/BOOT/BOOTX64.EFI"), "utf8")).toBe("shimx64.efi");
  expect(readFileSync(join(at, "corium/id.cfg"), "utf8")).toBe(`set installation=${id}\n`);
  for (const name of readdirSync(at)) rmSync(join(at, name), { recursive: true });
  return id;
}

async function look(...devices: readonly LoopDevice[]): Promise<void> {
  const inventory = await inventoryOf(devices);
  const disks = inventory.ok ? inventory.value.disks : [];
  expect(disks.map(standingOf)).toEqual(devices.map(() => "installed"));
  const [first] = devices;
  if (first === undefined) throw new Error("no disk");
  const part = (number: number): string => nodesOf(first)[number - 1] ?? "";
  const at = lookFolder();
  const mounted = (number: number, see: () => void): void => {
    sh("mount", "-o", "ro", part(number), at);
    try {
      see();
    } finally {
      sh("umount", at);
    }
  };
  sh("cmp", "-n", String(4 * MIB), join(medium, "root.img"), part(5));
  const ids = devices.map(lookAtLoader);
  expect(new Set(ids).size).toBe(1);
  mounted(3, () => expect(readFileSync(join(at, "slot.env"), "utf8")).toContain("args=console=ttyS0\n"));
  mounted(7, () => {
    expect(readFileSync(join(at, "etc/corium/config.yaml"), "utf8")).toBe(documentFor(devices));
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

/** Each cut once; a prime step, so that runs of one tool are hit at different places. */
async function cutAndGoOn(make: () => readonly LoopDevice[], stride: number, isAtStepEnds = false): Promise<void> {
  const { calls: total, stepEnds, plan } = await install(make());
  detachAll();
  expect(total).toBeGreaterThan(60);
  expect(stepEnds).toHaveLength(plan.steps.length);
  const between = Array.from({ length: Math.ceil((total - 1) / stride) }, (_, at) => 1 + at * stride);
  const cuts = new Set([...between, ...(isAtStepEnds ? stepEnds : [])]);
  for (const dieAt of [...cuts].filter((at) => at < total).toSorted((a, b) => a - b)) {
    const devices = make();
    await expect(install(devices, dieAt)).rejects.toBeInstanceOf(Killed);
    boot(devices);
    const run = await install(devices);
    const [finding] = run.plan.findings;
    if (finding?.code === "installed") {
      // The very last act was done, on the first disk at least: the system boots, and there is nothing to go on with.
      expect(dieAt).toBeGreaterThan(total - 12 * devices.length);
      for (const device of devices) lookAtLoader(device);
      break;
    }
    expect({ dieAt, findings: run.plan.findings.filter(({ severity }) => severity === "error") }).toEqual({
      dieAt,
      findings: [],
    });
    expect({ dieAt, error: errorOf(run) }).toEqual({ dieAt, error: "" });
    await look(...devices);
    detachAll();
  }
}

describe.skipIf(reason !== undefined)("installing to a disk [needs root, loop devices]", () => {
  test("B018, B097, B109, B176: everything is on it, read back, and a second run changes nothing", async () => {
    const device = blank();
    const run = await install([device]);
    expect(errorOf(run)).toBe("");
    await look(device);
    const before = sectorsWritten(device);
    const again = await install([device]);
    expect(again.plan.findings.map(({ code }) => code)).toEqual(["installed"]);
    expect(sectorsWritten(device)).toBe(before);
  }, 120_000);

  test("B019, B020, B021: a disk with sectors of 4096 bytes gets its own table and a FAT of that sector size", async () => {
    const device = blank(4096);
    expect(errorOf(await install([device]))).toBe("");
    await look(device);
    const esp = nodesOf(device)[1] ?? "";
    expect(sh("blkid", "-p", "-s", "BLOCK_SIZE", "-o", "value", esp)).toBe("4096");
  }, 120_000);

  test("power lost after any program: the next boot goes on with its own disk, without a second consent", async () => {
    await cutAndGoOn(() => [blank()], 11);
  }, 300_000);
});

describe.skipIf(reason !== undefined)("installing to two disks [needs root, loop devices]", () => {
  test("both have the same table under UUIDs of their own, the same boot code and the same ESP", async () => {
    const [first, second] = [blank(), blank()];
    expect(errorOf(await install([first, second]))).toBe("");
    await look(first, second);
    const places = (device: LoopDevice): string =>
      sh("sfdisk", "--dump", device.path)
        .split("\n")
        .flatMap((line) => /: (start=.*?), uuid/.exec(line)?.[1] ?? [])
        .join("\n");
    expect(places(first).split("\n")).toHaveLength(8);
    expect(places(first)).toBe(places(second));
    const bare = (device: LoopDevice): string => (tableOf(device)[0]?.uuid ?? "").replaceAll("-", "").toLowerCase();
    expect(bare(second)).toBe(twinOf(bare(first)));
    sh("cmp", "-n", "440", first.path, second.path);
    sh("cmp", nodesOf(first)[0] ?? "", nodesOf(second)[0] ?? "");
    // Only its half of the firmware's part was written beside the arrays, whose stand-in writes to the first disk.
    expect(sh("cmp", "-n", String(MIB), nodesOf(second)[4] ?? "", "/dev/zero")).toBe("");
  }, 120_000);

  test("the boot loader of one is copied to the other by the real tools: file by file, and only what differs", async () => {
    const [first, second] = [blank(), blank()];
    expect(errorOf(await install([first, second]))).toBe("");
    const { host } = hostOn([first, second]);
    const asMirror = (device: LoopDevice): MirrorDisk => ({
      path: device.path,
      partitions: new Map(nodesOf(device).map((node, at) => [at + 1, node])),
      espPartUuid: (tableOf(device)[1]?.uuid ?? "").toLowerCase(),
      sectorBytes: 512,
      isInSync: true,
      lacking: [],
    });
    const [from, to] = [asMirror(first), asMirror(second)];
    expect(await copyLoader(host, from, to)).toEqual({ ok: true, value: false });
    // A newer environment on the one, and everything of a blank disk on the other.
    const esp = nodesOf(first)[1] ?? "";
    const env = await readEnv(host, esp);
    if (!env.ok) throw new Error(env.error.message);
    const written = await writeEnv(host, esp, { ...env.value, generation: env.value.generation + 1 });
    expect(written.ok).toBe(true);
    sh("dd", "if=/dev/zero", `of=${second.path}`, "bs=440", "count=1", "conv=notrunc,fsync", "status=none");
    for (const at of [0, 1])
      sh(
        "dd",
        "if=/dev/zero",
        `of=${nodesOf(second)[at] ?? ""}`,
        "bs=1M",
        "count=1",
        "conv=notrunc,fsync",
        "status=none",
      );
    expect(await isBootEqual(host, from, to)).toBe(false);
    expect(await copyLoader(host, from, to)).toEqual({ ok: true, value: true });
    expect(await isBootEqual(host, from, to)).toBe(true);
    expect(lookAtLoader(second)).toBe(lookAtLoader(first));
    const copied = await readEnv(host, nodesOf(second)[1] ?? "");
    expect(copied.ok && copied.value.generation).toBe(env.value.generation + 1);
    sh("cmp", "-n", "440", first.path, second.path);
    sh("cmp", nodesOf(first)[0] ?? "", nodesOf(second)[0] ?? "");
    // The volume is its own: its id is that of its partition.
    expect(
      sh("blkid", "-p", "-s", "UUID", "-o", "value", nodesOf(second)[1] ?? "")
        .replace("-", "")
        .toLowerCase(),
    ).toBe(to.espPartUuid.slice(0, 8));
  }, 120_000);

  // test/crash/install.test.ts has no arrays: here it is also cut where each step ends.
  test("power lost after any program or step: the next boot goes on with both disks, without a second consent", async () => {
    await cutAndGoOn(() => [blank(), blank()], 37, true);
  }, 800_000);
});
