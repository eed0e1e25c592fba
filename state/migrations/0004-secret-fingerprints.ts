import type { Migration } from "./model.ts";

/** What the secrets were that the node was made with: keyed fingerprints by field, so that a changed one is seen. */
export const secretFingerprints: Migration = {
  number: 4,
  sql: `
    ALTER TABLE baseline ADD COLUMN secret_fingerprints TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(secret_fingerprints));
  `,
};
