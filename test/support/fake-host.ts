/**
 * A machine in memory that behaves as a real one where it matters: files are durable only once they were written
 * through the Files port (or synced), power can fail at any call, /etc and /run are made anew at each boot, programs
 * are handlers that may be as stateful as the tool they stand for.
 *
 *     const fake = fakeHost({ files: { "/etc/hostname": "debian\n" }, programs: { mdadm: (request, fake) => … } });
 *     fake.dieAt(7, "before");     // the 7th call of any port throws MachineDied; so does each one after it
 *     fake.boot();                 // power comes back: what was not durable is gone
 */
import type { AppError } from "../../kit/app-error.ts";
import { appError } from "../../kit/app-error.ts";
import { isKept } from "../../kit/paths.ts";
import type {
  ExecRequest,
  ExecResult,
  Files,
  FileStat,
  Host,
  Http,
  Systemd,
  UnitStatus,
  WriteOptions,
} from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import { err, ok } from "../../kit/result.ts";
import { Secret } from "../../kit/secret.ts";

/** Power was lost. Thrown, because no code may handle it. */
export class MachineDied extends Error {
  constructor(call: string) {
    super(`power lost at ${call}`);
  }
}

export interface FakeNode {
  readonly kind: FileStat["kind"];
  readonly content: Uint8Array;
  readonly target?: string;
  readonly mode: number;
  readonly owner: string;
  readonly mtimeMs: number;
}

/** A string is stdout with exit status 0. Absent program: `failure: "not-found"`. */
export type FakeProgram = (
  request: ExecRequest & { readonly stdinText: string },
  fake: FakeHost,
) => string | Partial<ExecResult> | Promise<string | Partial<ExecResult>>;

export interface FakeUnit {
  activeState: string;
  subState: string;
  loadState: string;
  isEnabled: boolean;
  restarts: number;
  result: string;
  mainPid: number;
  journal: string[];
  /** Runs at start and restart; what it returns is the unit's fate. */
  onStart?: (fake: FakeHost) => Result<void, AppError>;
}

export interface FakeHostOptions {
  /** The image and the hardware: there at each boot, also under /etc and /run. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly programs?: Readonly<Record<string, FakeProgram>>;
  readonly units?: Readonly<Record<string, Partial<FakeUnit>>>;
  readonly http?: Http;
  readonly nowMs?: number;
  /** As `realHost({keptEtc})`. Default `/var/lib/corium/etc`; `null`: nothing is kept. */
  readonly keptEtc?: string | null;
}

export interface FakeHost extends Host {
  /** Every call of a port so far, in order: `files.write /etc/hostname`, `exec mdadm --create …`. */
  readonly calls: readonly string[];
  /** Live content; undefined when absent. */
  text(path: string): string | undefined;
  node(path: string): FakeNode | undefined;
  /** Paths of all files, sorted; below a folder when given. */
  paths(below?: string): readonly string[];
  /** What a program writes: gone at a power cut unless `sync` is called. Folders are made as needed. */
  put(path: string, content: string | Uint8Array, node?: Partial<FakeNode>): void;
  /** What a program deletes. */
  drop(path: string): void;
  /** sync(2): all that is live is durable. */
  sync(): void;
  readonly unitTable: Map<string, FakeUnit>;
  readonly programs: Map<string, FakeProgram>;
  setHttp(http: Http): void;
  setNow(nowMs: number): void;
  /** The `count`-th call from now dies: `before` it has an effect, or right `after`. */
  dieAt(count: number, when?: "before" | "after"): void;
  /** Power comes back: unsynced data, /run and what of /etc is not kept are gone; enabled units are started. */
  boot(): void;
  /** boot() under its other name: the moment at which power goes. */
  crash(): void;
}

const VOLATILE = ["/etc/", "/run/", "/tmp/"];

