import type { Stats } from "node:fs";
import * as fs from "node:fs/promises";
import { basename, dirname, join } from "node:path";

import type { AppError } from "../kit/app-error.ts";
import { appError } from "../kit/app-error.ts";
import { isKept } from "../kit/paths.ts";
import type { FileStat, Files, WriteOptions } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";
import { isTemporaryName, temporaryName } from "../kit/temporary.ts";

export interface FilesOptions {
  /**
   * Where the kept part of /etc lives, e.g. `/var/lib/corium/etc`. Absent: nothing is mirrored (the live system,
   * a workstation).
   */
  readonly keptEtc?: string;
  /**
   * The upper layer of the overlay on /etc. Of what other programs made only this is kept: the image's own links, kept
   * too, would lie over those of a later image. Without it, or where it is not there: what /etc shows.
   */
  readonly etcUpper?: string;
  /** What stands for /etc in a test. */
  readonly etc?: string;
  /** Of a program that a person starts, whose files may come from a shell: `--file <(…)`. */
  readonly takesPipes?: true;
}

export function realFiles(options: FilesOptions = {}): Files {
  /** The copy that survives a boot, or undefined. It is changed before the live one. */
  const etc = options.etc ?? "/etc";
  const keptCopy = (path: string): string | undefined => {
    if (options.keptEtc === undefined || !path.startsWith(`${etc}/`)) return undefined;
    const below = path.slice(etc.length);
    return isKept(`/etc${below}`) || isKept(`/etc${below}/`) ? join(options.keptEtc, below) : undefined;
  };
  const both = async (path: string, change: (path: string) => Promise<void>): Promise<Result<void, AppError>> => {
    const kept = keptCopy(path);
    return attempt(path, async () => {
      if (kept !== undefined) await change(kept);
      await change(path);
    });
  };
  const read = async (path: string, maxBytes?: number): Promise<Uint8Array> => {
    // Opening one waits for whoever writes into it, for ever if nobody does.
    if (options.takesPipes !== true && (await fs.stat(path)).isFIFO()) {
      throw Object.assign(new Error("a pipe"), { code: "EPIPE" });
    }
    return readCapped(path, maxBytes);
  };

  return {
    read: (path, more) => attempt(path, () => read(path, more?.maxBytes)),
    readText: (path, more) => attempt(path, async () => decoder.decode(await read(path, more?.maxBytes))),
    write: (path, content, how) => both(path, (at) => writeDurably(at, content, how)),
    remove: (path, more) =>
      both(path, async (at) => {
        try {
          if (more?.recursive === true) await fs.rm(at, { recursive: true, force: true });
          else await fs.unlink(at);
        } catch (thrown) {
          if (codeOf(thrown) !== "ENOENT") throw thrown;
          return;
        }
        await syncFolder(dirname(at));
      }),
    async rename(from, to) {
      const keptFrom = keptCopy(from);
      const keptTo = keptCopy(to);
      return attempt(from, async () => {
        if (keptFrom !== undefined && keptTo !== undefined) await renameDurably(keptFrom, keptTo);
        else if (keptTo !== undefined) await mirror(from, keptTo);
        await renameDurably(from, to);
        if (keptFrom !== undefined && keptTo === undefined) await fs.rm(keptFrom, { recursive: true, force: true });
      });
    },
    mkdir: (path, how) =>
      both(path, async (at) => {
        await makeFolders(at, how.mode);
        await setOwner(at, how);
      }),
    list: (path) => attempt(path, async () => (await fs.readdir(path)).toSorted()),
    stat: async (path, more) => {
      try {
        return ok(toStat(await (more?.noFollow === true ? fs.lstat(path) : fs.stat(path))));
      } catch (thrown) {
        return isAbsent(thrown) ? ok(null) : err(fileError(path, thrown));
      }
    },
    realpath: (path) => attempt(path, () => fs.realpath(path)),
    readlink: (path) => attempt(path, () => fs.readlink(path)),
    symlink: (target, path) => both(path, (at) => linkDurably(target, at)),
    async keep(path) {
      const kept = keptCopy(path);
      if (kept === undefined) return ok(undefined);
      const upper = options.etcUpper;
      const isLayered = upper !== undefined && (await isFolder(upper));
      const from = isLayered ? join(upper, path.slice(etc.length)) : path;
      return attempt(path, () => mirror(from.replace(/\/$/, ""), kept));
    },
  };
}

