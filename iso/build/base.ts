/** The Debian packages, once: everything after works on copies of this tree. */
import { cpSync, existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { BUILD_PACKAGES, COMPONENTS, EXCLUDED_PATHS, IMAGE_PACKAGES, STAND_IN_PACKAGES, SUITE } from "../packages.ts";
import { cached, keyOf, run } from "./run.ts";

const LISTING = "/usr/share/corium-packages";

export interface Base {
  readonly key: string;
  /** tar.zst of the installed system. */
  readonly archive: string;
}

export function makeBase(cache: string, options: { readonly hasStandIn: boolean; readonly epoch: number }): Base {
  const packages = [...IMAGE_PACKAGES, ...BUILD_PACKAGES, ...(options.hasStandIn ? STAND_IN_PACKAGES : [])];
  const key = keyOf({ SUITE, COMPONENTS, packages, EXCLUDED_PATHS, format: 3 });
  const archive = cached(cache, "base", key, (path) => {
    // No mirror named: mmdebstrap takes the suite's own, updates and security included, or APT's proxy settings.
    run(
      [
        "mmdebstrap",
        `--mode=${process.getuid?.() === 0 ? "root" : "unshare"}`,
        "--variant=minbase",
        `--components=${COMPONENTS.join(",")}`,
        ...EXCLUDED_PATHS.map((pattern) => `--dpkgopt=path-exclude=${pattern}`),
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        // A build that dies is made anew; waiting for the disk after each file is most of the time it takes.
        "--dpkgopt=force-unsafe-io",
        // Name, version and hash of each package as the signed archive lists them: for the lock.
        `--customize-hook=chroot "$1" sh -c 'dpkg-query -W -f "\\\${Package}=\\\${Version}\\n" | xargs apt-cache show --no-all-versions' > "$1${LISTING}"`,
        `--include=${packages.join(",")}`,
        SUITE,
        `${path}.tar.zst`,
      ],
      // The initramfs is made later, from our own hooks.
      { env: { SOURCE_DATE_EPOCH: String(options.epoch), INITRD: "No" } },
    );
    run(["mv", `${path}.tar.zst`, path]);
  });
  return { key, archive };
}

export function unpackBase(base: Base, folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  run([
    "tar",
    "--extract",
    "--zstd",
    "--file",
    base.archive,
    "--directory",
    folder,
    "--numeric-owner",
    "--exclude=./dev/*",
  ]);
}

/** `name version sha256` of every package, sorted; what the lock is compared with. */
export function packageList(root: string): string[] {
  const field = (block: string, name: string): string | undefined =>
    new RegExp(`^${name}: (.+)$`, "m").exec(block)?.[1];
  const lines = readFileSync(join(root, LISTING), "utf8")
    .split("\n\n")
    .map((block) => [field(block, "Package"), field(block, "Version"), field(block, "SHA256")])
    .filter((fields) => fields.every((value) => value !== undefined))
    .map((fields) => fields.join(" "));
  return [...new Set(lines)].toSorted();
}

/** In /usr/share/corium/boot of the image. */
export const INSTALLED_FILES = ["boot.img", "core.img", "shimx64.efi", "grubx64.efi", "mmx64.efi"] as const;

/** What the installer writes to disks, and what boots the medium: Debian's, as signed. */
export function takeBootFiles(root: string, target: string): void {
  mkdirSync(target, { recursive: true });
  const files = {
    "shimx64.efi": "usr/lib/shim/shimx64.efi.signed",
    "mmx64.efi": "usr/lib/shim/mmx64.efi.signed",
    "grubx64.efi": "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
    "boot.img": "usr/lib/grub/i386-pc/boot.img",
    "boot_hybrid.img": "usr/lib/grub/i386-pc/boot_hybrid.img",
  };
  for (const [name, source] of Object.entries(files)) cpSync(join(root, source), join(target, name));
}

export function kernelOf(root: string): { readonly release: string; readonly file: string } {
  const modules = join(root, "usr/lib/modules");
  const release = existsSync(modules) ? readdirSync(modules)[0] : undefined;
  if (release === undefined) throw new Error("the base holds no kernel");
  return { release, file: join(root, `boot/vmlinuz-${release}`) };
}

/** `cp -a` would bring the builder's owner and umask along: folders are 755, files 755 or 644 by their x bit. */
export function addTree(root: string, tree: string): void {
  if (!existsSync(tree)) return;
  run(["cp", "-a", "--no-preserve=ownership", `${tree}/.`, root]);
  const paths = [...new Glob("**/*").scanSync({ cwd: tree, onlyFiles: false, dot: true, followSymlinks: false })];
  const plain = paths.map((path) => join(root, path));
  if (plain.length > 0) run(["chmod", "--", "u=rwX,go=rX", ...plain.filter((path) => !isLink(path))]);
}

const isLink = (path: string): boolean => lstatSync(path).isSymbolicLink();

/** Programs inside the tree. Needs root; no mounts, so it works where mounting is forbidden. */
export function inRoot(root: string, argv: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  // Maintainer tools insist on /dev/null, and a plain file will do where devices can't be made.
  mkdirSync(join(root, "dev"), { recursive: true });
  if (!existsSync(join(root, "dev/null"))) writeFileSync(join(root, "dev/null"), "");
  return run(["chroot", root, ...argv], { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...env } });
}
