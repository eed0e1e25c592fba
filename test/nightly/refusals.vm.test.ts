// budget: 3600 s
/**
 * Disks of somebody else: refused by name before anything is written, gone through with consent, and never touched
 * when nobody named them. One machine from the live system to its second boot; QEMU's write counters and the bytes
 * of whole disks are the proof, and each refusal is told apart by its own words.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeAnswer, OperationsAnswer } from "../../api/contract.ts";
import { PARTITIONS } from "../../iso/layout.ts";
import type { Operation } from "../../state/model.ts";
import type { Imprint } from "../loop/imprint.ts";
import {
  ataRaid,
  bcache,
  bluestore,
  btrfs,
  ddf,
  drbd,
  luks,
  lvmMember,
  md090,
  ntfs,
  zfsLabels,
} from "../loop/imprint.ts";
import { diskDeviceId } from "../qemu/harness/argv.ts";
import {
  createRaw,
  makeFilesystemInPartition,
  makeForeignArray,
  runTool,
  sha256,
  writeAt,
} from "../qemu/harness/disk.ts";
import { liveBoot, testImage } from "../qemu/harness/image.ts";
import { openOperator } from "../qemu/harness/node.ts";
import type { DiskOptions } from "../qemu/harness/options.ts";
import { type Vm, withVm } from "../qemu/harness/vm.ts";

const image = await testImage();
const operator = await openOperator();
const directory = mkdtempSync(join(tmpdir(), "corium-refusals-"));
afterAll(() => {
  operator.dispose();
  rmSync(directory, { recursive: true, force: true });
});

const MIB = 1024 * 1024;
const dataMiB = 256;

interface FixtureDisk extends DiskOptions {
  readonly path: string;
}

/** `file` where two disks show one serial. */
const disk = (serial: string, more: Partial<DiskOptions> & { readonly file?: string; readonly MiB?: number } = {}) => {
  const { file = serial, MiB = dataMiB, ...options } = more;
  return { serial, path: createRaw(join(directory, `${file}.raw`), MiB), ...options } satisfies FixtureDisk;
};

const system = disk("system", { MiB: 6144, bootIndex: 1 });
// SCSI and NVMe disks have a model to be named by.
const oldExt4 = disk("old-ext4", { bus: "scsi" });
const foreignA = disk("foreign-a", { bus: "nvme" });
const foreignB = disk("foreign-b");
const partitioned = disk("gpt-ext4");
const blank = disk("blank");
const bystander = disk("bystander");
const strangerA = disk("stranger-a");
const strangerB = disk("stranger-b");
const twins = [disk("twin", { file: "twin-1" }), disk("twin", { file: "twin-2" })] as const;
const installed = disk("installed");
const small = disk("small", { MiB: 64 });

/** What else makes a disk somebody's: 64 MiB each, on the one SCSI bus, and how wipefs and blkid call it. */
const kindMiB = 64;
const kindBytes = kindMiB * MIB;
const kindOf = (serial: string, type: string, imprints: readonly Imprint[]) => {
  const made = disk(serial, { bus: "scsi", MiB: kindMiB });
  for (const { offset, bytes } of imprints) writeAt(made.path, offset < 0 ? kindBytes + offset : offset, bytes);
  return { ...made, type };
};
const kinds = [
  kindOf("k-lvm", "LVM2_member", lvmMember()),
  kindOf("k-luks1", "crypto_LUKS", luks(1)),
  kindOf("k-luks2", "crypto_LUKS", luks(2)),
  kindOf("k-zfs", "zfs_member", zfsLabels(kindBytes, ["L2", "L3"])),
  kindOf("k-bcache", "bcache", bcache(3)),
  kindOf("k-ceph", "ceph_bluestore", bluestore()),
  kindOf("k-btrfs", "btrfs", btrfs(kindBytes)),
  kindOf("k-ntfs", "ntfs", ntfs(kindBytes)),
  kindOf("k-md090", "linux_raid_member", md090(kindBytes)),
  kindOf("k-ddf", "ddf_raid_member", ddf(kindBytes)),
  kindOf("k-isw", "isw_raid_member", ataRaid.isw()),
  kindOf("k-drbd", "drbd", drbd()),
  kindOf("k-hibernated", "swsuspend", []),
];
const hibernated = kinds.at(-1)?.path ?? "";
await runTool(["mkswap", "-q", hibernated]);
writeAt(hibernated, 4096 - 10, new TextEncoder().encode("S1SUSPEND\0"));

/** Named by a document that is refused. */
const refused = [oldExt4, foreignA, partitioned, blank, ...twins];
/** Never named by any document of this file. */
const untouched = [foreignB, bystander, strangerA, strangerB];
const node = [system, ...refused, ...untouched, ...kinds];

