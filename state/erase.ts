/**
 * The end of a reset: the database forgets what the node was. In one transaction, so that no cut leaves a claim without
 * its documents or the reverse; a database that can't be read is made anew.
 */
import { rmSync } from "node:fs";

import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Paths } from "../kit/paths.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import { migrate } from "./migrate.ts";
import type { State } from "./open.ts";
import { stateIn } from "./open.ts";
import type { Database } from "./sqlite.ts";
import { openDatabase } from "./sqlite.ts";

/** What the erased node is left with: what the machine is, no longer what it was. */
const KEPT_META = ["schema", "installation", "time-floor-ms"];
/** Data disks that are kept are ours still: recorded, so that no `wipe: true` takes them. */
const DISK_TABLES = ["owned", "volumes", "replacements"];

export interface Erasure {
  readonly atMs: number;
  readonly isKeepingDisks: boolean;
  /** The event that the new life begins with. */
  readonly message: string;
}

export interface ErasableState {
  /** Absent: it can't be read. */
  readonly state?: State;
  readonly isErased: () => boolean;
  /** Durable, and what was in it can't be read from the file any more. */
  readonly erase: (erasure: Erasure) => Result<void, AppError>;
  readonly close: () => void;
}

/** Whatever state it is in: a reset is also the way out of a database that is lost or damaged. */
export function openErasable(paths: Pick<Paths, "database">): ErasableState {
  const make = (): Database => {
    for (const suffix of ["-wal", "-shm", "-journal", ""]) rmSync(`${paths.database}${suffix}`, { force: true });
    const fresh = openDatabase(paths.database);
    migrate(fresh);
    return fresh;
  };
  return erasable(openReadable(paths.database), make);
}

/** For tests: nothing is kept. */
export function memoryErasable(): ErasableState & { readonly state: State } {
  const database = openDatabase(":memory:");
  migrate(database);
  return { ...erasable(database, () => database), state: stateIn(database) };
}

function erasable(found: Database | undefined, make: () => Database): ErasableState {
  let database = found;
  const state = database === undefined ? undefined : stateIn(database);
  return {
    ...(state === undefined ? {} : { state }),
    isErased: () => database !== undefined && isErased(database),
    erase(erasure) {
      try {
        database ??= make();
        eraseIn(database, erasure);
        return ok(undefined);
      } catch (thrown) {
        return fail(
          "state-unreadable",
          `the database can't be erased: ${thrown instanceof Error ? thrown.message : "?"}`,
        );
      }
    },
    close: () => void database?.close(),
  };
}

function openReadable(path: string): Database | undefined {
  let database: Database | undefined;
  try {
    database = openDatabase(path);
    const [check] = database.pragma("quick_check(1)") as readonly { readonly quick_check: string }[];
    if (check?.quick_check === "ok") {
      migrate(database);
      return database;
    }
  } catch {
    // Damaged, or no database at all: it is made anew in the end.
  }
  database?.close();
  return undefined;
}

const isErased = (database: Database): boolean => {
  const { claim, baseline, documents, meta } = stateIn(database);
  const isNobodys = claim.get() === undefined && baseline.get() === undefined && documents.list().length === 0;
  return isNobodys && meta.get("held") !== undefined && meta.get("in-service-at-ms") === undefined;
};

function eraseIn(database: Database, { atMs, isKeepingDisks, message }: Erasure): void {
  // What is deleted is overwritten: documents may hold secrets.
  database.pragma("secure_delete = ON");
  const work = database.transaction(() => {
    database.pragma("defer_foreign_keys = ON");
    const rows = database
      .prepare<[], { type: string; name: string; sql: string }>(
        "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'trigger') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
      )
      .all();
    // The append-only table lets nothing be deleted; its guards are back before anybody else can look.
    const guards = rows.filter(({ type }) => type === "trigger");
    for (const { name } of guards) database.exec(`DROP TRIGGER "${name}"`);
    const kept = ["meta", ...(isKeepingDisks ? DISK_TABLES : [])];
    for (const { type, name } of rows)
      if (type === "table" && !kept.includes(name)) database.exec(`DELETE FROM "${name}"`);
    database.exec("DELETE FROM replacements WHERE outcome IS NOT 'done'");
    database.exec(`DELETE FROM meta WHERE key NOT IN (${KEPT_META.map((key) => `'${key}'`).join(", ")})`);
    for (const { sql } of guards) database.exec(sql);
    const { meta, events } = stateIn(database);
    meta.set("held", String(atMs));
    events.add({ atMs, kind: "reset", severity: "info", message });
  });
  work.immediate();
  database.exec("VACUUM");
  database.pragma("wal_checkpoint(TRUNCATE)");
}
