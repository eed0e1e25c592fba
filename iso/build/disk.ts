/**
 * An installed disk made offline, without mounts and without root's devices: what the installer does in the live
 * system, from the same layout, boot environment and boot sectors.
 */
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { encodeBootEnv, encodeSlotEnv, newBootEnv } from "../bootenv.ts";
import type { BootEnv } from "../bootenv.ts";
import { installedGrubConfig } from "../grub.ts";
import { partitionOf, planLayout, sfdiskScript, PARTITIONS } from "../layout.ts";
import type { PartitionRole } from "../layout.ts";
import { bootSectors } from "../loader.ts";
import { BuildError, run } from "./run.ts";

export interface DiskOptions {
  /** vmlinuz, initrd, root.img; boot.img, core.img and the EFI programs. */
  readonly files: Readonly<
    Record<
      "vmlinuz" | "initrd" | "root" | "boot.img" | "core.img" | "shimx64.efi" | "grubx64.efi" | "mmx64.efi",
      string
    >
  >;
  readonly rootHash: string;
  readonly hashOffsetBytes: number;
  readonly version: string;
  readonly args: string;
  readonly sizeBytes: number;
  readonly installation: string;
  readonly work: string;
  /** Also fill slot B, for tests of trial and fallback; its root hash may be a wrong one. */
  readonly slotB?: { readonly rootHash: string };
  readonly environment?: (fresh: BootEnv) => BootEnv;
}

/** `0000…-N`: fixed, so that two builds are the same; an installation on a machine chooses its own. */
const uuidOf = (installation: string, number: number): string => {
  const hex = installation.slice(0, 31) + String(number);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};

function putAt(disk: string, bytes: Uint8Array, at: number): void {
  const handle = openSync(disk, "r+");
  writeSync(handle, bytes, 0, bytes.length, at);
  closeSync(handle);
}

function putFile(disk: string, file: string, atBytes: number): void {
  run([
    "dd",
    `if=${file}`,
    `of=${disk}`,
    "bs=1M",
    `seek=${atBytes / 1024 / 1024}`,
    "conv=notrunc,sparse",
    "status=none",
  ]);
}

function makeExt4(path: string, sizeBytes: number, label: string, uuid: string, folder?: string): void {
  rmSync(path, { force: true });
  writeFileSync(path, "");
  truncateSync(path, sizeBytes);
  const content = folder === undefined ? [] : ["-d", folder];
  run(["mkfs.ext4", "-q", "-F", "-b", "4096", "-L", label, "-U", uuid, "-E", "root_owner=0:0", ...content, path]);
}

export function makeDisk(disk: string, options: DiskOptions): void {
  const { work, installation, files } = options;
  mkdirSync(work, { recursive: true });
  const uuid = (number: number): string => uuidOf(installation, number);
  const planned = planLayout({
    diskSizeBytes: options.sizeBytes,
    sectorBytes: 512,
    rootImageBytes: statSync(files.root).size,
    diskGuid: uuid(9),
    partUuids: Object.fromEntries(PARTITIONS.map(({ role, number }) => [role, uuid(number)])) as Record<
      PartitionRole,
      string
    >,
  });
  if (!planned.ok) throw new BuildError(planned.error.message);
  const layout = planned.value;
  const at = (role: PartitionRole): number => partitionOf(layout, role).startBytes;
  const size = (role: PartitionRole): number => partitionOf(layout, role).sizeBytes;

  rmSync(disk, { force: true });
  writeFileSync(disk, "");
  truncateSync(disk, options.sizeBytes);
  run(["sfdisk", "--quiet", "--no-tell-kernel", disk], { input: sfdiskScript(layout) });

  const sectors = bootSectors(
    readFileSync(files["boot.img"]),
    readFileSync(files["core.img"]),
    at("bios"),
    size("bios"),
  );
  if (!sectors.ok) throw new BuildError(sectors.error.message);
  putAt(disk, sectors.value.bootCode, 0);
  putAt(disk, sectors.value.core, at("bios"));

  const esp = join(work, "esp");
  rmSync(esp, { force: true });
  writeFileSync(esp, "");
  truncateSync(esp, size("esp"));
  run(["mkfs.vfat", "-F", "32", "-n", "CORIUM-ESP", esp]);
  const toEsp = (content: Uint8Array | string, name: string): void => {
    writeFileSync(join(work, "content"), content);
    run(["mcopy", "-i", esp, join(work, "content"), `::${name}`]);
  };
  for (const folder of ["EFI", "EFI/BOOT", "EFI/debian", "corium"]) run(["mmd", "-i", esp, `::${folder}`]);
  toEsp(readFileSync(files["shimx64.efi"]), "EFI/BOOT/BOOTX64.EFI");
  toEsp(readFileSync(files["grubx64.efi"]), "EFI/BOOT/grubx64.efi");
  toEsp(readFileSync(files["mmx64.efi"]), "EFI/BOOT/mmx64.efi");
  toEsp(installedGrubConfig(), "EFI/debian/grub.cfg");
  toEsp(`set installation=${installation}\n`, "corium/id.cfg");
  const fresh = newBootEnv(installation);
  toEsp(encodeBootEnv(options.environment?.(fresh) ?? fresh), "corium/env");
  putFile(disk, esp, at("esp"));

  const slot = (rootHash: string, boot: PartitionRole, root: PartitionRole, label: string, number: number): void => {
    const folder = join(work, "slot");
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    copyFileSync(files.vmlinuz, join(folder, "vmlinuz"));
    copyFileSync(files.initrd, join(folder, "initrd"));
    const { version, hashOffsetBytes, args } = options;
    writeFileSync(join(folder, "slot.env"), encodeSlotEnv({ version, rootHash, hashOffsetBytes, args }));
    makeExt4(join(work, "ext4"), size(boot), label, uuid(number), folder);
    putFile(disk, join(work, "ext4"), at(boot));
    putFile(disk, files.root, at(root));
  };
  slot(options.rootHash, "bootA", "rootA", "corium-boot-a", 3);
  if (options.slotB !== undefined) slot(options.slotB.rootHash, "bootB", "rootB", "corium-boot-b", 4);
  makeExt4(join(work, "ext4"), size("state"), "corium-state", uuid(7));
  putFile(disk, join(work, "ext4"), at("state"));
  makeExt4(join(work, "ext4"), size("data"), "corium-data", uuid(8));
  putFile(disk, join(work, "ext4"), at("data"));
  rmSync(work, { recursive: true, force: true });
}