const files = join(directory, "files");
mkdirSync(files);
writeFileSync(join(files, "photos.txt"), "somebody's only copy\n".repeat(1000));
const makeOldData = (path: string, label: string): Promise<string> =>
  runTool(["mkfs.ext4", "-q", "-F", "-L", label, "-d", files, path]);
await makeOldData(system.path, "OLD-ROOT");
await makeOldData(oldExt4.path, "PHOTOS");
await makeOldData(bystander.path, "BYSTANDER");
await makeFilesystemInPartition(partitioned.path, dataMiB);
makeForeignArray([foreignA.path, foreignB.path], { name: "theirs", level: 1, sizeMiB: dataMiB });
makeForeignArray([strangerA.path, strangerB.path], { name: "strangers", level: 1, sizeMiB: dataMiB });
const names = PARTITIONS.map(({ name, typeGuid }) => `size=16MiB, type=${typeGuid}, name="${name}"`);
await runTool(["sfdisk", "--quiet", installed.path], ["label: gpt", ...names, ""].join("\n"));

const hashes = new Map(
  [...refused, ...untouched, ...kinds, installed, small].map(({ path }) => [path, sha256(path)] as const),
);
const originalSystem = join(directory, "system-before.raw");
await runTool(["cp", "--sparse=always", system.path, originalSystem]);

function expectUnchanged(disks: readonly FixtureDisk[]): void {
  const changed = disks.filter(({ path }) => sha256(path) !== hashes.get(path));
  expect(changed.map(({ path }) => path)).toEqual([]);
}

/** Of each disk that got any: write requests since the machine started. By position, because two share a serial. */
async function written(vm: Vm, all: readonly DiskOptions[], asked: readonly DiskOptions[]): Promise<string[]> {
  const rows = (await vm.qmp.execute("query-blockstats")) as readonly {
    readonly qdev?: string;
    readonly stats: { readonly wr_operations: number };
  }[];
  return asked.flatMap((each) => {
    const id = diskDeviceId(all.indexOf(each));
    const row = rows.find(({ qdev }) => qdev?.split("/").includes(id) === true);
    if (row === undefined) throw new Error(`qemu has no counters of ${id} (${each.serial})`);
    return row.stats.wr_operations === 0 ? [] : [`${id} (${each.serial}): ${row.stats.wr_operations}`];
  });
}

const head = `role: single
cluster: { name: demo }
node: { name: node1 }
api: { enabled: true }
`;
const installOn = (install: string): string => `${head}install: ${install}\n`;
const storage = (wipe: boolean): string => `raid:
  - name: data
    level: 1
    devices: [{ serial: old-ext4 }, { serial: foreign-a }]
    mountPoint: /var/lib/k0s
    wipe: ${wipe}
disks:
  - { name: photos, device: { serial: gpt-ext4 }, mountPoint: /srv/photos, wipe: ${wipe} }
  - { name: scratch, device: { serial: blank }, mountPoint: /srv/scratch }
`;
const ambiguous = `  - { name: twin, device: { serial: twin }, mountPoint: /srv/twin, wipe: true }
`;
const forbidden = `${ambiguous}  - { name: sys, device: /dev/disk/by-id/virtio-system, mountPoint: /srv/sys, wipe: true }
`;
const everyKind = `disks:\n${kinds
  .map(({ serial }, at) => `  - { name: kind${at}, device: { serial: ${serial} }, mountPoint: /srv/kind${at} }\n`)
  .join("")}`;
const goodInstall = installOn("{ disk: { serial: system }, wipe: true }");

/** The operation that failed for this reason; another failure is not it. */
async function failure(kind: Operation["kind"], reason: RegExp, timeoutMs = 400_000): Promise<string> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const ran = await operator.cctl(["operations", "node1", "--output", "json"], 30_000);
    const all = ran.exitCode === 0 ? (JSON.parse(ran.stdout) as OperationsAnswer).operations : [];
    const found = all.find(({ kind: is, failureReason }) => is === kind && reason.test(failureReason ?? ""));
    if (found !== undefined) {
      expect(found.phase).toBe("failed");
      return found.failureReason ?? "";
    }
    if (performance.now() > deadline)
      throw new Error(`no ${kind} failed for ${String(reason)}: ${ran.stdout}${ran.stderr}`);
    await Bun.sleep(1000);
  }
}

/** A report that is late, as on a machine that still boots, is left out of an answer. */
async function arrays(): Promise<NodeAnswer["storage"]["arrays"]> {
  const deadline = performance.now() + 180_000;
  for (;;) {
    const found = (await operator.status("node1"))?.storage.arrays ?? [];
    if (found.some(({ active }) => active === 2) || performance.now() > deadline) return found;
    await Bun.sleep(1000);
  }
}