export function fakeHost(options: FakeHostOptions = {}): FakeHost {
  const keptEtc = options.keptEtc === undefined ? "/var/lib/corium/etc" : (options.keptEtc ?? undefined);
  const encoder = new TextEncoder();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const calls: string[] = [];
  let nowMs = options.nowMs ?? Date.UTC(2026, 0, 1);
  let monotonicMs = 1_000;
  let live = new Map<string, FakeNode>();
  let durable = new Map<string, FakeNode>();
  let seed = 1;
  let dying: { count: number; when: "before" | "after" } | undefined;
  let isDead = false;
  let http: Http =
    options.http ??
    (async (request) => err(appError("dns", `no address is known for ${new URL(request.url).hostname}`)));
  const unitTable = new Map<string, FakeUnit>();
  const programs = new Map<string, FakeProgram>(Object.entries(options.programs ?? {}));

  const image = new Map<string, FakeNode>();
  for (const [path, content] of Object.entries(options.files ?? {})) {
    image.set(path, fileNode(typeof content === "string" ? encoder.encode(content) : content, 0o644));
  }
  for (const [path, node] of image) {
    live.set(path, node);
    durable.set(path, node);
  }
  for (const [name, unit] of Object.entries(options.units ?? {})) unitTable.set(name, newUnit(unit));

  function fileNode(content: Uint8Array, mode: number, owner = "root:root"): FakeNode {
    return { kind: "file", content, mode, owner, mtimeMs: nowMs };
  }

  /** Every port goes through here: counted, recorded, and the place where power is lost. */
  async function call<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    if (isDead) throw new MachineDied(name);
    calls.push(name);
    const fate = dying;
    if (fate !== undefined) fate.count -= 1;
    const diesNow = fate !== undefined && fate.count === 0;
    if (diesNow && fate.when === "before") {
      isDead = true;
      throw new MachineDied(name);
    }
    await Promise.resolve();
    const result = await work();
    if (diesNow) {
      isDead = true;
      throw new MachineDied(name);
    }
    return result;
  }

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
    read: (path, more) => call(`files.read ${path}`, () => read(path, more?.maxBytes)),
    readText: (path, more) =>
      call(`files.readText ${path}`, () => {
        const bytes = read(path, more?.maxBytes);
        return bytes.ok ? ok(decoder.decode(bytes.value)) : bytes;
      }),
    write: (path, content, how) =>
      call(`files.write ${path}`, () => {
        if (statOf(path)?.kind === "directory") return err(appError("EISDIR", `${path} is a folder`));
        if (how.isNew === true && statOf(path) !== null) return err(appError("EEXIST", `${path} is there already`));
        const bytes = typeof content === "string" ? encoder.encode(content) : content;
        setBoth(path, fileNode(bytes, how.mode, ownerOf(how)));
        return ok(undefined);
      }),
    remove: (path, more) =>
      call(`files.remove ${path}`, () => {
        if (more?.recursive === true) removeTree(normal(path));
        else if (live.get(path)?.kind === "directory" || (!live.has(path) && hasBelow(live, path))) {
          return err(appError("EISDIR", `${path} is a folder`));
        } else setBoth(path, undefined);
        return ok(undefined);
      }),
    rename: (from, to) =>
      call(`files.rename ${from} ${to}`, () => {
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
      call(`files.mkdir ${path}`, () => {
        const node = live.get(normal(path));
        if (node !== undefined && node.kind !== "directory") return err(appError("EEXIST", `${path} is there already`));
        setBoth(normal(path), { ...fileNode(new Uint8Array(), how.mode, ownerOf(how)), kind: "directory" });
        return ok(undefined);
      }),
    list: (path) =>
      call(`files.list ${path}`, () => {
        const prefix = normal(path) === "/" ? "/" : `${resolve(path)}/`;
        const names = new Set<string>();
        for (const other of live.keys()) {
          if (other.startsWith(prefix)) names.add(other.slice(prefix.length).split("/")[0] ?? "");
        }
        if (names.size === 0 && live.get(resolve(path))?.kind !== "directory") return absent(path);
        return ok([...names].toSorted());
      }),
    stat: (path, more) =>
      call(`files.stat ${path}`, () => ok(statOf(more?.noFollow === true ? normal(path) : resolve(path)))),
    realpath: (path) =>
      call(`files.realpath ${path}`, () => {
        const real = resolve(path);
        return statOf(real) === null ? absent(path) : ok(real);
      }),
    readlink: (path) =>
      call(`files.readlink ${path}`, () => {
        const node = live.get(path);
        if (node === undefined) return absent(path);
        return node.target === undefined ? err(appError("EINVAL", `${path} is no link`)) : ok(node.target);
      }),
    symlink: (target, path) =>
      call(`files.symlink ${target} ${path}`, () => {
        setBoth(path, { ...fileNode(new Uint8Array(), 0o777), kind: "symlink", target });
        return ok(undefined);
      }),
    keep: (path) =>
      call(`files.keep ${path}`, () => {
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

  async function exec(request: ExecRequest): Promise<ExecResult> {
    return call(`exec ${request.argv.join(" ")}`, async () => {
      const name = request.argv[0] ?? "";
      const program = programs.get(name) ?? programs.get(name.slice(name.lastIndexOf("/") + 1));
      const base: ExecResult = {
        argv: request.argv,
        exitCode: 0,
        signal: null,
        stdout: "",
        stderr: "",
        timedOut: false,
        truncated: false,
        durationMs: 1,
      };
      if (program === undefined) return { ...base, exitCode: null, failure: "not-found" };
      const { stdin } = request;
      const stdinText =
        stdin instanceof Secret ? stdin.reveal() : stdin instanceof Uint8Array ? decoder.decode(stdin) : (stdin ?? "");
      const answer = await program({ ...request, stdinText }, fake);
      return typeof answer === "string" ? { ...base, stdout: answer } : { ...base, ...answer };
    });
  }

  const unitOf = (name: string): FakeUnit | undefined => {
    const known = unitTable.get(name);
    if (known !== undefined) return known;
    // A unit file that somebody wrote is a unit as soon as systemd is asked about it.
    if (!live.has(`/etc/systemd/system/${name}`) && !live.has(`/usr/lib/systemd/system/${name}`)) return undefined;
    const made = newUnit({});
    unitTable.set(name, made);
    return made;
  };
  const onUnit = (name: string, change: (unit: FakeUnit) => Result<void, AppError>): Result<void, AppError> => {
    const unit = unitOf(name);
    return unit === undefined ? err(appError("unit-not-found", `systemd knows no unit ${name}`)) : change(unit);
  };
  const startUnit = (unit: FakeUnit): Result<void, AppError> => {
    const fate = unit.onStart?.(fake) ?? ok(undefined);
    unit.activeState = fate.ok ? "active" : "failed";
    unit.subState = fate.ok ? "running" : "failed";
    unit.result = fate.ok ? "success" : "exit-code";
    unit.mainPid = fate.ok ? 1000 + unitTable.size : 0;
    return fate;
  };
  const systemd: Systemd = {
    daemonReload: () => call("systemd.daemonReload", () => ok(undefined)),
    start: (name) =>
      call(`systemd.start ${name}`, () =>
        onUnit(name, (unit) => (unit.activeState === "active" ? ok(undefined) : startUnit(unit))),
      ),
    stop: (name) =>
      call(`systemd.stop ${name}`, () =>
        onUnit(name, (unit) => {
          Object.assign(unit, { activeState: "inactive", subState: "dead", mainPid: 0 });
          return ok(undefined);
        }),
      ),
    restart: (name) => call(`systemd.restart ${name}`, () => onUnit(name, startUnit)),
    enable: (name) =>
      call(`systemd.enable ${name}`, () =>
        onUnit(name, (unit) => {
          unit.isEnabled = true;
          return ok(undefined);
        }),
      ),
    disable: (name) =>
      call(`systemd.disable ${name}`, () =>
        onUnit(name, (unit) => {
          unit.isEnabled = false;
          return ok(undefined);
        }),
      ),
    resetFailed: (name) =>
      call(`systemd.resetFailed ${name}`, () =>
        onUnit(name, (unit) => {
          if (unit.activeState === "failed") Object.assign(unit, { activeState: "inactive", subState: "dead" });
          return ok(undefined);
        }),
      ),
    status: (name) =>
      call(`systemd.status ${name}`, () => {
        const unit = unitOf(name);
        const status: UnitStatus = {
          loadState: unit?.loadState ?? "not-found",
          activeState: unit?.activeState ?? "inactive",
          subState: unit?.subState ?? "dead",
          unitFileState: unit === undefined ? "" : unit.isEnabled ? "enabled" : "disabled",
          restarts: unit?.restarts ?? 0,
          result: unit?.result ?? "success",
          mainPid: unit?.mainPid ?? 0,
        };
        return ok(status);
      }),
    journalTail: (name, lines) =>
      call(`systemd.journalTail ${name}`, () => ok((unitOf(name)?.journal ?? []).slice(-lines))),
  };

  function boot(): void {
    isDead = false;
    dying = undefined;
    monotonicMs = 1_000;
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
    for (const unit of unitTable.values()) {
      Object.assign(unit, { activeState: "inactive", subState: "dead", mainPid: 0, restarts: 0 });
    }
    for (const unit of unitTable.values()) if (unit.isEnabled) startUnit(unit);
  }

  const fake: FakeHost = {
    exec,
    files,
    systemd,
    http: (request) => call(`http ${request.url}`, () => http(request)),
    clock: {
      nowMs: () => nowMs,
      monotonicMs: () => monotonicMs,
      // Sleeping takes no time, it only makes it later; yields, so that what was waited for can happen.
      sleep: async (ms, signal) => {
        if (isDead) throw new MachineDied("clock.sleep");
        if (signal?.aborted !== true) {
          nowMs += ms;
          monotonicMs += ms;
        }
        await new Promise((go) => setImmediate(go));
      },
    },
    random: {
      bytes: (count) => Uint8Array.from({ length: count }, () => (seed = (seed * 48_271) % 2_147_483_647) & 0xff),
      uuid: () => {
        const hex = Array.from({ length: 32 }, () =>
          ((seed = (seed * 48_271) % 2_147_483_647) & 0xf).toString(16),
        ).join("");
        return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
      },
    },
    calls,
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
    unitTable,
    programs,
    setHttp: (next) => {
      http = next;
    },
    setNow: (next) => {
      nowMs = next;
    },
    dieAt: (count, when = "before") => {
      dying = { count, when };
    },
    boot,
    crash: boot,
  };
  return fake;
}

function newUnit(more: Partial<FakeUnit>): FakeUnit {
  return {
    activeState: "inactive",
    subState: "dead",
    loadState: "loaded",
    isEnabled: false,
    restarts: 0,
    result: "success",
    mainPid: 0,
    journal: [],
    ...more,
  };
}
