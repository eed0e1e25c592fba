/** What the live system knows and the installed one must know: document, claim, identity, history. */
import type { AppError } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import type { CarryOver } from "../provision/install/driver.ts";
import { fail } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import type { State } from "../state/open.ts";
import { openState } from "../state/open.ts";
import { sha256Of } from "../kit/sha256.ts";

export interface CarryOverInput {
  readonly host: Host;
  /** Of the live system. */
  readonly stateDir: string;
  /** A consistent copy of the live database. */
  readonly snapshotTo: (path: string) => void;
  /** Becomes source 1 on the disk, wherever it came from. */
  readonly documentText: string;
  /** It has succeeded as far as the disk will remember. */
  readonly operation: string;
}

export function createCarryOver({ host, stateDir, snapshotTo, documentText, operation }: CarryOverInput): CarryOver {
  const { files } = host;

  async function copyTree(from: string, to: string): Promise<Result<void, AppError>> {
    const stat = await files.stat(from);
    if (!stat.ok || stat.value === null) return stat.ok ? ok(undefined) : stat;
    const parent = to.slice(0, to.lastIndexOf("/"));
    for (const argv of [
      ["mkdir", "-p", parent],
      ["cp", "-a", "-T", from, to],
    ]) {
      const ran = await host.exec({ argv, timeoutMs: 60_000 });
      if (ran.exitCode !== 0) return fail("carry-over", `${argv[0]} failed: ${ran.stderr.trim()}`);
    }
    return ok(undefined);
  }

  /** The copy of the database is the disk's: it is installed there, whatever happens to this system. */
  async function copyDatabase(root: string, installation: string): Promise<Result<void, AppError>> {
    const path = `${root}/corium.db`;
    for (const suffix of ["", "-wal", "-shm"]) {
      const gone = await files.remove(`${path}${suffix}`);
      if (!gone.ok) return gone;
    }
    snapshotTo(path);
    const opened = openState({ database: path, marker: `${root}/bootstrapped` });
    if (!opened.ok) return opened;
    const copy = opened.value;
    try {
      const atMs = host.clock.nowMs();
      copy.meta.set("installation", installation);
      copy.meta.raiseTimeFloor(atMs);
      // In a copy the operation belongs to no process; here its last steps are as good as done.
      for (const { id } of copy.operations.abandoned()) if (id !== operation) endQuietly(copy, id, atMs);
      if (copy.operations.running()?.id === operation) copy.operations.end(operation, { phase: "succeeded" }, atMs);
    } finally {
      copy.close();
    }
    return ok(undefined);
  }

  return {
    async isComplete(root, step) {
      const id = await files.readText(`${root}/installation`);
      if (!id.ok || id.value !== `${step.installation}\n`) return ok(false);
      const document = await files.read(`${root}/etc/corium/config.yaml`);
      return ok(document.ok && sha256Of(document.value) === step.documentSha256);
    },
    async copy(root, step) {
      const gone = await files.remove(`${root}/installation`);
      if (!gone.ok) return gone;
      const trees = [
        // Tokens and keys that the document names may lie beside it.
        ["/etc/corium", `${root}/etc/corium`],
        ["/etc/machine-id", `${root}/etc/machine-id`],
        [`${stateDir}/api`, `${root}/api`],
      ] as const;
      for (const [from, to] of trees) {
        const copied = await copyTree(from, to);
        if (!copied.ok) return copied;
      }
      const document = await files.write(`${root}/etc/corium/config.yaml`, documentText, { mode: 0o600 });
      if (!document.ok) return document;
      const database = await copyDatabase(root, step.installation);
      if (!database.ok) return database;
      const synced = await host.exec({ argv: ["sync", "-f", root], timeoutMs: 600_000 });
      if (synced.exitCode !== 0) return fail("carry-over", `sync failed: ${synced.stderr.trim()}`);
      return files.write(`${root}/installation`, `${step.installation}\n`, { mode: 0o644 });
    },
  };
}

function endQuietly(state: State, id: string, atMs: number): void {
  state.operations.end(id, { phase: "cancelled", failureReason: "the live system was left" }, atMs);
}
