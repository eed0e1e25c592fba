/** Programs, caches and progress of the image build. Build-time only: nothing here is in the node's program. */
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { join } from "node:path";

/** Something the person who builds can act on; caught once, in build.ts. */
export class BuildError extends Error {}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Uint8Array;
}

/** Runs a program to its end; its output is shown only when it fails. */
export function run(argv: readonly string[], options: RunOptions = {}): string {
  const [program = ""] = argv;
  if (Bun.which(program) === null) {
    throw new BuildError(`${program} is not installed; ./dev names the Debian packages that the build needs`);
  }
  const done = Bun.spawnSync([...argv], {
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    env: { ...process.env, LC_ALL: "C", ...options.env },
    stdin: options.input === undefined ? "ignore" : Buffer.from(options.input),
    stdout: "pipe",
    stderr: "pipe",
  });
  if (done.exitCode !== 0) {
    const tail = (done.stdout.toString() + done.stderr.toString()).trimEnd().split("\n").slice(-30).join("\n");
    throw new BuildError(`${argv.slice(0, 6).join(" ")} … failed with ${done.exitCode ?? done.signalCode}:\n${tail}`);
  }
  return done.stdout.toString();
}

export const sha256File = (path: string): string => {
  const hash = new Bun.CryptoHasher("sha256");
  hash.update(readFileSync(path));
  return hash.digest("hex");
};

/** Names, modes and content of files and folders, in a stable order. */
export function hashTrees(paths: readonly string[]): string {
  const hash = createHash("sha256");
  const visit = (path: string, name: string): void => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return void hash.update(`${name}\0absent\0`);
    if (stat.isSymbolicLink()) return void hash.update(`${name}\0link\0${readlinkSync(path)}\0`);
    if (!stat.isDirectory()) {
      hash.update(`${name}\0${(stat.mode & 0o111) !== 0 ? "x" : "-"}\0${stat.size}\0`);
      return void hash.update(readFileSync(path));
    }
    hash.update(`${name}/\0`);
    for (const entry of readdirSync(path).toSorted()) visit(join(path, entry), `${name}/${entry}`);
  };
  paths.forEach((path, index) => visit(path, String(index)));
  return hash.digest("hex");
}

export const keyOf = (input: unknown): string =>
  createHash("sha256").update(JSON.stringify(input)).digest("hex").slice(0, 16);

const started = performance.now();

export function say(text: string): void {
  const seconds = ((performance.now() - started) / 1000).toFixed(1).padStart(6);
  process.stdout.write(`[${seconds} s] ${text}\n`);
}

/** Runs one stage unless its result is there: `make` fills a temporary path, which is renamed when complete. */
export function cached(folder: string, name: string, key: string, make: (path: string) => void, keep = 2): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}-${key}`);
  if (existsSync(path)) {
    say(`${name}: from the cache (${key})`);
    utimesSync(path, new Date(), new Date());
    return path;
  }
  const begun = performance.now();
  say(`${name}: making it`);
  const partial = join(folder, `.partial-${name}-${key}`);
  rmSync(partial, { recursive: true, force: true });
  try {
    make(partial);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error;
  }
  renameSync(partial, path);
  utimesSync(path, new Date(), new Date());
  say(`${name}: made in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  const old = readdirSync(folder)
    .filter((entry) => /^[0-9a-f]{16}$/.test(entry.slice(name.length + 1)) && entry.startsWith(`${name}-`))
    .map((entry) => ({ entry, mtimeMs: statSync(join(folder, entry)).mtimeMs }))
    .toSorted((a, b) => b.mtimeMs - a.mtimeMs);
  for (const { entry } of old.slice(keep)) rmSync(join(folder, entry), { recursive: true, force: true });
  return path;
}
