/** Everything that makes a disk hold data, put on a device by the tool that makes it, or byte by byte (imprint.ts). */
import { spawnSync } from "node:child_process";
import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { mdSuperblock, mdSuperblockOffset } from "../qemu/harness/md-superblock.ts";
import type { Imprint } from "./imprint.ts";
import { ataRaid, bcache, bluestore, btrfs, ddf, drbd, luks, lvmMember, md090, ntfs, zfsLabels } from "./imprint.ts";
import type { LoopDevice } from "./loop-device.ts";
import { sh } from "./loop-device.ts";

export interface Content {
  /** What the refusal must name: the type, as wipefs and blkid call it. */
  readonly types: readonly string[];
  /** Default 24. */
  readonly sizeMib?: number;
  /** Programs that this machine may lack. */
  readonly needs?: readonly string[];
  readonly make: (device: LoopDevice, sizeBytes: number) => void;
}

const MIB = 1024 * 1024;

/** Through the device node, so that the next reader sees it. */
export function imprint(path: string, sizeBytes: number, imprints: readonly Imprint[]): void {
  const file = openSync(path, "r+");
  for (const { offset, bytes } of imprints)
    writeSync(file, bytes, 0, bytes.length, offset < 0 ? sizeBytes + offset : offset);
  fsyncSync(file);
  closeSync(file);
}

const printed =
  (types: readonly string[], bytesOf: (sizeBytes: number) => readonly Imprint[]) =>
  (sizeMib = 24): Content => ({
    types,
    sizeMib,
    make: ({ path }, sizeBytes) => imprint(path, sizeBytes, bytesOf(sizeBytes)),
  });

const tool = (types: readonly string[], ...argv: readonly string[]): Content => ({
  types,
  needs: [argv[0] ?? ""],
  make: ({ path }) => void sh(...argv, path),
});

const mdMember = (version: "1.0" | "1.1" | "1.2"): Content => ({
  types: ["linux_raid_member"],
  make: ({ path }, deviceBytes) => {
    const ids = { setUuid: new Uint8Array(16).fill(7), deviceUuid: new Uint8Array(16).fill(9) };
    const member = { name: "otherhost:old", level: 1, members: 2, role: 0, version, deviceBytes, ...ids };
    imprint(path, deviceBytes, [{ offset: mdSuperblockOffset(member), bytes: mdSuperblock(member) }]);
  },
});

/** `label: gpt` and one line for each partition. */
function partition(path: string, label: "gpt" | "dos", ...lines: readonly string[]): void {
  const ran = spawnSync("sfdisk", ["--quiet", path], { input: [`label: ${label}`, ...lines, ""].join("\n") });
  if (ran.status !== 0) throw new Error(`sfdisk: ${String(ran.stderr)}`);
  // A kernel that reads no tables by itself is told by partx what is in this one.
  spawnSync("partx", ["--update", path]);
}

/** ZFS lives on nothing smaller than 64 MiB, and libblkid looks for it on nothing smaller. */
function inPartition(types: readonly string[], fill: (path: string, sizeBytes: number) => void): Content {
  return {
    types,
    sizeMib: 96,
    needs: ["sfdisk"],
    make: ({ path }) => {
      partition(path, "gpt", "start=1MiB, size=80MiB");
      fill(`${path}p1`, 80 * MIB);
      sh("sync", path);
    },
  };
}

/** As cryptsetup makes it, at next to no cost. */
function encrypt(path: string): void {
  const cost = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];
  const argv = ["-q", "luksFormat", "--type", "luks2", ...cost, path, "-"];
  const ran = spawnSync("cryptsetup", argv, { input: "throw-away" });
  if (ran.status !== 0) throw new Error(`cryptsetup: ${String(ran.stderr)}`);
}

const zero = (path: string, countMib: number): void =>
  void sh("dd", "if=/dev/zero", `of=${path}`, "bs=1M", `count=${countMib}`, "conv=notrunc,fsync");

