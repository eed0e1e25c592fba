/**
 * The files of a fake machine: what the Files port wrote is durable, what programs put there only after a sync; /etc and
 * /run are made anew at each boot.
 */
import type { AppError } from "../../kit/app-error.ts";
import { appError } from "../../kit/app-error.ts";
import { isKept } from "../../kit/paths.ts";
import type { Files, FileStat, WriteOptions } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { err, ok } from "../../kit/result.ts";
import type { Call } from "./fake-call.ts";
import type { FakeNode } from "./fake-host-model.ts";

export interface FakeFilesOptions {
  readonly call: Call;
  /** The image and the hardware: there at each boot, also under /etc and /run. */
  readonly image: Readonly<Record<string, string | Uint8Array>>;
  readonly keptEtc: string | undefined;
  readonly nowMs: () => number;
  /** Told of each path that the port made durable, or removed. */
  readonly onWrite?: (path: string, node: FakeNode | undefined) => void;
}

export interface FakeFiles {
  readonly files: Files;
  readonly text: (path: string) => string | undefined;
  readonly node: (path: string) => FakeNode | undefined;
  readonly paths: (below?: string) => readonly string[];
  readonly put: (path: string, content: string | Uint8Array, node?: Partial<FakeNode>) => void;
  readonly drop: (path: string) => void;
  readonly sync: () => void;
  readonly boot: () => void;
}

const VOLATILE = ["/etc/", "/run/", "/tmp/"];

