import type { Migration } from "./model.ts";

export const first: Migration = {
  number: 1,
  sql: `
    CREATE TABLE entries (
      seq      INTEGER PRIMARY KEY AUTOINCREMENT,
      at_ms    INTEGER NOT NULL,
      boot_id  TEXT NOT NULL,
      stream   TEXT NOT NULL CHECK (stream IN ('operation', 'event', 'audit')),
      subject  TEXT NOT NULL,
      kind     TEXT NOT NULL,
      data     TEXT NOT NULL CHECK (json_valid(data))
    ) STRICT;
    CREATE INDEX entries_by_subject ON entries (stream, subject, seq);
    CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries
      BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;
    CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
      BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END;

    CREATE VIEW operations AS
      SELECT subject AS id, min(seq) AS first_seq, max(seq) AS last_seq, min(at_ms) AS created_at_ms
      FROM entries WHERE stream = 'operation' GROUP BY subject;
    CREATE VIEW events AS
      SELECT seq, at_ms, boot_id, kind, data FROM entries WHERE stream = 'event';
    CREATE VIEW audit AS
      SELECT seq, at_ms, boot_id, subject AS route, kind AS outcome, data FROM entries WHERE stream = 'audit';

    CREATE TABLE journal (
      step_id      TEXT PRIMARY KEY,
      kind         TEXT NOT NULL,
      step         TEXT NOT NULL CHECK (json_valid(step)),
      disks        TEXT NOT NULL CHECK (json_valid(disks)),
      opened_at_ms INTEGER NOT NULL,
      closed_at_ms INTEGER
    ) STRICT;

    CREATE TABLE documents (
      id        INTEGER PRIMARY KEY AUTOINCREMENT,
      at_ms     INTEGER NOT NULL,
      requester TEXT NOT NULL CHECK (json_valid(requester)),
      origin    TEXT NOT NULL,
      sha256    TEXT NOT NULL,
      text      TEXT NOT NULL
    ) STRICT;

    CREATE TABLE baseline (
      id             INTEGER PRIMARY KEY CHECK (id = 1),
      document_id    INTEGER NOT NULL REFERENCES documents (id),
      hostname       TEXT NOT NULL,
      machine_id     TEXT NOT NULL,
      addresses      TEXT NOT NULL CHECK (json_valid(addresses)),
      k0s_version    TEXT NOT NULL,
      input_hash     TEXT NOT NULL,
      render_version INTEGER NOT NULL,
      rendered       TEXT NOT NULL CHECK (json_valid(rendered)),
      at_ms          INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE claim (
      id          INTEGER PRIMARY KEY CHECK (id = 1),
      operator_ca TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      at_ms       INTEGER NOT NULL,
      claimed_by  TEXT NOT NULL CHECK (claimed_by IN ('enroll', 'document', 'insecure'))
    ) STRICT;
    CREATE TABLE revoked (
      issuer TEXT NOT NULL,
      serial TEXT NOT NULL,
      at_ms  INTEGER NOT NULL,
      PRIMARY KEY (issuer, serial)
    ) STRICT;

    CREATE TABLE owned (
      kind            TEXT NOT NULL CHECK (kind IN ('disk', 'raid')),
      name            TEXT NOT NULL,
      uuid            TEXT NOT NULL,
      filesystem_uuid TEXT,
      disks           TEXT NOT NULL CHECK (json_valid(disks)),
      PRIMARY KEY (kind, name)
    ) STRICT;
  `,
};