export const contents: Readonly<Record<string, Content>> = {
  ext4: tool(["ext4"], "mkfs.ext4", "-q", "-F", "-L", "photos"),
  xfs: { ...tool(["xfs"], "mkfs.xfs", "-q", "-f"), sizeMib: 320 },
  btrfs: printed(["btrfs"], btrfs)(128),
  FAT: tool(["vfat"], "mkfs.vfat", "-n", "CAMERA"),
  NTFS: printed(["ntfs"], ntfs)(),
  swap: tool(["swap"], "mkswap", "-q"),
  "swap of a hibernated system": {
    types: ["swsuspend"],
    needs: ["mkswap"],
    make: ({ path }, sizeBytes) => {
      sh("mkswap", "-q", path);
      imprint(path, sizeBytes, [{ offset: 4096 - 10, bytes: new TextEncoder().encode("S1SUSPEND\0") }]);
    },
  },
  "a physical volume of LVM": printed(["LVM2_member"], lvmMember)(),
  "LUKS 1": printed(["crypto_LUKS"], () => luks(1))(),
  "LUKS 2": printed(["crypto_LUKS"], () => luks(2))(),
  "LUKS 2 as cryptsetup makes it": { types: ["crypto_LUKS"], needs: ["cryptsetup"], make: ({ path }) => encrypt(path) },
  "LUKS 2 of which only the second header is left": {
    types: ["crypto_LUKS"],
    needs: ["cryptsetup"],
    make: ({ path }, sizeBytes) => {
      encrypt(path);
      imprint(path, sizeBytes, [{ offset: 0, bytes: new Uint8Array(16_384) }]);
    },
  },
  "a member of an md 0.90 array": printed(["linux_raid_member"], md090)(),
  "a member of an md 1.0 array": mdMember("1.0"),
  "a member of an md 1.1 array": mdMember("1.1"),
  "a member of an md 1.2 array": mdMember("1.2"),
  "a member of an md 1.0 mirror with ext4 inside": {
    types: ["linux_raid_member", "ext4"],
    needs: ["mkfs.ext4"],
    make: (device, sizeBytes) => {
      sh("mkfs.ext4", "-q", "-F", device.path, "16M");
      mdMember("1.0").make(device, sizeBytes);
    },
  },
  "a member of a DDF container": printed(["ddf_raid_member"], ddf)(),
  "ATA-RAID of Intel": printed(["isw_raid_member"], ataRaid.isw)(),
  "ATA-RAID of LSI": printed(["lsi_mega_raid_member"], ataRaid.lsi)(),
  "ATA-RAID of Promise": printed(["promise_fasttrack_raid_member"], ataRaid.promise)(),
  "all four labels of ZFS": printed(["zfs_member"], (size) => zfsLabels(size, ["L0", "L1", "L2", "L3"]))(64),
  "labels of ZFS at the end only": printed(["zfs_member"], (size) => zfsLabels(size, ["L2", "L3"]))(64),
  "labels of ZFS under a newer ext4": {
    sizeMib: 64,
    types: ["ext4", "zfs_member"],
    needs: ["mkfs.ext4"],
    make: ({ path }, sizeBytes) => {
      imprint(path, sizeBytes, zfsLabels(sizeBytes, ["L2", "L3"]));
      sh("mkfs.ext4", "-q", "-F", path, "48M");
    },
  },
  "the backing device of bcache": printed(["bcache"], () => bcache(1))(),
  "the cache of bcache": printed(["bcache"], () => bcache(3))(),
  "Ceph bluestore": printed(["ceph_bluestore"], bluestore)(),
  DRBD: printed(["drbd"], drbd)(),
  "an ISO image": {
    types: ["iso9660"],
    needs: ["xorriso"],
    make: ({ path, file }) => {
      const iso = `${file}.iso`;
      sh("xorriso", "-as", "mkisofs", "-quiet", "-V", "RESCUE", "-o", iso, import.meta.dir);
      sh("dd", `if=${iso}`, `of=${path}`, "bs=1M", "conv=notrunc,fsync");
      sh("rm", iso);
    },
  },
  "an ISO image that is a stick too": {
    types: ["gpt", "iso9660"],
    needs: ["xorriso", "sfdisk"],
    make: (device, sizeBytes) => {
      contents["an ISO image"]?.make(device, sizeBytes);
      // Its volume descriptor begins at 32 KiB: a table before it, as hybrid images have one.
      partition(device.path, "gpt", "start=1MiB, size=8MiB");
    },
  },
  "an empty GPT": { types: ["gpt"], needs: ["sfdisk"], make: ({ path }) => partition(path, "gpt") },
  "a GPT of which only the backup header is left": {
    types: ["gpt"],
    needs: ["sfdisk"],
    make: ({ path }) => {
      partition(path, "gpt", "start=1MiB, size=20MiB");
      zero(path, 22);
      spawnSync("partx", ["--delete", path]);
    },
  },
  "a partition without anything in it": {
    types: ["gpt"],
    needs: ["sfdisk"],
    make: ({ path }) => partition(path, "gpt", "start=1MiB, size=20MiB"),
  },
  "a protective MBR without a GPT": {
    types: ["PMBR"],
    needs: ["sfdisk"],
    make: ({ path }, sizeBytes) => {
      partition(path, "gpt", "start=1MiB, size=20MiB");
      spawnSync("partx", ["--delete", path]);
      const table = new Uint8Array(33 * 512);
      imprint(path, sizeBytes, [
        { offset: 512, bytes: table },
        { offset: -table.length, bytes: table },
      ]);
    },
  },
  "ext4 on the whole disk over a GPT of which the backup is left": {
    types: ["ext4", "gpt"],
    sizeMib: 64,
    needs: ["sfdisk", "mkfs.ext4"],
    make: ({ path }) => {
      partition(path, "gpt", "start=1MiB, size=20MiB");
      spawnSync("partx", ["--delete", path]);
      zero(path, 2);
      sh("mkfs.ext4", "-q", "-F", "-E", "nodiscard", path, "60M");
    },
  },
  "two partitions at odd sectors": {
    types: ["gpt", "ext4", "swap"],
    sizeMib: 64,
    needs: ["sfdisk", "mkfs.ext4", "mkswap"],
    make: ({ path }) => {
      partition(path, "gpt", "start=4567, size=40001", "start=50001, size=30001");
      sh("mkfs.ext4", "-q", "-F", `${path}p1`);
      sh("mkswap", "-q", `${path}p2`);
      sh("sync", path);
    },
  },
  "an EFI system partition alone": {
    types: ["gpt", "vfat"],
    sizeMib: 96,
    needs: ["sfdisk", "mkfs.vfat"],
    make: ({ path }) => {
      partition(path, "gpt", "start=1MiB, size=64MiB, type=uefi");
      sh("mkfs.vfat", `${path}p1`);
      sh("sync", path);
    },
  },
  MBR: {
    types: ["dos"],
    needs: ["sfdisk"],
    make: ({ path }) => partition(path, "dos", "start=2048, size=40960, type=83"),
  },
  "MBR with logical partitions": {
    sizeMib: 64,
    types: ["dos", "ext4"],
    needs: ["sfdisk", "mkfs.ext4"],
    make: ({ path }) => {
      partition(
        path,
        "dos",
        "start=2048, size=8192, type=83",
        "start=16384, size=65536, type=5",
        "start=18432, size=40960, type=83",
      );
      // `--update` stops at the gap in the numbers.
      spawnSync("partx", ["--add", "--nr", "5:5", path]);
      sh("mkfs.ext4", "-q", "-F", "-L", "logical", `${path}p5`);
    },
  },
  "a filesystem in a partition": inPartition(["gpt", "ext4"], (path) => void sh("mkfs.ext4", "-q", "-F", path)),
  "an md member in a partition": inPartition(["gpt", "linux_raid_member"], (path, size) =>
    imprint(path, size, md090(size)),
  ),
  "a physical volume in a partition": inPartition(["gpt", "LVM2_member"], (path, size) =>
    imprint(path, size, lvmMember()),
  ),
  "labels of ZFS at the end of a partition": inPartition(["gpt", "zfs_member"], (path, size) =>
    imprint(path, size, zfsLabels(size, ["L2", "L3"])),
  ),
};
