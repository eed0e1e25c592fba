/** What a fake machine is made of; fake-host.ts says how it behaves. */
import type { AppError } from "../../kit/app-error.ts";
import type { ExecRequest, ExecResult, FileStat, Host, Http } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import type { Fate } from "./fake-call.ts";

export interface FakeNode {
  readonly kind: FileStat["kind"];
  readonly content: Uint8Array;
  readonly target?: string;
  readonly mode: number;
  readonly owner: string;
  readonly mtimeMs: number;
}

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
  /** Runs at stop, also of a unit that is not active. */
  onStop?: (fake: FakeHost) => void;
}

/** A string is stdout with exit status 0. Absent program: `failure: "not-found"`. */
export type FakeProgram = (
  request: ExecRequest & { readonly stdinText: string },
  fake: FakeHost,
) => string | Partial<ExecResult> | Promise<string | Partial<ExecResult>>;

export interface FakeHostOptions {
  /** The image and the hardware: there at each boot, also under /etc and /run. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly programs?: Readonly<Record<string, FakeProgram>>;
  readonly units?: Readonly<Record<string, Partial<FakeUnit>>>;
  /** What a unit does whose file somebody wrote. */
  readonly newUnits?: (name: string) => Partial<FakeUnit>;
  readonly http?: Http;
  readonly nowMs?: number;
  /** As `realHost({keptEtc})`. Default `/var/lib/corium/etc`; `null`: nothing is kept. */
  readonly keptEtc?: string | null;
  /** Told before each call of a port. */
  readonly onCall?: () => void;
  /** Told of each path that the Files port made durable, or removed. */
  readonly onWrite?: (path: string, node: FakeNode | undefined) => void;
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
  /** The `count`-th call from now dies: `before` it has an effect, in the middle (`during`), or right `after`. */
  dieAt(count: number, when?: Exclude<Fate, "fails">): void;
  /** The `count`-th call from now has no effect and fails, as its port says that. */
  failAt(count: number): void;
  /** Power is about to go in the middle of this call: a program that asks leaves its work unsynced. */
  readonly isTearing: boolean;
  /** Only the process had died: the machine ran on, and the next process finds it as it is. */
  respawn(): void;
  /** Power comes back: unsynced data, /run and what of /etc is not kept are gone; enabled units are started. */
  boot(): void;
  /** boot() under its other name: the moment at which power goes. */
  crash(): void;
}
