import type { Entries, Entry } from "./entries.ts";
import type { EventRecord } from "./model.ts";

export interface Events {
  add(event: Pick<EventRecord, "atMs" | "kind" | "severity" | "message">): EventRecord;
  since(seq: number, limit?: number): readonly EventRecord[];
  /** Oldest first. */
  last(limit?: number): readonly EventRecord[];
}

const LIMIT = 1000;

export function eventsIn(entries: Entries): Events {
  return {
    add({ atMs, kind, severity, message }) {
      const seq = entries.append({ atMs, stream: "event", subject: "", kind, data: { severity, message } });
      return { seq, atMs, kind, severity, message };
    },
    since: (seq, limit = LIMIT) => entries.since("event", seq, limit).map(toEvent),
    last: (limit = LIMIT) => entries.last("event", limit).map(toEvent),
  };
}

function toEvent(entry: Entry): EventRecord {
  const data = JSON.parse(entry.data) as Pick<EventRecord, "severity" | "message">;
  return { seq: entry.seq, atMs: entry.at_ms, kind: entry.kind, severity: data.severity, message: data.message };
}
