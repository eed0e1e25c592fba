import type { Requester, StoredDocument } from "./model.ts";
import type { Database } from "./sqlite.ts";
import { sha256Of } from "../kit/sha256.ts";

/** The last ten documents and the baseline's. They hold secrets: the database is 0600. */
export interface Documents {
  add(document: Pick<StoredDocument, "text" | "atMs" | "requester" | "origin">): StoredDocument;
  get(id: number): StoredDocument | undefined;
  latest(): StoredDocument | undefined;
  /** Newest first. */
  list(): readonly StoredDocument[];
}

const KEPT = 10;

export interface DocumentRow {
  readonly id: number;
  readonly at_ms: number;
  readonly requester: string;
  readonly origin: string;
  readonly sha256: string;
  readonly text: string;
}

export function documentsIn(database: Database): Documents {
  const insert = database.prepare(
    "INSERT INTO documents (at_ms, requester, origin, sha256, text) VALUES (?, ?, ?, ?, ?)",
  );
  const prune = database.prepare(
    `DELETE FROM documents WHERE id NOT IN (SELECT id FROM documents ORDER BY id DESC LIMIT ${KEPT})
     AND id NOT IN (SELECT document_id FROM baseline)`,
  );
  const one = database.prepare<[number], DocumentRow>("SELECT * FROM documents WHERE id = ?");
  const all = database.prepare<[], DocumentRow>("SELECT * FROM documents ORDER BY id DESC");
  const last = database.prepare<[], DocumentRow>("SELECT * FROM documents ORDER BY id DESC LIMIT 1");
  const add = database.transaction((document: Parameters<Documents["add"]>[0]): StoredDocument => {
    const sha256 = sha256Of(document.text);
    const { lastInsertRowid } = insert.run(
      document.atMs,
      JSON.stringify(document.requester),
      document.origin,
      sha256,
      document.text,
    );
    prune.run();
    return { id: Number(lastInsertRowid), sha256, ...document };
  });
  const found = (row: DocumentRow | undefined): StoredDocument | undefined =>
    row === undefined ? undefined : toDocument(row);
  return {
    add: (document) => add.immediate(document),
    get: (id) => found(one.get(id)),
    latest: () => found(last.get()),
    list: () => all.all().map(toDocument),
  };
}

export function toDocument(row: DocumentRow): StoredDocument {
  return {
    id: row.id,
    text: row.text,
    sha256: row.sha256,
    atMs: row.at_ms,
    requester: JSON.parse(row.requester) as Requester,
    origin: row.origin,
  };
}