/** On the serial console; Enter shows all of it again, for an emulated line now and then doubles a character. */
async function shown(vm: Vm, pattern: RegExp): Promise<void> {
  await vm.console.expect(/error: /, 900_000, { fromStart: true });
  for (let tries = 0; tries < 5; tries += 1) {
    try {
      await vm.console.expect(pattern, 15_000, { fromStart: true });
      return;
    } catch {
      vm.console.send("\n");
    }
  }
  await vm.console.expect(pattern, 15_000, { fromStart: true });
}

function expectBothTwins(reason: string): void {
  const listed = reason.split("\n").filter((line) => /^ *\/dev\/vd\w \(no model, serial twin, 256 MiB\)/.test(line));
  const why =
    /can't be told apart from \/dev\/vd\w: .*; its serial is also that of \/dev\/vd\w, so it selects nothing$/;
  if (listed.filter((line) => why.test(line)).length !== 2) throw new Error(`not both are listed with why:\n${reason}`);
}

async function apply(document: string): Promise<void> {
  const path = join(directory, "document.yaml");
  writeFileSync(path, document);
  // Claiming starts it once more; and an operation has failed a moment before its process is gone.
  for (let tries = 0; ; tries += 1) {
    const ran = await operator.cctl(["apply", "node1", "--file", path, "--yes"], 60_000);
    if (ran.exitCode === 0) return;
    if (tries === 60 || !/is being provisioned/.test(ran.stderr))
      throw new Error(`cctl apply: exit ${ran.exitCode}\n${ran.stdout}${ran.stderr}`);
    await Bun.sleep(1000);
  }
}

/** The pinned address stays good: each machine of this file is reached at the same port. */
let apiPort = 0;
async function forward(vm: Vm): Promise<void> {
  expect(apiPort).not.toBe(0);
  expect(await vm.qmp.monitor(`hostfwd_add net0 tcp:127.0.0.1:${apiPort}-:7443`)).toBe("");
}

const memoryMiB = 1536;

describe("a live system", () => {
  test("refuses the disk of somebody else, the installed, the small, the ambiguous and its own medium; then installs", async () => {
    const disks = [system, installed, small, ...twins];
    const others = [installed, small, ...twins];
    const live = liveBoot(image, { document: installOn("{ disk: { serial: system } }") });
    const media = [{ path: image.iso, as: "usb" as const }];
    const options = { name: "refusals-live", memoryMiB, disks, forwards: [7443], isRebootExit: true, ...live, media };
    await withVm(options, async (vm) => {
      apiPort = vm.port(7443);
      await operator.enroll(vm, "node1", 900_000);
      await shown(
        vm,
        /error: install\.disk: disk \/dev\/vd\w \(no model, serial system, 6 GiB\) holds data: ext4 "OLD-ROOT" on the whole disk at 0x438/,
      );
      expect(await failure("install", /OLD-ROOT/)).toContain("hint: wipe: true destroys it; or name another disk");

      await apply(installOn("{ disk: { serial: small } }"));
      const tooSmall = await failure("install", /serial small, 64 MiB\): the disk has/);
      const [, needed = "0"] = /the disk has 67108864 bytes, (\d+) are needed/.exec(tooSmall) ?? [];
      expect(Number(needed)).toBeGreaterThan(4096 * MIB);

      await apply(installOn("{ disk: { serial: installed }, wipe: true }"));
      expect(await failure("install", /holds an installed Corium, which wipe never covers/)).toContain(
        "serial installed",
      );

      await apply(installOn("{ disk: { bus: usb }, wipe: true }"));
      expect(await failure("install", /no disk matches \{bus: usb\}/)).toMatch(
        /\/dev\/sd\w \(.*the medium that this system booted from/,
      );

      await apply(installOn("{ disk: { serial: twin }, wipe: true }"));
      const twin = await failure("install", /no disk matches \{serial: twin\}/);
      expectBothTwins(twin);

      await apply(goodInstall + storage(false) + forbidden);
      await failure("install", /disks\[3\]\.device: disk \/dev\/vd\w \(.*\) is claimed already by install\.disk/);

      expect(await written(vm, disks, disks)).toEqual([]);
      await vm.pause();
      const compared = await runTool([
        "qemu-img",
        "compare",
        "-U",
        "-f",
        "raw",
        "-F",
        "raw",
        system.path,
        originalSystem,
      ]);
      expect(compared).toContain("Images are identical");
      expectUnchanged(others);
      await vm.resume();

      await apply(goodInstall + storage(false) + ambiguous);
      await vm.waitExit(400_000);
    });
    expectUnchanged(others);
  }, 2_400_000);
});

