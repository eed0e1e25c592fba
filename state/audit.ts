import type { Entries, Entry } from "./entries.ts";
import type { AuditRecord } from "./model.ts";

/** Who asked for what, and what came of it. Never a body. */
export interface Audit {
  add(record: Omit<AuditRecord, "seq">): AuditRecord;
  since(seq: number, limit?: number): readonly AuditRecord[];
  /** Oldest first. */
  last(limit?: number): readonly AuditRecord[];
}

const LIMIT = 1000;

export function auditIn(entries: Entries): Audit {
  return {
    add({ atMs, route, outcome, requester, status }) {
      const data = { requester, status };
      return {
        seq: entries.append({ atMs, stream: "audit", subject: route, kind: outcome, data }),
        atMs,
        route,
        outcome,
        ...data,
      };
    },
    since: (seq, limit = LIMIT) => entries.since("audit", seq, limit).map(toRecord),
    last: (limit = LIMIT) => entries.last("audit", limit).map(toRecord),
  };
}

function toRecord(entry: Entry): AuditRecord {
  const data = JSON.parse(entry.data) as Pick<AuditRecord, "requester" | "status">;
  return { seq: entry.seq, atMs: entry.at_ms, route: entry.subject, outcome: entry.kind, ...data };
}