async function readCapped(path: string, maxBytes = Number.POSITIVE_INFINITY): Promise<Uint8Array> {
  const handle = await fs.open(path, "r");
  try {
    const chunks: Uint8Array[] = [];
    let size = 0;
    // Files of /proc and /sys say that they are empty: read until the end instead of trusting stat.
    for (;;) {
      const buffer = new Uint8Array(64 * 1024);
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) break;
      size += bytesRead;
      if (size > maxBytes) throw Object.assign(new Error(`larger than ${maxBytes} bytes`), { code: "EFBIG" });
      chunks.push(buffer.subarray(0, bytesRead));
    }
    return new Uint8Array(Buffer.concat(chunks));
  } finally {
    await handle.close();
  }
}

let temporaryCount = 0;

async function writeDurably(path: string, content: string | Uint8Array, how: WriteOptions): Promise<void> {
  const folder = dirname(path);
  await makeFolders(folder, 0o755);
  temporaryCount += 1;
  const temporary = join(folder, temporaryName(basename(path), process.pid, temporaryCount));
  try {
    // The mode is set again: the umask cuts the one given to open(2). Never wider than asked for, not even for a moment.
    const handle = await fs.open(temporary, "wx", how.mode & 0o600);
    try {
      await handle.writeFile(content);
      await setOwner(temporary, how);
      await fs.chmod(temporary, how.mode);
      await handle.sync();
    } finally {
      await handle.close();
    }
    // rename(2) would replace what is there; link(2) does not.
    if (how.isNew === true) {
      await fs.link(temporary, path);
      await fs.unlink(temporary);
    } else await fs.rename(temporary, path);
  } catch (thrown) {
    await fs.rm(temporary, { force: true });
    throw thrown;
  }
  await syncFolder(folder);
}

async function linkDurably(target: string, path: string): Promise<void> {
  const folder = dirname(path);
  await makeFolders(folder, 0o755);
  temporaryCount += 1;
  const temporary = join(folder, temporaryName(basename(path), process.pid, temporaryCount));
  await fs.symlink(target, temporary);
  await fs.rename(temporary, path);
  await syncFolder(folder);
}

async function renameDurably(from: string, to: string): Promise<void> {
  await makeFolders(dirname(to), 0o755);
  await fs.rename(from, to);
  await syncFolder(dirname(to));
  if (dirname(from) !== dirname(to)) await syncFolder(dirname(from));
}

/** Makes `to` the same as `from`, absence included. Links are copied as links. */
const isFolder = async (path: string): Promise<boolean> =>
  (await fs.stat(path).catch(() => undefined))?.isDirectory() === true;

async function mirror(from: string, to: string): Promise<void> {
  const stat = await fs.lstat(from).catch((thrown: unknown) => {
    if (isAbsent(thrown)) return undefined;
    throw thrown;
  });
  // A character device in an upper layer says that what lies below was removed.
  if (stat === undefined || stat.isCharacterDevice()) {
    await fs.rm(to, { recursive: true, force: true });
    await syncFolder(dirname(to)).catch(() => {});
    return;
  }
  if (stat.isSymbolicLink()) {
    const target = await fs.readlink(from);
    if ((await fs.readlink(to).catch(() => undefined)) !== target) await linkDurably(target, to);
    return;
  }
  if (stat.isDirectory()) {
    await makeFolders(to, stat.mode & 0o7777);
    const wanted = (await fs.readdir(from)).filter((name) => !isTemporaryName(name));
    const present = await fs.readdir(to);
    for (const name of wanted) await mirror(join(from, name), join(to, name));
    for (const name of present.filter((other) => !wanted.includes(other))) {
      await fs.rm(join(to, name), { recursive: true, force: true });
    }
    await syncFolder(to);
    return;
  }
  if (!stat.isFile()) return;
  const content = await fs.readFile(from);
  const old = await fs.readFile(to).catch(() => undefined);
  const oldStat = await fs.lstat(to).catch(() => undefined);
  if (old !== undefined && old.equals(content) && oldStat?.mode === stat.mode && oldStat.uid === stat.uid) return;
  await writeDurably(to, content, { mode: stat.mode & 0o7777 });
  if (process.getuid?.() === 0) await fs.chown(to, stat.uid, stat.gid);
}

