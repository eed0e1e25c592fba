/**
 * The types of everything that touches the machine. Domains import these types only; host/ implements them,
 * tests and the dry run have other implementations. Nothing else in the program reaches outside.
 */
import type { AppError } from "./app-error.ts";
import type { Result } from "./result.ts";
import type { Secret } from "./secret.ts";

export interface ExecRequest {
  /** Program and arguments; never a shell line, never a secret. */
  readonly argv: readonly string[];
  /** The only way a secret reaches a program. */
  readonly stdin?: string | Uint8Array | Secret;
  /** TERM to the process group after this long, KILL two seconds later. Default 60 000. */
  readonly timeoutMs?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Each stream is cut here. Default 8 MiB. */
  readonly maxOutputBytes?: number;
}

/** One shape for success and failure; a program that is not there has `exitCode: null` and `failure`. */
export interface ExecResult {
  readonly argv: readonly string[];
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  readonly truncated: boolean;
  readonly durationMs: number;
  readonly failure?: "not-found" | "not-executable" | "spawn";
}

export type Exec = (request: ExecRequest) => Promise<ExecResult>;

export interface FileStat {
  readonly kind: "file" | "directory" | "symlink" | "block" | "char" | "other";
  readonly sizeBytes: number;
  /** Permission bits only. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly mtimeMs: number;
}

export interface WriteOptions {
  readonly mode: number;
  /** User and group names; default root:root (unchanged when not running as root). */
  readonly owner?: { readonly user: string; readonly group: string };
  /** Only where nothing is yet, else `EEXIST`: of two programs that write at once exactly one does. */
  readonly isNew?: true;
}

/**
 * Files as the program needs them. Writing is atomic and durable: temporary file, fsync, rename, fsync of the
 * folder; parent folders are made. Under a kept path (kit/paths.ts) the copy on the state partition is written
 * first, so that what was acknowledged is there after a power cut. `error.code` is `ENOENT`, `EACCES`, … .
 */
export interface Files {
  read(path: string, options?: { readonly maxBytes?: number }): Promise<Result<Uint8Array, AppError>>;
  readText(path: string, options?: { readonly maxBytes?: number }): Promise<Result<string, AppError>>;
  write(path: string, content: string | Uint8Array, options: WriteOptions): Promise<Result<void, AppError>>;
  /** Absent is fine. Folders only with `recursive`. */
  remove(path: string, options?: { readonly recursive?: boolean }): Promise<Result<void, AppError>>;
  rename(from: string, to: string): Promise<Result<void, AppError>>;
  mkdir(path: string, options: WriteOptions): Promise<Result<void, AppError>>;
  /** Names, sorted; an absent folder is an ENOENT error. */
  list(path: string): Promise<Result<readonly string[], AppError>>;
  /** `null` when absent; follows symlinks unless `noFollow`. */
  stat(path: string, options?: { readonly noFollow?: boolean }): Promise<Result<FileStat | null, AppError>>;
  realpath(path: string): Promise<Result<string, AppError>>;
  readlink(path: string): Promise<Result<string, AppError>>;
  symlink(target: string, path: string): Promise<Result<void, AppError>>;
  /** Copy what another program made under a kept path (file, symlink or folder) to the state partition. */
  keep(path: string): Promise<Result<void, AppError>>;
}

export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  nowMs(): number;
  /** Since boot; never jumps. */
  monotonicMs(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export interface Random {
  bytes(count: number): Uint8Array;
  /** RFC 9562 version 4, lower case. */
  uuid(): string;
}

export interface UnitStatus {
  /** `not-found`, `loaded`, `masked`, … */
  readonly loadState: string;
  /** `active`, `activating`, `failed`, `inactive`, … */
  readonly activeState: string;
  readonly subState: string;
  readonly unitFileState: string;
  /** Automatic restarts since it was started; grows when a unit loops. */
  readonly restarts: number;
  readonly result: string;
  readonly mainPid: number;
}

export interface Systemd {
  daemonReload(): Promise<Result<void, AppError>>;
  start(unit: string, options?: { readonly noBlock?: boolean }): Promise<Result<void, AppError>>;
  stop(unit: string): Promise<Result<void, AppError>>;
  restart(unit: string): Promise<Result<void, AppError>>;
  enable(unit: string): Promise<Result<void, AppError>>;
  disable(unit: string): Promise<Result<void, AppError>>;
  resetFailed(unit: string): Promise<Result<void, AppError>>;
  status(unit: string): Promise<Result<UnitStatus, AppError>>;
  /** The last lines of the unit's journal, oldest first. */
  journalTail(unit: string, lines: number): Promise<Result<readonly string[], AppError>>;
}

export interface HttpRequest {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Only here may a secret be: sent as `Authorization: Bearer …`, dropped when redirected to another host. */
  readonly bearer?: Secret;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** PEM certificates trusted beside the system's. */
  readonly trust?: string;
  /** Nothing but `trust` is. */
  readonly isTrustAlone?: true;
  /** Who asks, PEM. */
  readonly identity?: { readonly certificate: string; readonly privateKey: Secret };
  /** JSON: then it is a POST, and goes nowhere but to `url`. */
  readonly post?: string;
  /** The caller pins the content by hash, so neither chain nor scheme decides. */
  readonly isPinned?: boolean;
}

/**
 * GET, or POST. Redirects only to https (any scheme when pinned). `error.code`: `dns`, `refused`, `timeout`, `tls`,
 * `tls-not-yet-valid`, `tls-expired`, `too-large`, `redirect`, `protocol`. Any HTTP status is a success here.
 */
export type Http = (
  request: HttpRequest,
) => Promise<Result<{ readonly status: number; readonly body: Uint8Array; readonly url: string }, AppError>>;

/** Everything a step may use. */
export interface Host {
  readonly exec: Exec;
  readonly files: Files;
  readonly http: Http;
  readonly clock: Clock;
  readonly random: Random;
  readonly systemd: Systemd;
}

/**
 * Tells, soon and rather once too often, that something of these paths may have changed: they, or a folder on the way,
 * were written, replaced, removed or made. Absolute paths; they need not be there.
 */
export type WatchPaths = (paths: readonly string[], onChange: () => void) => { close(): void };