export function fakeFiles({ call, image: given, keptEtc, nowMs, onWrite }: FakeFilesOptions): FakeFiles {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const image = new Map<string, FakeNode>();
  for (const [path, content] of Object.entries(given)) {
    image.set(path, fileNode(typeof content === "string" ? encoder.encode(content) : content, 0o644));
  }
  let live = new Map(image);
  let durable = new Map(image);

  function fileNode(content: Uint8Array, mode: number, owner = "root:root"): FakeNode {
    return { kind: "file", content, mode, owner, mtimeMs: nowMs() };
  }

  /** Every method can fail as a disk does. */
  const called = <T>(name: string, work: () => Result<T, AppError>): Promise<Result<T, AppError>> =>
    call(name, work, () =>
      err(appError("EIO", `${name.split(" ")[1] ?? name} can't be read or written: the disk fails`)),
    );

  const normal = (path: string): string => (path.length > 1 ? path.replace(/\/+$/, "") : path);
  const hasBelow = (map: Map<string, FakeNode>, path: string): boolean =>
    [...map.keys()].some((other) => other.startsWith(path === "/" ? "/" : `${path}/`));
  const resolve = (path: string, depth = 0): string => {
    const node = live.get(normal(path));
    if (node?.kind !== "symlink" || node.target === undefined || depth > 10) return normal(path);
    const base = path.slice(0, path.lastIndexOf("/"));
    return resolve(
      node.target.startsWith("/") ? node.target : new URL(node.target, `file://${base}/`).pathname,
      depth + 1,
    );
  };
  const keptCopy = (path: string): string | undefined =>
    keptEtc !== undefined && (isKept(path) || isKept(`${path}/`)) ? keptEtc + path.slice("/etc".length) : undefined;
  const absent = (path: string): { ok: false; error: AppError } => err(appError("ENOENT", `${path} is not there`));

  function set(path: string, node: FakeNode | undefined, isDurable: boolean): void {
    for (const map of isDurable ? [live, durable] : [live]) {
      if (node === undefined) map.delete(path);
      else map.set(path, node);
    }
  }
  /** The kept copy first: what was acknowledged is there after a power cut. */
  function setBoth(path: string, node: FakeNode | undefined): void {
    const kept = keptCopy(path);
    if (kept !== undefined) set(kept, node, true);
    set(path, node, true);
    onWrite?.(path, node);
  }
  function removeTree(path: string): void {
    for (const other of live.keys()) {
      if (other === path || other.startsWith(`${path}/`)) setBoth(other, undefined);
    }
  }
  function read(path: string, maxBytes?: number): Result<Uint8Array, AppError> {
    const node = live.get(resolve(path));
    if (node === undefined || node.kind === "symlink") {
      return hasBelow(live, normal(path)) ? err(appError("EISDIR", `${path} is a folder`)) : absent(path);
    }
    if (node.kind === "directory") return err(appError("EISDIR", `${path} is a folder`));
    if (maxBytes !== undefined && node.content.length > maxBytes) {
      return err(appError("EFBIG", `${path} is larger than allowed`));
    }
    return ok(node.content);
  }
  function statOf(path: string): FileStat | null {
    const node = live.get(path);
    if (node === undefined) {
      return path === "/" || hasBelow(live, path)
        ? { kind: "directory", sizeBytes: 4096, mode: 0o755, uid: 0, gid: 0, mtimeMs: 0 }
        : null;
    }
    return { kind: node.kind, sizeBytes: node.content.length, mode: node.mode, uid: 0, gid: 0, mtimeMs: node.mtimeMs };
  }
  const ownerOf = (how: WriteOptions): string => `${how.owner?.user ?? "root"}:${how.owner?.group ?? "root"}`;

  const files: Files = {
    read: (path, more) => called(`files.read ${path}`, () => read(path, more?.maxBytes)),
    readText: (path, more) =>
      called(`files.readText ${path}`, () => {
        const bytes = read(path, more?.maxBytes);
        return bytes.ok ? ok(decoder.decode(bytes.value)) : bytes;
      }),
    write: (path, content, how) =>
      called(`files.write ${path}`, () => {
        if (statOf(path)?.kind === "directory") return err(appError("EISDIR", `${path} is a folder`));
        if (how.isNew === true && statOf(path) !== null) return err(appError("EEXIST", `${path} is there already`));
        const bytes = typeof content === "string" ? encoder.encode(content) : content;
        setBoth(path, fileNode(bytes, how.mode, ownerOf(how)));
        return ok(undefined);
      }),
    remove: (path, more) =>
      called(`files.remove ${path}`, () => {
        if (more?.recursive === true) removeTree(normal(path));
        else if (live.get(path)?.kind === "directory" || (!live.has(path) && hasBelow(live, path))) {
          return err(appError("EISDIR", `${path} is a folder`));
        } else setBoth(path, undefined);
        return ok(undefined);
      }),
    rename: (from, to) =>
      called(`files.rename ${from} ${to}`, () => {
        const moved = [...live].filter(([path]) => path === from || path.startsWith(`${from}/`));
        if (moved.length === 0) return absent(from);
        removeTree(to);
        for (const [path, node] of moved) {
          setBoth(to + path.slice(from.length), node);
          setBoth(path, undefined);
        }
        return ok(undefined);
      }),
    mkdir: (path, how) =>
      called(`files.mkdir ${path}`, () => {
        const node = live.get(normal(path));
        if (node !== undefined && node.kind !== "directory") return err(appError("EEXIST", `${path} is there already`));
        setBoth(normal(path), { ...fileNode(new Uint8Array(), how.mode, ownerOf(how)), kind: "directory" });
        return ok(undefined);
      }),
    list: (path) =>
      called(`files.list ${path}`, () => {
        const prefix = normal(path) === "/" ? "/" : `${resolve(path)}/`;
        const names = new Set<string>();
        for (const other of live.keys()) {
          if (other.startsWith(prefix)) names.add(other.slice(prefix.length).split("/")[0] ?? "");
        }
        if (names.size === 0 && live.get(resolve(path))?.kind !== "directory") return absent(path);
        return ok([...names].toSorted());
      }),
    stat: (path, more) =>
      called(`files.stat ${path}`, () => ok(statOf(more?.noFollow === true ? normal(path) : resolve(path)))),
    realpath: (path) =>
      called(`files.realpath ${path}`, () => {
        const real = resolve(path);
        return statOf(real) === null ? absent(path) : ok(real);
      }),
    readlink: (path) =>
      called(`files.readlink ${path}`, () => {
        const node = live.get(path);
        if (node === undefined) return absent(path);
        return node.target === undefined ? err(appError("EINVAL", `${path} is no link`)) : ok(node.target);
      }),
    symlink: (target, path) =>
      called(`files.symlink ${target} ${path}`, () => {
        setBoth(path, { ...fileNode(new Uint8Array(), 0o777), kind: "symlink", target });
        return ok(undefined);
      }),
    keep: (path) =>
      called(`files.keep ${path}`, () => {
        const top = normal(path);
        const kept = keptCopy(top);
        if (kept === undefined) return ok(undefined);
        for (const other of live.keys()) {
          if (other === kept || other.startsWith(`${kept}/`)) set(other, undefined, true);
        }
        for (const [other, node] of live) {
          if (other === top || other.startsWith(`${top}/`)) set(kept + other.slice(top.length), node, true);
        }
        return ok(undefined);
      }),
  };

  function boot(): void {
    for (const path of durable.keys()) {
      if (VOLATILE.some((prefix) => path.startsWith(prefix))) durable.delete(path);
    }
    for (const [path, node] of image) {
      if (VOLATILE.some((prefix) => path.startsWith(prefix))) durable.set(path, node);
    }
    if (keptEtc !== undefined) {
      for (const [path, node] of durable) {
        if (path.startsWith(`${keptEtc}/`)) durable.set(`/etc${path.slice(keptEtc.length)}`, node);
      }
    }
    live = new Map(durable);
  }

  return {
    files,
    text: (path) => {
      const node = live.get(resolve(path));
      return node === undefined || node.kind === "directory" ? undefined : decoder.decode(node.content);
    },
    node: (path) => live.get(path),
    paths: (below = "/") =>
      [...live.keys()].filter((path) => path.startsWith(below) && live.get(path)?.kind !== "directory").toSorted(),
    put: (path, content, node = {}) =>
      set(
        path,
        { ...fileNode(typeof content === "string" ? encoder.encode(content) : content, 0o644), ...node },
        false,
      ),
    drop: (path) => set(path, undefined, false),
    sync: () => {
      durable = new Map(live);
    },
    boot,
  };
}
