/** Where k0s comes from: the release (verified), a file (verified), or the stand-in that only development may use. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { k0sLock } from "../k0s-lock.ts";
import { BuildError, cached, hashTrees, keyOf, run, say, sha256File } from "./run.ts";

export interface K0s {
  /** Tree to lay over the root. */
  readonly tree: string;
  readonly name: "release" | "sim" | "none";
  readonly version?: string;
}

interface K0sOptions {
  /** `download`, `sim`, `none` (development only) or a path. */
  readonly source: string;
  readonly version?: string;
  readonly repository: string;
  readonly cache: string;
  readonly work: string;
}

function lockedHash(version: string): string {
  const hash = k0sLock.versions[version]?.["amd64"];
  if (hash === undefined) throw new BuildError(`k0s ${version} for amd64 is not in iso/k0s.lock.json`);
  return hash;
}

function place(file: string, folder: string): void {
  mkdirSync(join(folder, "usr/bin"), { recursive: true });
  copyFileSync(file, join(folder, "usr/bin/k0s"));
  chmodSync(join(folder, "usr/bin/k0s"), 0o755);
}

function verify(file: string, version: string): void {
  const [wanted, got] = [lockedHash(version), sha256File(file)];
  if (wanted !== got) {
    throw new BuildError(`${file} is not k0s ${version}: wanted SHA-256 ${wanted}, got ${got}`);
  }
}

export function standInBanner(): string {
  const line = "*".repeat(78);
  return [
    line,
    "**  THIS IMAGE HOLDS A STAND-IN FOR k0s. It looks like k0s and runs no workload.",
    "**  For tests and for looking around only; `k0s version` ends in -sim.",
    line,
  ].join("\n");
}

/** Throws with words when there is nothing to be had; the caller decides whether the stand-in will do. */
export function getK0s(options: K0sOptions): K0s {
  const { repository, cache, work, source } = options;
  const version = options.version ?? k0sLock.default;
  if (source === "none") {
    const tree = join(work, "k0s-none");
    mkdirSync(tree, { recursive: true });
    return { tree, name: "none" };
  }
  if (source === "sim") {
    const builder = join(repository, "test/qemu/k0s-sim/build.ts");
    if (!existsSync(builder)) throw new BuildError("the stand-in for k0s (test/qemu/k0s-sim/build.ts) is not there");
    const sources = [join(repository, "test/qemu/k0s-sim"), join(repository, "bun.lock")];
    const tree = cached(cache, "k0s-sim", keyOf({ sources: hashTrees(sources) }), (target) => {
      run([process.execPath, builder, target], { cwd: repository });
    });
    return { tree, name: "sim" };
  }
  const tree = cached(cache, "k0s", keyOf({ version, hash: lockedHash(version), source }), (target) => {
    if (source !== "download") {
      if (!existsSync(source)) throw new BuildError(`--k0s ${source}: no such file`);
      verify(source, version);
      return place(source, target);
    }
    const file = join(work, "k0s-download");
    mkdirSync(work, { recursive: true });
    const url = `https://github.com/k0sproject/k0s/releases/download/${encodeURIComponent(version)}/k0s-${encodeURIComponent(version)}-amd64`;
    say(`k0s: fetching ${url}`);
    const fetched = Bun.spawnSync(["curl", "--fail", "--silent", "--show-error", "--location", "--output", file, url]);
    if (fetched.exitCode !== 0) {
      throw new BuildError(
        `k0s ${version} could not be fetched: ${fetched.stderr.toString().trim()}\n` +
          "give it as a file with --k0s PATH, or build a development image with --k0s sim",
      );
    }
    verify(file, version);
    place(file, target);
    rmSync(file, { force: true });
  });
  return { tree, name: "release", version };
}
