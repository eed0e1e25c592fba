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

const awaiting = (install: string): string => `api: { enabled: true, awaitConfig: true }\ninstall: ${install}\n`;
/** Of the disk that most tests start from; it wipes nothing. */
export const INSTALL_DOCUMENT = awaiting("{ disk: { serial: system } }");

interface Kind {
  /** Of the cache's folder. */
  readonly name: string;
  /** What the system boots with until it is claimed: it waits for a document through the API. */
  readonly document: string;
  /** By serial. */
  readonly disks: readonly string[];
}

const single: Kind = { name: "installed", document: INSTALL_DOCUMENT, disks: ["system"] };
const pair: Kind = {
  name: "mirrored",
  document: awaiting("{ disk: { serial: first }, mirror: { serial: second } }"),
  disks: ["first", "second"],
};
const SIZE_MIB = 6144;
const INSTALL_TIMEOUT_MS = 900_000;
/** A few, so that two trees and a run that is under way keep theirs. */
const KEPT = 3;

export interface Installation {
  /** Of the system disk, blank before. */
  readonly log: string;
  /** Of a disk beside it that no document names. */
  readonly bystanderLog: string;
  readonly sizeBytes: number;
}

/** What that installation wrote, write by write. */
export async function installationLog(image: TestImage): Promise<Installation> {
  const folder = await installedFolder(image, single);
  const log = join(folder, "writes.log");
  return { log, bystanderLog: join(folder, "bystander.log"), sizeBytes: SIZE_MIB * 1024 * 1024 };
}

/** The qcow2 image, never to be written. */
export const installedDisk = async (image: TestImage): Promise<string> =>
  imageOf(await installedFolder(image, single), "system");

const imageOf = (folder: string, serial: string): string =>
  join(folder, serial === "system" ? "disk.qcow2" : `${serial}.qcow2`);

/** Whoever comes first makes it; it appears whole or not at all. */
async function installedFolder(image: TestImage, kind: Kind): Promise<string> {
  const images = join(dirname(image.iso), "..");
  const key = await identityOf(image, kind);
  const directory = join(images, `${kind.name}-${key}`);
  if (existsSync(directory)) return directory;
  mkdirSync(images, { recursive: true });
  const work = mkdtempSync(join(images, ".installing-"));
  try {
    await install(image, kind, work);
    try {
      renameSync(work, directory);
    } catch (error) {
      // Somebody else was faster.
      if (!existsSync(directory)) throw error;
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  dropOld(images, kind);
  return directory;
}

/** An overlay of the installed disk in `directory`, as the machine's first disk. */
export async function installedSystem(image: TestImage, directory: string): Promise<DiskOptions> {
  const path = join(directory, "system.qcow2");
  await createQcow2(path, { backing: await installedDisk(image), backingFormat: "qcow2" });
  return { serial: "system", path, format: "qcow2", bootIndex: 0 };
}

/** Overlays of the two disks of a mirrored system in `directory`; the first one boots first. */
export async function installedPair(image: TestImage, directory: string): Promise<readonly [DiskOptions, DiskOptions]> {
  const folder = await installedFolder(image, pair);
  mkdirSync(directory, { recursive: true });
  const overlay = async (serial: string, bootIndex: number): Promise<DiskOptions> => {
    const path = join(directory, `${serial}.qcow2`);
    await createQcow2(path, { backing: imageOf(folder, serial), backingFormat: "qcow2" });
    return { serial, path, format: "qcow2", bootIndex };
  };
  return [await overlay("first", 0), await overlay("second", 1)];
}

async function identityOf(image: TestImage, kind: Kind): Promise<string> {
  const hash = createHash("sha256").update(JSON.stringify([kind.document, SIZE_MIB, "with its log"]));
  for (const path of [image.iso, join(image.pxe, "boot.ipxe"), join(image.pxe, "initrd")]) {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  }
  return hash.digest("hex").slice(0, 16);
}

async function install(image: TestImage, kind: Kind, folder: string): Promise<void> {
  const images = kind.disks.map((serial) => imageOf(folder, serial));
  for (const path of images) await createQcow2(path, { sizeMiB: SIZE_MIB });
  const disks: readonly DiskOptions[] =
    kind === pair
      ? pair.disks.map((serial, at): DiskOptions => ({ serial, path: images[at] ?? "", format: "qcow2" }))
      : [
          { serial: "system", path: images[0] ?? "", format: "qcow2", writeLog: join(folder, "writes.log") },
          { serial: "bystander", sizeMiB: 16, writeLog: join(folder, "bystander.log") },
        ];
  const name = kind === pair ? "install-mirror" : "install";
  await withVm(
    { name, memoryMiB: 1536, disks, isRebootExit: true, ...liveBoot(image, { document: kind.document }) },
    async (vm) => {
      // A bootstrap that failed does not restart the machine, and a kernel that panicked says something else.
      await vm.console.expect(/reboot: Restarting system/, INSTALL_TIMEOUT_MS);
      await vm.waitExit(120_000);
    },
  );
  for (const path of images) await runTool(["qemu-img", "check", "-q", path]);
}

function dropOld(images: string, kind: Kind): void {
  const all = readdirSync(images)
    .filter((name) => name.startsWith(`${kind.name}-`))
    .map((name) => ({ name, atMs: statSync(join(images, name)).mtimeMs }))
    .toSorted((a, b) => b.atMs - a.atMs);
  // What a killed run left in the middle.
  for (const name of readdirSync(images).filter((each) => each.startsWith(".installing-")))
    if (Date.now() - statSync(join(images, name)).mtimeMs > 3_600_000) rmSync(join(images, name), { recursive: true });
  for (const { name } of all.slice(KEPT)) rmSync(join(images, name), { recursive: true, force: true });
}
