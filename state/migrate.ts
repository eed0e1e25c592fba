import { MIGRATIONS } from "./migrations/list.ts";
import type { Migration } from "./migrations/model.ts";
import type { Database } from "./sqlite.ts";

/**
 * Brings the schema up to date in one transaction, so that a power cut leaves the old one. A schema that is newer
 * than this program (after a rollback) is left alone: migrations only add.
 */
export function migrate(database: Database, migrations: readonly Migration[] = MIGRATIONS): void {
  const bring = database.transaction(() => {
    database.exec("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT");
    const present = schemaNumber(database);
    for (const migration of migrations.filter(({ number }) => number > present)) {
      database.exec(migration.sql);
      database
        .prepare(
          "INSERT INTO meta (key, value) VALUES ('schema', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        )
        .run(String(migration.number));
    }
  });
  // Immediate: two processes that start together must not both see the old number.
  bring.immediate();
}

export function schemaNumber(database: Database): number {
  const row = database.prepare<[], { value: string }>("SELECT value FROM meta WHERE key = 'schema'").get();
  return Number(row?.value ?? 0);
}
