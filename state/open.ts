import { existsSync, statSync } from "node:fs";

import type { AppError } from "../kit/app-error.ts";
import { appError, fail } from "../kit/app-error.ts";
import type { Paths } from "../kit/paths.ts";
import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";
import type { Audit } from "./audit.ts";
import { auditIn } from "./audit.ts";
import type { BaselineRepository } from "./baseline.ts";
import { baselineIn } from "./baseline.ts";
import type { ClaimRepository } from "./claim.ts";
import { claimIn } from "./claim.ts";
import type { Documents } from "./documents.ts";
import { documentsIn } from "./documents.ts";
import { entriesIn } from "./entries.ts";
import type { Events } from "./events.ts";
import { eventsIn } from "./events.ts";
import type { HandoverRepository } from "./handover.ts";
import { handoverIn } from "./handover.ts";
import type { JournalRepository } from "./journal.ts";
import { journalIn } from "./journal.ts";
import type { Meta } from "./meta.ts";
import { metaIn } from "./meta.ts";
import { migrate } from "./migrate.ts";
import type { Operations } from "./operations.ts";
import { operationsIn } from "./operations.ts";
import type { OwnedRepository } from "./owned.ts";
import { ownedIn } from "./owned.ts";
import { processOwners, readBootId } from "./owners.ts";
import type { Replacements } from "./replacements.ts";
import { replacementsIn } from "./replacements.ts";
import type { Database } from "./sqlite.ts";
import { isSqliteError, openDatabase } from "./sqlite.ts";

/** Every call is synchronous and durable when it returns. A failing disk throws what `isSqliteError` knows. */
export interface State {
  readonly operations: Operations;
  readonly events: Events;
  readonly audit: Audit;
  readonly journal: JournalRepository;
  readonly documents: Documents;
  readonly baseline: BaselineRepository;
  readonly claim: ClaimRepository;
  readonly owned: OwnedRepository;
  readonly replacements: Replacements;
  readonly handover: HandoverRepository;
  readonly meta: Meta;
  readonly bootId: string;
  /** All or nothing; the lock is taken at the start. Not nested. */
  transaction<T>(work: () => T): T;
  /** The database as one consistent file, for a backup: never copy the raw three. */
  snapshotTo(path: string): void;
  /** Whether it can be read now; `503` and `degraded` follow from this. */
  check(): Result<void, AppError>;
  close(): void;
}

/**
 * `error.code`: `state-lost` (marker without database), `no-baseline` (a node in service whose record of what it runs is gone), `state-unmarked` (database of a node in service
 * without its marker), `state-corrupt`, `state-unreadable`. On each of them nothing is claimed, bootstrapped or
 * changed: k0s keeps running and the status says degraded.
 */
export function openState(paths: Pick<Paths, "database" | "marker">): Result<State, AppError> {
  const isMarked = existsSync(paths.marker);
  // Before SQLite makes a new one: an empty database beside the marker would be a claimable member of a cluster.
  if (isMarked && (!existsSync(paths.database) || statSync(paths.database).size === 0)) {
    return fail("state-lost", `${paths.marker} is there but the database is not`, { hint: RESCUE });
  }
  let database: Database | undefined;
  try {
    database = openDatabase(paths.database);
    const [check] = database.pragma("quick_check(1)") as readonly { readonly quick_check: string }[];
    if (check?.quick_check !== "ok") {
      database.close();
      return fail("state-corrupt", `the database is damaged: ${check?.quick_check ?? "no answer"}`, { hint: RESCUE });
    }
    migrate(database);
    const state = stateIn(database);
    const consistent = checkMarker(paths, state, isMarked);
    if (consistent.ok) return ok(state);
    state.close();
    return consistent;
  } catch (thrown) {
    database?.close();
    if (!isSqliteError(thrown) && !(thrown instanceof Error && "code" in thrown)) throw thrown;
    const isDamaged = isSqliteError(thrown) && /^SQLITE_(CORRUPT|NOTADB)/.test(thrown.code);
    return err(
      appError(
        isDamaged ? "state-corrupt" : "state-unreadable",
        `the database ${isDamaged ? "is damaged" : "can't be opened"}: ${thrown.message}`,
        { hint: RESCUE },
      ),
    );
  }
}

/** For `baseline adopt` alone, where `openState` says `no-baseline`: whoever commands the node still does. */
export function openWithoutBaseline(paths: Pick<Paths, "database" | "marker">): State | undefined {
  const opened = openState(paths);
  if (opened.ok) opened.value.close();
  if (opened.ok || opened.error.code !== "no-baseline") return undefined;
  return stateIn(openDatabase(paths.database));
}

/** Nothing is kept: for tests, and for what the API can still answer when the real one can't be opened. */
export function memoryState(): State {
  const database = openDatabase(":memory:");
  migrate(database);
  return stateIn(database);
}

const ADOPT =
  "name the document that was applied last: `cctl baseline adopt NODE --file FILE`; Kubernetes keeps running";
const RESCUE = "Kubernetes keeps running; restore a backup or reset the node at the console";

/** The repositories over one connection; whether marker and database belong together is `openState`'s question. */
export function stateIn(database: Database): State {
  const bootId = readBootId();
  const entries = entriesIn(database, bootId);
  const meta = metaIn(database);
  return {
    operations: operationsIn(database, entries, processOwners(bootId)),
    events: eventsIn(entries),
    audit: auditIn(entries),
    journal: journalIn(database),
    documents: documentsIn(database),
    baseline: baselineIn(database),
    claim: claimIn(database),
    owned: ownedIn(database),
    replacements: replacementsIn(database),
    handover: handoverIn(meta),
    meta,
    bootId,
    transaction: (work) => database.transaction(work).immediate(),
    snapshotTo: (path) => void database.prepare("VACUUM INTO ?").run(path),
    check() {
      try {
        database.prepare("SELECT count(*) FROM meta").get();
        return ok(undefined);
      } catch (thrown) {
        return fail("state-unreadable", `the database can't be read: ${String(thrown)}`);
      }
    },
    close: () => void database.close(),
  };
}

/**
 * The marker is written after the baseline, the record of it after the marker. A cut between them is healed: no
 * marker yet → bootstrap goes on; marker without its record → recorded now. Everything else is damage.
 */
function checkMarker(paths: Pick<Paths, "marker">, state: State, isMarked: boolean): Result<void, AppError> {
  const inService = state.meta.get("in-service-at-ms");
  if (!isMarked) {
    return inService === undefined
      ? ok(undefined)
      : fail("state-unmarked", `the database says in service but ${paths.marker} is not there`, { hint: RESCUE });
  }
  const baseline = state.baseline.get();
  if (baseline === undefined && state.meta.get("held") !== undefined) {
    return fail("state-lost", `${paths.marker} is there, but the database is of a node that was reset`, {
      hint: RESCUE,
    });
  }
  if (baseline === undefined) {
    return fail("no-baseline", "the database does not say what this node runs", { hint: ADOPT });
  }
  if (inService === undefined) state.meta.set("in-service-at-ms", String(baseline.atMs));
  return ok(undefined);
}
