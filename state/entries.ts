import type { Database } from "./sqlite.ts";

export type Stream = "operation" | "event" | "audit";

export interface Entry {
  readonly seq: number;
  readonly at_ms: number;
  readonly boot_id: string;
  readonly subject: string;
  readonly kind: string;
  readonly data: string;
}

export interface NewEntry {
  readonly atMs: number;
  readonly stream: Stream;
  readonly subject: string;
  readonly kind: string;
  readonly data: unknown;
}

/** The append-only table below operations, events and audit. */
export interface Entries {
  append(entry: NewEntry): number;
  /** Of one subject, oldest first. */
  of(stream: Stream, subject: string): readonly Entry[];
  /** Of one stream after `seq`, oldest first. */
  since(stream: Stream, seq: number, limit: number): readonly Entry[];
  /** The newest of one stream, oldest first. */
  last(stream: Stream, limit: number): readonly Entry[];
  /** The newest of one subject; 0 when there is none. */
  lastSeq(stream: Stream, subject: string): number;
}

export function entriesIn(database: Database, bootId: string): Entries {
  const insert = database.prepare(
    "INSERT INTO entries (at_ms, boot_id, stream, subject, kind, data) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const of = database.prepare<[string, string], Entry>(
    "SELECT * FROM entries WHERE stream = ? AND subject = ? ORDER BY seq",
  );
  const since = database.prepare<[string, number, number], Entry>(
    "SELECT * FROM entries WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
  );
  const last = database.prepare<[string, number], Entry>(
    "SELECT * FROM (SELECT * FROM entries WHERE stream = ? ORDER BY seq DESC LIMIT ?) ORDER BY seq",
  );
  const lastSeq = database.prepare<[string, string], { seq: number | null }>(
    "SELECT max(seq) AS seq FROM entries WHERE stream = ? AND subject = ?",
  );
  return {
    append: ({ atMs, stream, subject, kind, data }) =>
      Number(insert.run(Math.floor(atMs), bootId, stream, subject, kind, JSON.stringify(data)).lastInsertRowid),
    of: (stream, subject) => of.all(stream, subject),
    since: (stream, seq, limit) => since.all(stream, seq, limit),
    last: (stream, limit) => last.all(stream, limit),
    lastSeq: (stream, subject) => lastSeq.get(stream, subject)?.seq ?? 0,
  };
}
