import type { Migration } from "./model.ts";

export const replacements: Migration = {
  number: 3,
  sql: `
    CREATE TABLE replacements (
      id              INTEGER PRIMARY KEY,
      array_name      TEXT NOT NULL,
      device          TEXT NOT NULL,
      old_disk        TEXT NOT NULL CHECK (json_valid(old_disk)),
      new_disk        TEXT NOT NULL CHECK (json_valid(new_disk)),
      new_links       TEXT NOT NULL CHECK (json_valid(new_links)),
      is_wipe_allowed INTEGER NOT NULL,
      begun_at_ms     INTEGER NOT NULL,
      ended_at_ms     INTEGER,
      outcome         TEXT CHECK (outcome IN ('done', 'failed'))
    ) STRICT;
  `,
};
