/** Disk images of tests: making, filling and comparing them. Nothing is mounted. */
import { closeSync, ftruncateSync, mkdirSync, openSync, readSync, writeSync } from "node:fs";
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { mdSuperblock, type MdMember } from "./md-superblock.ts";

const MIB = 1024 * 1024;

export async function runTool(argv: readonly string[], stdin?: string): Promise<string> {
  const path = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;
  const child = Bun.spawn([...argv], {
    stdin: stdin === undefined ? "ignore" : Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, PATH: path, LC_ALL: "C" },
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${argv.join(" ")}: exit ${code}\n${out}${err}`);
  return out;
}

/** Sparse; replaces what was there. */
export function createRaw(path: string, sizeMiB: number): string {
  mkdirSync(dirname(path), { recursive: true });
  const file = openSync(path, "w");
  ftruncateSync(file, sizeMiB * MIB);
  closeSync(file);
  return path;
}

/** With `backing`: an overlay, what is written goes here and the backing image stays as it is. */
export async function createQcow2(
  path: string,
  options: { readonly sizeMiB?: number; readonly backing?: string; readonly backingFormat?: "raw" | "qcow2" },
): Promise<string> {
  mkdirSync(dirname(path), { recursive: true });
  const backing = options.backing === undefined ? [] : ["-b", options.backing, "-F", options.backingFormat ?? "qcow2"];
  const size = options.sizeMiB === undefined ? [] : [`${options.sizeMiB}M`];
  await runTool(["qemu-img", "create", "-q", "-f", "qcow2", ...backing, path, ...size]);
  return path;
}

/** Of the whole disk as the guest sees it (raw images only). */
export function sha256(path: string): string {
  const hash = createHash("sha256");
  const buffer = Buffer.alloc(4 * MIB);
  const file = openSync(path, "r");
  try {
    for (let count = readSync(file, buffer); count > 0; count = readSync(file, buffer))
      hash.update(buffer.subarray(0, count));
  } finally {
    closeSync(file);
  }
  return hash.digest("hex");
}

export function writeAt(path: string, offset: number, bytes: Uint8Array): void {
  const file = openSync(path, "r+");
  try {
    writeSync(file, bytes, 0, bytes.length, offset);
  } finally {
    closeSync(file);
  }
}

export function readAt(path: string, offset: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  const file = openSync(path, "r");
  try {
    readSync(file, buffer, 0, length, offset);
  } finally {
    closeSync(file);
  }
  return buffer;
}

export type FixtureFilesystem = "ext4" | "xfs" | "vfat" | "btrfs" | "swap";

/** A filesystem over the whole disk, with a label: somebody's old data. */
export async function makeFilesystem(path: string, filesystem: FixtureFilesystem, label = "OLD-DATA"): Promise<void> {
  const argv: Readonly<Record<FixtureFilesystem, readonly string[]>> = {
    ext4: ["mkfs.ext4", "-q", "-F", "-L", label, path],
    xfs: ["mkfs.xfs", "-q", "-f", "-L", label, path],
    vfat: ["mkfs.vfat", "-n", label.slice(0, 11), path],
    btrfs: ["mkfs.btrfs", "-q", "-f", "-L", label, path],
    swap: ["mkswap", "-q", "-L", label, path],
  };
  await runTool(argv[filesystem]);
}

/** A GPT with one partition of Linux data over the disk. */
export async function makePartitionTable(path: string): Promise<void> {
  await runTool(["sfdisk", "--quiet", path], "label: gpt\n,,L\n");
}

/** A filesystem as big as a partition: put where sfdisk put it, 1 MiB into the disk. */
export async function makeFilesystemInPartition(path: string, sizeMiB: number): Promise<void> {
  await makePartitionTable(path);
  await runTool(["mkfs.ext4", "-q", "-F", "-E", `offset=${MIB}`, path, `${(sizeMiB - 2) * 1024}k`]);
}

/**
 * Members of a foreign array: valid superblocks that a kernel would assemble at once if it were let. `paths` in the
 * order of their roles; all must have the same size.
 */
export function makeForeignArray(
  paths: readonly string[],
  options: { readonly name: string; readonly level: number; readonly sizeMiB: number; readonly host?: string },
): void {
  const setUuid = createHash("sha256").update(`${options.name}${paths.join()}`).digest().subarray(0, 16);
  paths.forEach((path, role) => {
    const member: MdMember = {
      name: `${options.host ?? "otherhost"}:${options.name}`,
      level: options.level,
      members: paths.length,
      role,
      setUuid,
      deviceUuid: createHash("sha256").update(`${path}${role}`).digest().subarray(0, 16),
      deviceBytes: options.sizeMiB * MIB,
    };
    writeAt(path, 4096, mdSuperblock(member));
  });
}
