/**
 * Opening the database. The compiled binary unpacks the native addon into `$TMPDIR`, which must be private and
 * executable: the units set `TMPDIR=/var/lib/corium/tmp`.
 */
import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";

import type SqliteDatabase from "better-sqlite3";

export type Database = SqliteDatabase.Database;

const BUSY_TIMEOUT_MS = 10_000;
const OPEN_TRIES = 20;

/** Loaded when first used: commands that need no state do not pay for it. A build keeps only its own architecture. */
function loadSqlite(): typeof SqliteDatabase {
  return process.arch === "arm64" ? require("better-sqlite3/linux-arm64") : require("better-sqlite3/linux-x64");
}

/** Throws what SQLite throws. `:memory:` is for tests and for a node whose database is lost. */
export function openDatabase(path: string): Database {
  if (path !== ":memory:") {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    // Made here, so that it is never readable for others; -wal and -shm take over the mode.
    closeSync(openSync(path, "a", 0o600));
    chmodSync(path, 0o600);
  }
  const Sqlite = loadSqlite();
  const database = new Sqlite(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    // First of all: `journal_mode = WAL` needs a lock itself and would fail at once while another process closes.
    database.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
    retryBusy(() => database.pragma("journal_mode = WAL"));
    // FULL: a transaction that returned is on disk.
    database.pragma("synchronous = FULL");
    database.pragma("foreign_keys = ON");
    database.pragma("trusted_schema = OFF");
    return database;
  } catch (thrown) {
    database.close();
    throw thrown;
  }
}

export const isSqliteError = (thrown: unknown): thrown is Error & { readonly code: string } =>
  thrown instanceof Error && "code" in thrown && String(thrown.code).startsWith("SQLITE_");

/** SQLite answers BUSY without waiting where waiting could be a deadlock. */
function retryBusy(work: () => void): void {
  for (let left = OPEN_TRIES; ; left -= 1) {
    try {
      work();
      return;
    } catch (thrown) {
      if (left === 0 || !isSqliteError(thrown) || !thrown.code.startsWith("SQLITE_BUSY")) throw thrown;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    }
  }
}
