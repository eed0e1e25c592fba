/** The two initramfs: a small one for CD and disk, one with network drivers for PXE. */
import { cpSync, existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { KEPT_ETC } from "../../kit/paths.ts";
import { BIOS_MODULES, installedCorePrefix } from "../grub.ts";
import { initrdComplaints } from "../initrd-content.ts";
import { addTree, inRoot, kernelOf, packageList, takeBootFiles, unpackBase } from "./base.ts";
import type { Base } from "./base.ts";
import { BuildError, cached, hashTrees, keyOf } from "./run.ts";

export interface BootFiles {
  readonly key: string;
  /** vmlinuz, initrd, initrd-net, packages, and what takeBootFiles and grub-mkimage make. */
  readonly folder: string;
}

interface InitrdOptions {
  readonly repository: string;
  readonly cache: string;
  readonly work: string;
  readonly epoch: number;
}

/** An initramfs that could touch a foreign disk is not built at all. */
function inspect(root: string, name: string): void {
  inRoot(root, ["unmkinitramfs", `/${name}`, "/unpacked"]);
  const unpacked = existsSync(join(root, "unpacked/main")) ? join(root, "unpacked/main") : join(root, "unpacked");
  const contents = new Map<string, number>();
  for (const path of new Glob("**/*").scanSync({ cwd: unpacked, dot: true, followSymlinks: false })) {
    contents.set(path, lstatSync(join(unpacked, path)).size);
  }
  const complaints = initrdComplaints(contents, readFileSync(join(unpacked, "etc/mdadm/mdadm.conf"), "utf8"));
  if (complaints.length > 0) throw new BuildError(`the ${name} is not fit to boot:\n${complaints.join("\n")}`);
  rmSync(join(root, "unpacked"), { recursive: true, force: true });
}

export function makeBootFiles(base: Base, options: InitrdOptions): BootFiles {
  const { repository, cache, work, epoch } = options;
  const sources = [join(repository, "iso/initramfs"), join(repository, "iso/rootfs-storage")];
  const key = keyOf({
    base: base.key,
    sources: hashTrees(sources),
    KEPT_ETC,
    BIOS_MODULES,
    installedCorePrefix,
    epoch,
    recipe: hashTrees([import.meta.path]),
  });
  const folder = cached(cache, "boot", key, (target) => {
    const root = join(work, "initrd-root");
    unpackBase(base, root);
    mkdirSync(target);
    takeBootFiles(root, target);
    writeFileSync(join(target, "packages"), `${packageList(root).join("\n")}\n`);
    addTree(root, join(repository, "iso/rootfs-storage"));

    const conf = join(root, "etc/initramfs-tools");
    cpSync(join(repository, "iso/initramfs"), conf, { recursive: true });
    writeFileSync(join(conf, "corium-kept"), `${KEPT_ETC.join("\n")}\n`);
    const kernel = kernelOf(root);
    cpSync(kernel.file, join(target, "vmlinuz"));
    for (const [name, hasNetwork] of [
      ["initrd", "n"],
      ["initrd-net", "y"],
    ] as const) {
      inRoot(root, ["mkinitramfs", "-o", `/${name}`, kernel.release], {
        CORIUM_NETWORK: hasNetwork,
        SOURCE_DATE_EPOCH: String(epoch),
      });
      inspect(root, name);
      renameSync(join(root, name), join(target, name));
    }
    // GRUB's own tool and modules must be of one version, so it runs in the tree that it came with.
    inRoot(root, ["grub-mkimage", "-O", "i386-pc", "-p", installedCorePrefix, "-o", "/core.img", ...BIOS_MODULES]);
    renameSync(join(root, "core.img"), join(target, "core.img"));
    // Without a device in its prefix it takes what the BIOS started it from: CD or stick.
    inRoot(root, ["grub-mkimage", "-O", "i386-pc-eltorito", "-p", "/boot/grub", "-o", "/core.img", ...BIOS_MODULES]);
    renameSync(join(root, "core.img"), join(target, "eltorito.img"));
    rmSync(root, { recursive: true, force: true });
  });
  return { key, folder };
}
