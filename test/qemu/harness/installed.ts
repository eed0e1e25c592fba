/**
 * A disk that the test image installed itself to and that never booted: installing takes a minute or two, so it is done
 * once per image. Tests boot overlays of it; each makes its machine-id, keys and claim code itself.
 */
import { createHash } from "node:crypto";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { createQcow2, runTool } from "./disk.ts";
import { liveBoot, type TestImage } from "./image.ts";
import type { DiskOptions } from "./options.ts";
import { withVm } from "./vm.ts";

/** What the disk boots with until it is claimed: it waits for a document through the API. */
const DOCUMENT = `api: { enabled: true, awaitConfig: true }
install: { disk: { serial: system } }
`;
const SIZE_MIB = 6144;
const INSTALL_TIMEOUT_MS = 900_000;
/** A few, so that two trees and a run that is under way keep theirs. */
const KEPT = 3;

/** The qcow2 image, never to be written. Whoever comes first makes it; it appears whole or not at all. */
export const installedDisk = async (image: TestImage): Promise<string> =>
  join(await installedFolder(image), "disk.qcow2");

export interface Installation {
  /** Of the system disk, blank before. */
  readonly log: string;
  /** Of a disk beside it that no document names. */
  readonly bystanderLog: string;
  readonly sizeBytes: number;
  readonly document: string;
}

/** What that installation wrote, write by write. */
export async function installationLog(image: TestImage): Promise<Installation> {
  const folder = await installedFolder(image);
  const log = join(folder, "writes.log");
  return {
    log,
    bystanderLog: join(folder, "bystander.log"),
    sizeBytes: SIZE_MIB * 1024 * 1024,
    document: DOCUMENT,
  };
}

async function installedFolder(image: TestImage): Promise<string> {
  const images = join(dirname(image.iso), "..");
  const key = await identityOf(image);
  const directory = join(images, `installed-${key}`);
  const disk = join(directory, "disk.qcow2");
  if (existsSync(disk)) return directory;
  mkdirSync(images, { recursive: true });
  const work = mkdtempSync(join(images, ".installing-"));
  try {
    await install(image, work);
    try {
      renameSync(work, directory);
    } catch (error) {
      // Somebody else was faster.
      if (!existsSync(disk)) throw error;
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  dropOld(images);
  return directory;
}

/** An overlay of the installed disk in `directory`, as the machine's first disk. */
export async function installedSystem(image: TestImage, directory: string): Promise<DiskOptions> {
  const path = join(directory, "system.qcow2");
  await createQcow2(path, { backing: await installedDisk(image), backingFormat: "qcow2" });
  return { serial: "system", path, format: "qcow2", bootIndex: 0 };
}

async function identityOf(image: TestImage): Promise<string> {
  const hash = createHash("sha256").update(JSON.stringify([DOCUMENT, SIZE_MIB, "with its log"]));
  for (const path of [image.iso, join(image.pxe, "boot.ipxe"), join(image.pxe, "initrd")]) {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  }
  return hash.digest("hex").slice(0, 16);
}

async function install(image: TestImage, folder: string): Promise<void> {
  const path = join(folder, "disk.qcow2");
  await createQcow2(path, { sizeMiB: SIZE_MIB });
  const disks: readonly DiskOptions[] = [
    { serial: "system", path, format: "qcow2", writeLog: join(folder, "writes.log") },
    { serial: "bystander", sizeMiB: 16, writeLog: join(folder, "bystander.log") },
  ];
  await withVm(
    { name: "install", memoryMiB: 1536, disks, isRebootExit: true, ...liveBoot(image, { document: DOCUMENT }) },
    async (vm) => {
      // A bootstrap that failed does not restart the machine, and a kernel that panicked says something else.
      await vm.console.expect(/reboot: Restarting system/, INSTALL_TIMEOUT_MS);
      await vm.waitExit(120_000);
    },
  );
  await runTool(["qemu-img", "check", "-q", path]);
}

function dropOld(images: string): void {
  const all = readdirSync(images)
    .filter((name) => name.startsWith("installed-"))
    .map((name) => ({ name, atMs: statSync(join(images, name)).mtimeMs }))
    .toSorted((a, b) => b.atMs - a.atMs);
  // What a killed run left in the middle.
  for (const name of readdirSync(images).filter((each) => each.startsWith(".installing-")))
    if (Date.now() - statSync(join(images, name)).mtimeMs > 3_600_000) rmSync(join(images, name), { recursive: true });
  for (const { name } of all.slice(KEPT)) rmSync(join(images, name), { recursive: true, force: true });
}
