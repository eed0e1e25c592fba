/**
 * `bun iso/build.ts`: Debian packages, our tree, `corium` and k0s → ISO and PXE files in out/.
 * Every stage is cached by the hash of what goes into it, so that a change of the program alone remakes only the
 * squashfs and what lies around it.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makeBase } from "./build/base.ts";
import { makeRootImage } from "./build/image.ts";
import { makeBootFiles } from "./build/initrd.ts";
import { getK0s, standInBanner } from "./build/k0s.ts";
import { linkBootFiles, makeIso, makePxe } from "./build/media.ts";
import { makeRootfs } from "./build/rootfs.ts";
import { BuildError, run, say } from "./build/run.ts";
import { lockDrift, lockLines } from "./package-lock.ts";
import { compile, versionOf } from "./compile.ts";

const USAGE = `usage: bun iso/build.ts [OPTION…]

  --k0s download|PATH|sim|none  where k0s comes from (default: download); sim and none: development images only
  --k0s-version VERSION         one of iso/k0s.lock.json
  --config FILE                 bake a document in
  --args ARGUMENTS              more kernel arguments of the live system: "corium.ntp=10.0.0.1 hostname=n1"
  --dev-shell                   a root shell on ttyS1, for tests; development images only
  --release                     refuse everything that must not be shipped, and compress well
  --update-lock                 write iso/packages.lock from what Debian has today (with --k0s sim: of all packages)
  --binary FILE                 use this program instead of compiling main.ts
  --out FOLDER                  default: out
`;

const repository = join(import.meta.dir, "..");

function buildTime(): number {
  const given = process.env["SOURCE_DATE_EPOCH"];
  if (given !== undefined && /^\d+$/.test(given)) return Number(given);
  // The day of the last commit: stable while one works, and a floor for the clock of the node.
  const git = Bun.spawnSync(["git", "log", "-1", "--format=%ct"], { cwd: repository });
  const seconds = Number(git.stdout.toString().trim());
  const day = 86_400;
  return git.exitCode === 0 && seconds > 0 ? Math.floor(seconds / day) * day : 1_780_000_000;
}

/** The archive moves on: development says so and goes on, a release does not. */
function checkLock(listing: string, options: { readonly isRelease: boolean; readonly isUpdate: boolean }): void {
  const path = join(repository, "iso/packages.lock");
  const built = lockLines(readFileSync(listing, "utf8"));
  if (options.isUpdate)
    return writeFileSync(path, `# Made by: bun iso/build.ts --k0s sim --update-lock\n${built.join("\n")}\n`);
  const drift = lockDrift(existsSync(path) ? lockLines(readFileSync(path, "utf8")) : [], built);
  if (drift.length === 0) return;
  const shown = drift.slice(0, 10).concat(drift.length > 10 ? [`… and ${drift.length - 10} more`] : []);
  if (options.isRelease) {
    throw new BuildError(
      `the packages are not those of iso/packages.lock:\n${shown.join("\n")}\nlook at them, then --update-lock`,
    );
  }
  say(`warning: ${drift.length} packages differ from iso/packages.lock: ${shown.slice(0, 3).join("; ")}`);
}

/** Two builds at once each have one, named by their process; what builds that died left is removed. */
function ownFolder(parent: string): string {
  mkdirSync(parent, { recursive: true });
  for (const name of readdirSync(parent))
    if (!existsSync(`/proc/${name}`)) rmSync(join(parent, name), { recursive: true, force: true });
  const folder = join(parent, String(process.pid));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  return folder;
}

async function build(): Promise<void> {
  const { values } = parseArgs({
    options: {
      k0s: { type: "string", default: "download" },
      "k0s-version": { type: "string" },
      config: { type: "string" },
      args: { type: "string" },
      "dev-shell": { type: "boolean", default: false },
      release: { type: "boolean", default: false },
      "update-lock": { type: "boolean", default: false },
      binary: { type: "string" },
      out: { type: "string", default: join(repository, "out") },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return void process.stdout.write(USAGE);
  const isRelease = values.release;
  if (isRelease && (values.k0s === "sim" || values.k0s === "none" || values["dev-shell"])) {
    throw new BuildError("a release holds the real k0s and no shell: not with --k0s sim, --k0s none or --dev-shell");
  }
  if (process.getuid?.() !== 0) {
    throw new BuildError("the image is built by root (owners and modes of its files); no mounts are made");
  }
  if (values.config !== undefined && !existsSync(values.config))
    throw new BuildError(`--config ${values.config}: no such file`);
  // GRUB and iPXE read them as scripts.
  if (values.args !== undefined && !/^[\w =.,:/@%+[\]-]+$/.test(values.args))
    throw new BuildError(
      "--args: letters, digits, spaces and = . , : / @ % + - _ [ ] only: boot loaders read it as script",
    );

  const out = resolve(values.out);
  const cache = join(repository, "out/cache");
  const work = ownFolder(join(repository, "out/work"));
  const epoch = buildTime();
  const version = await versionOf(isRelease);
  mkdirSync(out, { recursive: true });

  const k0s = getK0s({
    source: values.k0s,
    repository,
    cache,
    work,
    ...(values["k0s-version"] !== undefined && { version: values["k0s-version"] }),
  });
  let binary = values.binary;
  if (binary === undefined) {
    binary = join(work, "corium");
    say("corium: compiling");
    compile(join(repository, "main.ts"), binary, version);
  }
  const base = makeBase(cache, { hasStandIn: k0s.name === "sim", epoch });
  const boot = makeBootFiles(base, { repository, cache, work, epoch });
  checkLock(join(boot.folder, "packages"), { isRelease, isUpdate: values["update-lock"] });
  const rootfs = makeRootfs(base, boot, { repository, cache });
  const image = makeRootImage(rootfs, {
    cache,
    work,
    version,
    epoch,
    binary,
    k0s: k0s.tree,
    k0sName: k0s.name,
    hasDevShell: values["dev-shell"],
    zstdLevel: isRelease ? 19 : 3,
  });
  const media = {
    repository,
    cache,
    work,
    version,
    epoch,
    ...(values.config !== undefined && { baked: readFileSync(values.config, "utf8") }),
    ...(values.args !== undefined && { args: values.args }),
  };
  const iso = join(out, `corium-${version}-amd64.iso`);
  makeIso(boot, image, iso, media);
  makePxe(boot, image, join(out, "pxe"), media);
  const { file, rootHash, hashOffsetBytes, sha256 } = image;
  const facts = {
    version,
    rootHash,
    hashOffsetBytes,
    sha256,
    rootBytes: Bun.file(file).size,
    bootFiles: linkBootFiles(boot, join(out, "boot")),
  };
  await Bun.write(join(out, "image.json"), `${JSON.stringify(facts, null, 2)}\n`);
  run(["rm", "-rf", work]);
  const mebibytes = (path: string): string => `${(Bun.file(path).size / 1024 / 1024).toFixed(0)} MiB`;
  say(
    `root image ${mebibytes(image.file)}, initramfs ${mebibytes(join(boot.folder, "initrd"))}, ISO ${mebibytes(iso)}`,
  );
  say(`${iso}, ${join(out, "pxe")}/`);
  if (k0s.name === "sim") process.stdout.write(`${standInBanner()}\n`);
  if (k0s.name === "none") say("this image holds no k0s at all");
  if (values["dev-shell"]) say("this image has a ROOT SHELL on ttyS1: for tests only");
}

if (import.meta.main) {
  try {
    await build();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`build: ${error.message}\n`);
    process.exitCode = 1;
  }
}