async function makeFolders(path: string, mode: number): Promise<void> {
  try {
    await fs.mkdir(path, { mode });
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === "EEXIST") {
      if ((await fs.stat(path)).isDirectory()) return;
      throw thrown;
    }
    if (code !== "ENOENT" || dirname(path) === path) throw thrown;
    await makeFolders(dirname(path), 0o755);
    await makeFolders(path, mode);
    return;
  }
  await fs.chmod(path, mode);
  await syncFolder(dirname(path));
}

async function syncFolder(path: string): Promise<void> {
  const handle = await fs.open(path, "r");
  try {
    await handle.sync();
  } catch (thrown) {
    // Some filesystems (9p, overlay's merged folders in old kernels) can't sync a folder; nothing more can be done there.
    if (codeOf(thrown) !== "EINVAL") throw thrown;
  } finally {
    await handle.close();
  }
}

async function setOwner(path: string, how: WriteOptions): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { user, group } = how.owner ?? { user: "root", group: "root" };
  await fs.chown(path, await idOf("/etc/passwd", user), await idOf("/etc/group", group));
}

async function idOf(database: string, name: string): Promise<number> {
  if (name === "root") return 0;
  const entry = (await fs.readFile(database, "utf8")).split("\n").find((line) => line.startsWith(`${name}:`));
  const id = Number(entry?.split(":")[2]);
  if (!Number.isInteger(id)) throw Object.assign(new Error(`no ${name} in ${database}`), { code: "EOWNER" });
  return id;
}

function toStat(stat: Stats): FileStat {
  return {
    kind: kindOf(stat),
    sizeBytes: stat.size,
    mode: stat.mode & 0o7777,
    uid: stat.uid,
    gid: stat.gid,
    mtimeMs: stat.mtimeMs,
  };
}

function kindOf(stat: Stats): FileStat["kind"] {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "directory";
  if (stat.isSymbolicLink()) return "symlink";
  if (stat.isBlockDevice()) return "block";
  return stat.isCharacterDevice() ? "char" : "other";
}

async function attempt<T>(path: string, work: () => Promise<T>): Promise<Result<T, AppError>> {
  try {
    return ok(await work());
  } catch (thrown) {
    return err(fileError(path, thrown));
  }
}

/** A byte order mark stays: what is read is compared with what was written. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

const codeOf = (thrown: unknown): string | undefined =>
  thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : undefined;

/** ENOTDIR: a parent is a file, so that the path can't be there either. */
const isAbsent = (thrown: unknown): boolean => codeOf(thrown) === "ENOENT" || codeOf(thrown) === "ENOTDIR";

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "is not there",
  EACCES: "may not be read or changed",
  EPERM: "may not be changed",
  EROFS: "is on a read-only filesystem",
  ENOSPC: "does not fit: no space is left",
  EISDIR: "is a folder",
  ENOTDIR: "has a parent that is not a folder",
  EFBIG: "is larger than allowed",
  EPIPE: "is a pipe, not a file",
  EEXIST: "is there already",
  EIO: "can't be read or written: the disk fails",
};

function fileError(path: string, thrown: unknown): AppError {
  const code = codeOf(thrown) ?? "EUNKNOWN";
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return appError(code, `${path} ${REASONS[code] ?? `failed: ${text}`}`);
}