describe("a first boot from disk", () => {
  test("stops at every such disk at once, goes through with consent, and never at a mounted one", async () => {
    await withVm({ name: "refusals-disk", memoryMiB, disks: node }, async (vm) => {
      await forward(vm);
      // A model only where the bus gives one; everything that is wrong with the document, in one go.
      const wanted = [
        /raid\[0\]\.devices\[0\]: disk \/dev\/sd\w \(QEMU HARDDISK, serial old-ext4, 256 MiB\) holds data: ext4 "PHOTOS" on the whole disk at 0x438/,
        /raid\[0\]\.devices\[1\]: disk \/dev\/nvme0n1 \(QEMU NVMe Ctrl, serial foreign-a, 256 MiB\) holds data: linux_raid_member "otherhost:theirs" on the whole disk at 0x1000; it is a member of array theirs, together with \/dev\/vd\w \(no model, serial foreign-b, 256 MiB\)/,
        /disks\[0\]\.device: disk \/dev\/vd\w \(no model, serial gpt-ext4, 256 MiB\) holds data: .*gpt on the whole disk at .*ext4 .*on partition 1/,
        /disks\[2\]\.device: no disk matches \{serial: twin\}/,
        /disks\[3\]\.device: no disk matches \/dev\/disk\/by-id\/virtio-system/,
        /\(no model, serial system, 6 GiB\).*: the disk under the running system/,
      ];
      // The document that came along names the system only for itself.
      await failure("bootstrap", /PHOTOS/, 900_000);
      await apply(head + storage(false) + forbidden);
      const reason = await failure("bootstrap", /disks\[3\]\.device/);
      for (const pattern of wanted) await shown(vm, pattern);
      for (const pattern of wanted) expect(reason).toMatch(pattern);
      expectBothTwins(reason);
      expect(await operator.must(["operations", "node1"])).toContain("serial foreign-b");

      expect(await written(vm, node, [...refused, ...untouched])).toEqual([]);
      await vm.pause();
      expectUnchanged([...refused, ...untouched]);
      await vm.resume();

      await apply(head + everyKind);
      const told = await failure("bootstrap", /serial k-hibernated, 64 MiB\) holds data/);
      for (const { serial, type } of kinds)
        expect(told).toMatch(
          new RegExp(`serial ${serial}, 64 MiB\\) holds data: ([^\\n]*, )?${type} .*on the whole disk`),
        );
      expect(await written(vm, node, [...refused, ...untouched, ...kinds])).toEqual([]);

      await vm.shell.waitReady(60_000);
      await vm.shell.must("mkdir /run/old && mount /dev/disk/by-id/virtio-gpt-ext4-part1 /run/old");
      await apply(head + storage(true));
      const mounted = await failure("bootstrap", /in use/);
      expect(mounted).toMatch(/serial gpt-ext4, 256 MiB\) is in use by a mount at \/run\/old/);
      expect(mounted).not.toContain("holds data");
      await shown(vm, /serial gpt-ext4, 256 MiB\) is in use by a mount at \/run\/old/);
      expect(await written(vm, node, [oldExt4, foreignA, blank, ...twins, ...untouched])).toEqual([]);

      await vm.shell.must("umount /run/old");
      await operator.must(["retry", "node1", "--yes"], 600_000);
      await operator.waitInService("node1", 900_000);
      expect(await arrays()).toMatchObject([{ name: "data", active: 2, expected: 2 }]);
      expect(
        await vm.shell.must("for at in /var/lib/k0s /srv/photos /srv/scratch; do findmnt -no FSTYPE $at; done"),
      ).toBe("ext4\next4\next4");
      // The counters count: what was given by name was written.
      expect(await written(vm, node, [oldExt4, foreignA, partitioned, blank])).toHaveLength(4);
      expect(await written(vm, node, [...twins, ...untouched, ...kinds])).toEqual([]);
      await vm.powerdown();
      await vm.waitExit(180_000);
    });
    expectUnchanged([...twins, ...untouched, ...kinds]);
  }, 2_400_000);

  test("and its second boot assembles its own array and no other", async () => {
    await withVm({ name: "refusals-again", memoryMiB, disks: node }, async (vm) => {
      await forward(vm);
      await operator.waitInService("node1", 900_000);
      expect(await arrays()).toMatchObject([{ name: "data", active: 2, expected: 2 }]);
      await vm.shell.waitReady(60_000);
      expect(await vm.shell.must("grep -c ^md /proc/mdstat")).toBe("1");
      expect(vm.console.text()).not.toContain("File exists");
      // Whole, and left alone: the kernel sees both members of the strangers' array.
      const strangers = "mdadm --examine /dev/disk/by-id/virtio-stranger-* | grep -c otherhost:strangers";
      expect(await vm.shell.must(strangers)).toBe("2");
      expect(await written(vm, node, [...twins, ...untouched, ...kinds])).toEqual([]);
      await vm.powerdown();
      await vm.waitExit(180_000);
    });
    expectUnchanged([...twins, ...untouched, ...kinds]);
  }, 2_400_000);
});
