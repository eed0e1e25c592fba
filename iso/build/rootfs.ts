/** Debian's tree made into ours: files added, units masked, accounts made, everything unneeded removed. */
import { chmodSync, cpSync, existsSync, mkdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { installedGrubConfig } from "../grub.ts";
import { MASKED_GENERATORS, MASKED_UNITS, RESCUE_NAMES } from "../masks.ts";
import { PRUNED, PRUNED_MODULES, PRUNED_WITHOUT_KEEPALIVED, VAR_FOLDERS } from "../packages.ts";
import { INSTALLED_FILES, addTree, inRoot, kernelOf, unpackBase } from "./base.ts";
import type { Base } from "./base.ts";
import type { BootFiles } from "./initrd.ts";
import { BuildError, cached, hashTrees, keyOf, sha256File } from "./run.ts";

export interface Rootfs {
  readonly key: string;
  readonly folder: string;
}

export function removeMatches(root: string, patterns: readonly string[]): void {
  for (const pattern of patterns) {
    const matches = pattern.includes("*")
      ? [...new Glob(pattern).scanSync({ cwd: root, onlyFiles: false, dot: true, followSymlinks: false })]
      : [pattern];
    for (const match of matches) rmSync(join(root, match), { recursive: true, force: true });
  }
}

function replaceWithLink(root: string, path: string, target: string): void {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  rmSync(full, { recursive: true, force: true });
  symlinkSync(target, full);
}

function put(root: string, path: string, content: string, mode = 0o644): void {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  rmSync(full, { force: true });
  writeFileSync(full, content);
  chmodSync(full, mode);
}

function configure(root: string, boot: BootFiles): void {
  for (const unit of MASKED_UNITS) replaceWithLink(root, `etc/systemd/system/${unit}`, "/dev/null");
  for (const generator of MASKED_GENERATORS) {
    replaceWithLink(root, `etc/systemd/system-generators/${generator}`, "/dev/null");
  }
  for (const name of RESCUE_NAMES) replaceWithLink(root, `usr/lib/systemd/system/${name}`, "corium-rescue.target");
  inRoot(root, ["systemd-sysusers"]);
  inRoot(root, ["systemctl", "preset-all"]);
  inRoot(root, ["systemctl", "set-default", "multi-user.target"]);
  // Nobody logs in: no password anywhere, root included, and no shell behind the name.
  inRoot(root, ["sed", "-i", "s/^\\([^:]*\\):[^:]*:/\\1:!*:/", "/etc/shadow"]);
  inRoot(root, ["sed", "-i", "s#^root:\\(.*\\):/bin/bash$#root:\\1:/usr/sbin/nologin#", "/etc/passwd"]);
  rmSync(join(root, "etc/shadow-"), { force: true });
  rmSync(join(root, "etc/passwd-"), { force: true });

  put(root, "etc/machine-id", "", 0o444);
  replaceWithLink(root, "etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf");
  replaceWithLink(root, "etc/mtab", "../proc/self/mounts");
  replaceWithLink(root, "etc/localtime", "/usr/share/zoneinfo/Etc/UTC");
  put(root, "etc/fstab", "# Mounted by the initramfs and by rendered .mount units.\n");
  put(root, "etc/securetty", "");
  // Source 4 of the document: whatever the initramfs found baked into this medium.
  replaceWithLink(root, "usr/share/corium/config.yaml", "/run/corium/baked/config.yaml");

  const files = join(root, "usr/share/corium/boot");
  mkdirSync(files, { recursive: true });
  for (const name of INSTALLED_FILES) {
    cpSync(join(boot.folder, name), join(files, name));
  }
  put(root, "usr/share/corium/boot/grub.cfg", installedGrubConfig());
  const sums = ["vmlinuz", "initrd"].map((name) => `${sha256File(join(boot.folder, name))}  ${name}\n`);
  put(root, "usr/share/corium/boot/SHA256SUMS", sums.join(""));
  cpSync(join(boot.folder, "packages"), join(root, "usr/share/corium/packages"));
}

const LISTS_MISSING = `
for program in /usr/bin/* /usr/sbin/* /usr/lib/systemd/systemd* /usr/lib/x86_64-linux-gnu/security/*; do
  [ -f "$program" ] || continue
  /lib64/ld-linux-x86-64.so.2 --list "$program" 2>&1 >/dev/null | grep "cannot open shared object" || true
done`;

/** What was removed must be needed by nothing that stays: it would show on a node only, when the program is called. */
function checkLibraries(root: string): void {
  const missing = inRoot(root, ["sh", "-c", LISTS_MISSING]).trim();
  if (missing !== "")
    throw new BuildError(`programs of the image need libraries that iso/packages.ts removes:\n${missing}`);
}

export function makeRootfs(base: Base, boot: BootFiles, options: { repository: string; cache: string }): Rootfs {
  const trees = ["iso/rootfs", "iso/rootfs-storage"].map((path) => join(options.repository, path));
  const key = keyOf({
    base: base.key,
    boot: boot.key,
    trees: hashTrees(trees),
    grub: installedGrubConfig(),
    lists: [
      MASKED_UNITS,
      MASKED_GENERATORS,
      RESCUE_NAMES,
      PRUNED,
      PRUNED_WITHOUT_KEEPALIVED,
      PRUNED_MODULES,
      VAR_FOLDERS,
    ],
    recipe: hashTrees([import.meta.path]),
  });
  const folder = cached(options.cache, "rootfs", key, (root) => {
    unpackBase(base, root);
    for (const tree of trees) addTree(root, tree);
    configure(root, boot);
    const kernel = kernelOf(root).release;
    removeMatches(join(root, "usr/lib/modules", kernel, "kernel"), PRUNED_MODULES);
    inRoot(root, ["depmod", kernel]);
    removeMatches(root, PRUNED);
    if (!existsSync(join(root, "usr/sbin/keepalived"))) removeMatches(root, PRUNED_WITHOUT_KEEPALIVED);
    checkLibraries(root);
    for (const name of VAR_FOLDERS) mkdirSync(join(root, "usr/share/corium/var", name), { recursive: true });
    chmodSync(join(root, "usr/share/corium/var/tmp"), 0o1777);
    symlinkSync("/run", join(root, "usr/share/corium/var/run"));
    symlinkSync("/run/lock", join(root, "usr/share/corium/var/lock"));
    for (const name of ["opt", "srv", "mnt", "root", "usr/libexec/k0s", "var", "proc", "sys", "dev", "run", "tmp"]) {
      mkdirSync(join(root, name), { recursive: true });
    }
    if (existsSync(join(root, "dev/null"))) unlinkSync(join(root, "dev/null"));
  });
  return { key, folder };
}
