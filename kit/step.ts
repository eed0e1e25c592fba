import type { AppError } from "./app-error.ts";
import type { DiskIdentity } from "./disk.ts";
import type { Host } from "./ports.ts";
import type { Result } from "./result.ts";
import type { Secret } from "./secret.ts";

/**
 * The smallest resumable unit of change. A step is plain data (JSON in, JSON out): a dry run prints it, the
 * journal stores it, console and API show it. Every domain has a union of its own steps, told apart by `kind`,
 * and one record that has an executor for each kind, so that a new kind does not compile until it is handled.
 */
export interface StepBase {
  /** `domain:verb`, e.g. `raid:create`. */
  readonly kind: string;
  /** Stable across runs of the same document: `raid:data:create`. A contract: docs/architecture.md. */
  readonly id: string;
  /** For people, lower case: `create RAID 1 array data from 2 disks`. */
  readonly title: string;
  /** The disks whose content is lost. Non-empty: the intent (this whole step) is journalled before it runs. */
  readonly destroys?: readonly DiskIdentity[];
}

/** `done` when the machine (not the journal) already is as the step would leave it. */
export type StepState = "done" | "todo";

/** What an executor may use. Steps are stored, so they never hold a secret: they name its field. */
export interface StepContext {
  readonly host: Host;
  /** Resolved secrets by field path: `wireguard[wg0].privateKey`. */
  readonly secrets: ReadonlyMap<string, Secret>;
  /** Replaces the message shown on console and operation: `waiting for /dev/md/data to appear`. */
  readonly report: (message: string) => void;
}

export interface StepExecutor<S extends StepBase> {
  /** The programs that `run` would call, for a dry run; empty when it only writes files. */
  argv(step: S): readonly (readonly string[])[];
  /** Looks at the machine, changes nothing. A failed check stops the run: nothing is done on a guess. */
  check(step: S, context: StepContext): Promise<Result<StepState, AppError>>;
  /** Makes it so. After it, `check` must say done. */
  run(step: S, context: StepContext): Promise<Result<void, AppError>>;
}

/** One executor per kind of a domain's step union. */
export type Executors<S extends StepBase> = { readonly [K in S["kind"]]: StepExecutor<Extract<S, { kind: K }>> };
