import type { Migration } from "./model.ts";

/** Beside `owned`, whose check of the kind an older program relies on. */
export const volumes: Migration = {
  number: 2,
  sql: `
    CREATE TABLE volumes (
      name            TEXT PRIMARY KEY,
      uuid            TEXT NOT NULL,
      filesystem_uuid TEXT,
      disks           TEXT NOT NULL CHECK (json_valid(disks))
    ) STRICT;
  `,
};
