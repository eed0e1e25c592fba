/**
 * A disk after a power cut, looked at as the next boot does: by our own inventory and planner, fed by the real tools on
 * an image of it. Nothing is mounted, no device is made.
 */
import { Database } from "bun:sqlite";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readInventory } from "../../../disks/driver.ts";
import type { Inventory } from "../../../kit/disk.ts";
import type { FakeHost, FakeProgram } from "../../support/fake-host.ts";
import { fakeHost } from "../../support/fake-host.ts";
import { readAt } from "./disk.ts";
import { readGpt } from "./gpt.ts";
import type { View } from "./replayed-image.ts";

const MIB = 1024 * 1024;
const PATH = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;

export interface Ran {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function sh(...argv: readonly string[]): Ran {
  const [program = "", ...rest] = argv;
  const ran = spawnSync(program, rest, { env: { PATH, LC_ALL: "C" }, maxBuffer: 64 * MIB });
  return { exitCode: ran.status, stdout: ran.stdout.toString("utf8"), stderr: ran.stderr.toString("utf8") };
}

export interface CutDisk {
  readonly serial: string;
  readonly view: View;
}

/** What lsblk prints: partitions as a kernel with `gpt` on its command line sees them, names as udev reads them. */
function lsblk(disks: readonly CutDisk[]): string {
  const node = (path: string, type: string, size: number) => ({
    path,
    kname: path.slice("/dev/".length),
    type,
    size,
    "log-sec": 512,
    "phy-sec": 512,
    subsystems: "block:virtio:pci",
    mountpoints: [],
  });
  const blockdevices = disks.map(({ serial, view }, index) => {
    const path = pathOf(index);
    const gpt = readGpt(view.read, view.sizeBytes);
    const children = (gpt.primary ?? gpt.backup ?? []).map((part) => ({
      ...node(`${path}${part.number}`, "part", part.sizeBytes),
      partn: part.number,
      partuuid: gpt.hasMbr ? part.partUuid : null,
      partlabel: gpt.hasMbr ? part.name : null,
    }));
    return { ...node(path, "disk", view.sizeBytes), serial, ...(children.length === 0 ? {} : { children }) };
  });
  return JSON.stringify({ blockdevices });
}

const pathOf = (index: number): string => `/dev/vd${"abcdefgh"[index]}`;

/** The machine that boots with these disks. Partitions show no content: of a disk with a table it decides nothing. */
export function machineOf(disks: readonly CutDisk[], folder: string): FakeHost {
  mkdirSync(folder, { recursive: true });
  const images = new Map(
    disks.map(({ view }, index) => {
      // Signatures stand at the edges: the first MiB has GPT, md and what filesystems begin with, the last the backup GPT.
      const isEdge = (offset: number): boolean => offset < 4 * MIB || offset >= view.sizeBytes - MIB;
      return [pathOf(index), view.extract(join(folder, `disk${index}.raw`), isEdge)];
    }),
  );
  const onImage: FakeProgram = ({ argv }) => {
    const image = images.get(argv.at(-1) ?? "");
    return image === undefined ? { exitCode: 2 } : sh(...argv.slice(0, -1), image);
  };
  return fakeHost({
    programs: {
      lsblk: () => lsblk(disks),
      udevadm: () => "",
      wipefs: (request, fake) => (images.has(request.argv.at(-1) ?? "") ? onImage(request, fake) : ""),
      blkid: onImage,
      mdadm: onImage,
      dd: ({ argv }) => {
        const image = images.get((argv[1] ?? "").replace("if=", ""));
        return image === undefined ? { exitCode: 1 } : readAt(image, 0, 512).toString("latin1");
      },
    },
  });
}

export async function inventoryOf(host: FakeHost): Promise<Inventory> {
  const read = await readInventory(host, { mode: "live" });
  if (!read.ok) throw new Error(read.error.message);
  return read.value;
}

/** Of the superblock (kernel: Documentation/filesystems/ext4, "Super Block"). */
const METADATA_CSUM = 0x400;
const CHECKSUM_AT = 0x3fc;
const EXT4_MAGIC = 0xef53;

/** CRC-32C as ext4 has it: no inversion at the end. */
function crc32c(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum & 1) === 1 ? (sum >>> 1) ^ 0x82f63b78 : sum >>> 1;
  }
  return sum >>> 0;
}

/** Label of the ext4 filesystem there, as its superblock says. */
export function ext4Label(view: View): string | undefined {
  const block = view.read(1024, 1024);
  if (block.readUInt16LE(0x38) !== EXT4_MAGIC) return undefined;
  // The node's blkid (util-linux 2.41) takes a superblock whose checksum is wrong for none: one half of it was written.
  const hasChecksum = (block.readUInt32LE(0x64) & METADATA_CSUM) !== 0;
  if (hasChecksum && block.readUInt32LE(CHECKSUM_AT) !== crc32c(block.subarray(0, CHECKSUM_AT))) return undefined;
  return block.toString("latin1", 0x78, 0x88).replace(/\0.*$/s, "");
}

/** After its journal was replayed, as a boot does, a filesystem must be clean; what is not, in words. */
export function checkExt4(view: View, image: string): readonly string[] {
  view.extract(image);
  const replayed = sh("e2fsck", "-p", image);
  if ((replayed.exitCode ?? 8) > 1) return [`e2fsck -p: ${replayed.stdout}${replayed.stderr}`];
  const checked = sh("e2fsck", "-fn", image);
  return checked.exitCode === 0 ? [] : [`e2fsck -fn: ${checked.stdout}${checked.stderr}`];
}

/** A file of an ext4 image; undefined when it is not there. */
export function fileIn(image: string, path: string, to: string): Buffer | undefined {
  rmSync(to, { force: true });
  sh("debugfs", "-R", `dump ${path} ${to}`, image);
  return existsSync(to) ? readFileSync(to) : undefined;
}

/** The database of a state partition, with its WAL as the cut left it; "ok", or what is wrong. */
export function checkDatabase(image: string, folder: string): string {
  const path = join(folder, "corium.db");
  for (const suffix of ["-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
  if (fileIn(image, "/corium.db", path) === undefined) return "there is no database";
  fileIn(image, "/corium.db-wal", `${path}-wal`);
  try {
    const database = new Database(path);
    const { integrity_check: answer } = database.query("PRAGMA integrity_check").get() as { integrity_check: string };
    database.close();
    return answer;
  } catch (error) {
    return String(error);
  }
}
