import type { Database } from "./sqlite.ts";

export type MetaKey =
  /** Of the disk that the system was installed on. */
  | "installation"
  /** When the marker was seen together with its baseline. From then on its absence means damage. */
  | "in-service-at-ms"
  /** No clock reading below this is believed. */
  | "time-floor-ms"
  /** A reset was done: only a claim together with a document goes on. */
  | "held"
  /** Somebody at the rescue menu took it from its operator CA: it may be claimed again, though it is in service. */
  | "re-keyed"
  /** What of our own may be lost, who agreed and when: once (supervisor/own-consent.ts). */
  | "wipe-own"
  /** Random, never shown: fingerprints of secrets are keyed with it. */
  | "fingerprint-key"
  /** Which source gave which join token last: a keyed fingerprint of both (supervisor/join-token.ts). */
  | "join-token"
  /** Boot in which it was said that volumes have no recovery key. */
  | "reminded-of-recovery"
  /** Boot in which it was said that other installed systems are in the machine. */
  | "said-other-systems"
  /** The last render of its own (apply/rerender): operation, and the version of its renderer. */
  | "rendered"
  /** How it stands with the hand-over of the CNI, and that it was handed over (state/handover.ts). */
  | "handover"
  | "handed-over"
  /** Which ends of certificates were told, and how long before (supervisor/certificate-watch.ts). */
  | "told-certificates";

export interface Meta {
  get(key: MetaKey): string | undefined;
  set(key: MetaKey, value: string): void;
  remove(key: MetaKey): void;
  /** 0 when none is recorded. */
  timeFloorMs(): number;
  /** Never lowers it. */
  raiseTimeFloor(toMs: number): void;
}

export function metaIn(database: Database): Meta {
  const select = database.prepare<[string], { value: string }>("SELECT value FROM meta WHERE key = ?");
  const upsert = database.prepare(
    "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
  );
  const raise = database.prepare(
    `INSERT INTO meta (key, value) VALUES ('time-floor-ms', ?) ON CONFLICT (key) DO UPDATE
     SET value = excluded.value WHERE CAST(excluded.value AS INTEGER) > CAST(value AS INTEGER)`,
  );
  const remove = database.prepare("DELETE FROM meta WHERE key = ?");
  return {
    get: (key) => select.get(key)?.value,
    set: (key, value) => void upsert.run(key, value),
    remove: (key) => void remove.run(key),
    timeFloorMs: () => Number(select.get("time-floor-ms")?.value ?? 0),
    raiseTimeFloor: (toMs) => void raise.run(String(Math.floor(toMs))),
  };
}
