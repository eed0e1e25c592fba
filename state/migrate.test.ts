import { expect, test } from "bun:test";

import { migrate, schemaNumber } from "./migrate.ts";
import { MIGRATIONS } from "./migrations/list.ts";
import type { Database } from "./sqlite.ts";
import { openDatabase } from "./sqlite.ts";

function columns(database: Database): Map<string, string> {
  const found = new Map<string, string>();
  const tables = database
    .prepare<[], { name: string }>("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name")
    .all();
  for (const { name } of tables) {
    const rows = database.pragma(`table_info(${JSON.stringify(name)})`) as { name: string; type: string }[];
    for (const row of rows) found.set(`${name}.${row.name}`, row.type);
  }
  return found;
}

/** What a list of migrations takes away from whoever reads with the older schema. */
function losses(migrations: typeof MIGRATIONS): readonly string[] {
  const database = openDatabase(":memory:");
  const lost: string[] = [];
  let before = new Map<string, string>();
  for (const [index, migration] of migrations.entries()) {
    if (migration.number !== index + 1) lost.push(`number ${migration.number} at place ${index + 1}`);
    if (/\b(DROP|RENAME)\b/i.test(migration.sql)) lost.push(`${migration.number} drops or renames`);
    migrate(database, migrations.slice(0, index + 1));
    const after = columns(database);
    for (const [column, type] of before) if (after.get(column) !== type) lost.push(`${column} is lost or retyped`);
    before = after;
  }
  database.close();
  return lost;
}

test("migrations only add", () => {
  expect(losses(MIGRATIONS)).toEqual([]);
  const drop = "ALTER TABLE claim DROP COLUMN at_ms";
  const retype = `CREATE TABLE t2 (id TEXT) STRICT; PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET sql = replace(sql, 'at_ms       INTEGER', 'at_ms       TEXT') WHERE name = 'claim'`;
  const next = MIGRATIONS.length + 1;
  expect(losses([...MIGRATIONS, { number: next, sql: drop }])).toHaveLength(2);
  expect(losses([...MIGRATIONS, { number: next + 1, sql: "SELECT 1" }])).toHaveLength(1);
  // SQLite has no other way to retype, and this one is refused.
  expect(() => losses([...MIGRATIONS, { number: next, sql: retype }])).toThrow();
});

test("a migration that fails leaves the old schema, and a newer schema is left alone", () => {
  const database = openDatabase(":memory:");
  migrate(database);
  const before = columns(database);
  const number = MIGRATIONS.length + 1;
  const broken = { number, sql: "CREATE TABLE extra (a TEXT) STRICT; CREATE TABLE extra (a TEXT) STRICT" };
  expect(() => migrate(database, [...MIGRATIONS, broken])).toThrow();
  expect(columns(database)).toEqual(before);
  migrate(database, [...MIGRATIONS, { number, sql: "CREATE TABLE extra (a TEXT) STRICT" }]);
  migrate(database);
  expect(schemaNumber(database)).toBe(number);
  database.close();
});
