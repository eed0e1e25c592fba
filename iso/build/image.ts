/** The root image: the tree with `corium` and k0s in it as a squashfs, the dm-verity tree appended. */
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { cached, hashTrees, keyOf, run, sha256File } from "./run.ts";
import type { Rootfs } from "./rootfs.ts";

export interface RootImage {
  readonly key: string;
  /** squashfs and hash tree in one file. */
  readonly file: string;
  readonly sha256: string;
  readonly rootHash: string;
  /** The size of the squashfs: where the verity superblock lies. */
  readonly hashOffsetBytes: number;
}

export interface ImageOptions {
  readonly cache: string;
  readonly work: string;
  readonly version: string;
  readonly epoch: number;
  /** The compiled program; also `cctl`, by its other name. */
  readonly binary: string;
  /** A tree laid over the root: `usr/bin/k0s` and what belongs to it. */
  readonly k0s: string;
  readonly k0sName: string;
  readonly hasDevShell: boolean;
  readonly zstdLevel: number;
}

/** As test/qemu/harness/shell.ts speaks: one line in, evaluated, its output back; no prompt, no echo, no limit. */
const DEV_SHELL_UNIT = `[Unit]
Description=Root shell on the second serial port (development image)
ConditionPathExists=/dev/ttyS1
DefaultDependencies=no
IgnoreOnIsolate=yes

[Service]
ExecStart=/bin/sh -c 'stty raw -echo </dev/ttyS1; while IFS= read -r line; do eval "$$line"; done </dev/ttyS1 >/dev/ttyS1 2>/dev/null'
Environment=HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
WorkingDirectory=/
Restart=always
RestartSec=1
`;

function osRelease(options: ImageOptions): string {
  const variant = [options.hasDevShell ? "dev-shell" : "", options.k0sName === "sim" ? "k0s-stand-in" : ""].filter(
    Boolean,
  );
  return [
    'NAME="Corium"',
    "ID=corium",
    "ID_LIKE=debian",
    `VERSION_ID="${options.version}"`,
    `PRETTY_NAME="Corium ${options.version}"`,
    `IMAGE_VERSION="${options.version}"`,
    ...(variant.length > 0 ? [`VARIANT_ID="${variant.join("-")}"`] : []),
    "",
  ].join("\n");
}

function put(root: string, path: string, content: string): void {
  // The tree is hard links into the cache: never write into a file that is there.
  rmSync(join(root, path), { recursive: true, force: true });
  writeFileSync(join(root, path), content);
  chmodSync(join(root, path), 0o644);
}

export function makeRootImage(rootfs: Rootfs, options: ImageOptions): RootImage {
  const key = keyOf({
    rootfs: rootfs.key,
    binary: sha256File(options.binary),
    k0s: hashTrees([options.k0s]),
    k0sName: options.k0sName,
    version: options.version,
    epoch: options.epoch,
    shell: options.hasDevShell && DEV_SHELL_UNIT,
    level: options.zstdLevel,
    recipe: hashTrees([import.meta.path]),
  });
  const folder = cached(
    options.cache,
    "image",
    key,
    (target) => {
      mkdirSync(target);
      const root = join(options.work, "image-root");
      rmSync(root, { recursive: true, force: true });
      mkdirSync(options.work, { recursive: true });
      run(["cp", "-al", rootfs.folder, root]);
      run(["cp", "-a", "--no-preserve=ownership", "--remove-destination", `${options.k0s}/.`, root]);
      copyFileSync(options.binary, join(root, "usr/bin/corium"));
      chmodSync(join(root, "usr/bin/corium"), 0o755);
      symlinkSync("corium", join(root, "usr/bin/cctl"));
      put(root, "usr/lib/os-release", osRelease(options));
      // systemd never starts with a clock before this file's time.
      put(root, "usr/lib/clock-epoch", "");
      if (options.hasDevShell) {
        put(root, "usr/lib/systemd/system/corium-dev-shell.service", DEV_SHELL_UNIT);
        mkdirSync(join(root, "usr/lib/systemd/system/sysinit.target.wants"), { recursive: true });
        symlinkSync(
          "../corium-dev-shell.service",
          join(root, "usr/lib/systemd/system/sysinit.target.wants/corium-dev-shell.service"),
        );
      }
      const image = join(target, "root.img");
      const last = join(options.work, "sort");
      // Lower priority is written later: a new program moves nothing else.
      writeFileSync(last, "usr/bin/corium -32000\n");
      run([
        "mksquashfs",
        root,
        image,
        "-noappend",
        "-no-progress",
        "-quiet",
        "-comp",
        "zstd",
        "-Xcompression-level",
        String(options.zstdLevel),
        "-b",
        "262144",
        "-sort",
        last,
        "-all-time",
        String(options.epoch),
        "-mkfs-time",
        String(options.epoch),
      ]);
      run(["rm", "-rf", root]);
      const size = statSync(image).size;
      const padding = (4096 - (size % 4096)) % 4096;
      appendFileSync(image, new Uint8Array(padding));
      const hashOffsetBytes = size + padding;
      const output = run([
        "veritysetup",
        "format",
        image,
        image,
        `--hash-offset=${hashOffsetBytes}`,
        `--data-blocks=${hashOffsetBytes / 4096}`,
        "--data-block-size=4096",
        "--hash-block-size=4096",
        "--hash=sha256",
        "--salt=-",
        // Any fixed one: two builds of the same tree are the same bytes.
        "--uuid=c0000000-0000-4000-8000-000000000001",
      ]);
      const rootHash = /^Root hash:\s+([0-9a-f]{64})$/m.exec(output)?.[1];
      if (rootHash === undefined) throw new Error(`veritysetup printed no root hash:\n${output}`);
      writeFileSync(
        join(target, "image.json"),
        JSON.stringify({ rootHash, hashOffsetBytes, sha256: sha256File(image) }),
      );
    },
    3,
  );
  const facts = JSON.parse(readFileSync(join(folder, "image.json"), "utf8")) as Omit<RootImage, "key" | "file">;
  return { key, file: join(folder, "root.img"), ...facts };
}
