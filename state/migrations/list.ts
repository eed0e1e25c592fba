import { first } from "./0001-first.ts";
import { volumes } from "./0002-volumes.ts";
import { replacements } from "./0003-replacements.ts";
import { secretFingerprints } from "./0004-secret-fingerprints.ts";
import type { Migration } from "./model.ts";

/**
 * Only ever added to. A migration adds tables, columns with a default, indexes and views; it never drops, renames or
 * retypes, so that after a rollback the older program still reads what the newer one wrote.
 */
export const MIGRATIONS: readonly Migration[] = [first, volumes, replacements, secretFingerprints];
