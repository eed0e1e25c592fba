/** The artefacts: the hybrid ISO and the files for PXE. */
import { copyFileSync, linkSync, mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ipxeScript, mediumEarlyConfig, mediumGrubConfig } from "../grub.ts";
import { bakedSegment } from "../baked.ts";
import { INSTALLED_FILES } from "./base.ts";
import type { BootFiles } from "./initrd.ts";
import type { RootImage } from "./image.ts";
import { run } from "./run.ts";

export interface MediaOptions {
  readonly repository: string;
  readonly cache: string;
  readonly work: string;
  readonly version: string;
  readonly epoch: number;
  /** A document baked in; travels as a further segment of the initramfs, so that the root stays as it is. */
  readonly baked?: string;
  /** Kernel arguments of the live system, put where a person would put theirs. */
  readonly args?: string;
}

function link(from: string, to: string): void {
  rmSync(to, { force: true });
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

/** FAT with shim, GRUB and MokManager, as the firmware looks for them on removable media. */
function makeEspImage(boot: BootFiles, path: string, config: string, options: MediaOptions): void {
  const env = { SOURCE_DATE_EPOCH: String(options.epoch), MTOOLS_SKIP_CHECK: "1" };
  writeFileSync(path, "");
  truncateSync(path, 8 * 1024 * 1024);
  run(["mkfs.vfat", "-n", "CORIUM-EFI", "-i", "c0000001", "--invariant", path], { env });
  for (const folder of ["::EFI", "::EFI/BOOT", "::EFI/debian"]) run(["mmd", "-i", path, folder], { env });
  writeFileSync(`${path}.cfg`, config);
  const files = { "shimx64.efi": "BOOT/BOOTX64.EFI", "grubx64.efi": "BOOT/grubx64.efi", "mmx64.efi": "BOOT/mmx64.efi" };
  for (const [name, target] of Object.entries(files)) {
    run(["mcopy", "-i", path, join(boot.folder, name), `::EFI/${target}`], { env });
  }
  run(["mcopy", "-i", path, `${path}.cfg`, "::EFI/debian/grub.cfg"], { env });
}

export function makeIso(boot: BootFiles, image: RootImage, iso: string, options: MediaOptions): void {
  const tree = join(options.work, "iso");
  rmSync(tree, { recursive: true, force: true });
  mkdirSync(join(tree, "corium/id"), { recursive: true });
  mkdirSync(join(tree, "boot/grub"), { recursive: true });
  writeFileSync(join(tree, "corium/id", image.rootHash.slice(0, 32)), "");
  // GRUB started from the El Torito image by UEFI takes the CD for its root, from a stick the FAT partition.
  const early = mediumEarlyConfig(image.rootHash);
  mkdirSync(join(tree, "EFI/debian"), { recursive: true });
  writeFileSync(join(tree, "EFI/debian/grub.cfg"), early);
  writeFileSync(join(tree, "boot/grub/grub.cfg"), mediumGrubConfig({ ...image, version: options.version }));
  link(join(boot.folder, "vmlinuz"), join(tree, "corium/vmlinuz"));
  link(join(boot.folder, "initrd"), join(tree, "corium/initrd"));
  link(image.file, join(tree, "corium/root.img"));
  if (options.baked !== undefined) writeFileSync(join(tree, "corium/baked.img"), bakedSegment(options.baked));
  if (options.args !== undefined) writeFileSync(join(tree, "corium/args"), `args="${options.args}"\n`);

  link(join(boot.folder, "eltorito.img"), join(tree, "boot/grub/eltorito.img"));
  const esp = join(options.work, "esp.img");
  makeEspImage(boot, esp, early, options);

  // Or the ISO would hold the time of this build. Links into the cache are touched too, which nothing minds.
  run(["find", tree, "-exec", "touch", "--no-dereference", "--date", `@${options.epoch}`, "{}", "+"]);
  run(
    [
      "xorriso",
      "-as",
      "mkisofs",
      "-quiet",
      "-V",
      "CORIUM",
      "-R",
      "-o",
      iso,
      "--grub2-mbr",
      join(boot.folder, "boot_hybrid.img"),
      "--protective-msdos-label",
      "-partition_offset",
      "16",
      "-append_partition",
      "2",
      "c12a7328-f81f-11d2-ba4b-00a0c93ec93b",
      esp,
      "-appended_part_as_gpt",
      "-c",
      "boot/grub/boot.cat",
      "-b",
      "boot/grub/eltorito.img",
      "-no-emul-boot",
      "-boot-load-size",
      "4",
      "-boot-info-table",
      "--grub2-boot-info",
      "-eltorito-alt-boot",
      "-e",
      "--interval:appended_partition_2:all::",
      "-no-emul-boot",
      tree,
    ],
    { env: { SOURCE_DATE_EPOCH: String(options.epoch) } },
  );
  rmSync(tree, { recursive: true, force: true });
}

export function makePxe(boot: BootFiles, image: RootImage, folder: string, options: MediaOptions): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ["vmlinuz", "initrd", "initrd-net"]) link(join(boot.folder, name), join(folder, name));
  link(image.file, join(folder, "root.squashfs"));
  const isBaked = options.baked !== undefined;
  if (options.baked !== undefined) writeFileSync(join(folder, "baked.img"), bakedSegment(options.baked));
  const { version, args = "" } = options;
  writeFileSync(join(folder, "boot.ipxe"), ipxeScript({ ...image, version, isBaked, args }));
}

/** What an installation writes to a disk, for tools and tests outside the image; the cache forgets. */
export function linkBootFiles(boot: BootFiles, folder: string): string {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of INSTALLED_FILES) link(join(boot.folder, name), join(folder, name));
  return folder;
}
