import type { DiskIdentity } from "../kit/disk.ts";
import type { StepBase } from "../kit/step.ts";
import type { Intent } from "./model.ts";
import type { Database } from "./sqlite.ts";

/** The intents of destructive steps: durable when the call returns. */
export interface JournalRepository {
  intents(): readonly Intent[];
  /** Opening an id again replaces its row. */
  open(intent: Intent): void;
  close(stepId: string, atMs: number): void;
}

interface Row {
  readonly step_id: string;
  readonly step: string;
  readonly disks: string;
  readonly opened_at_ms: number;
  readonly closed_at_ms: number | null;
}

export function journalIn(database: Database): JournalRepository {
  const all = database.prepare<[], Row>("SELECT * FROM journal ORDER BY opened_at_ms, step_id");
  const open = database.prepare(
    `INSERT INTO journal (step_id, kind, step, disks, opened_at_ms, closed_at_ms) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (step_id) DO UPDATE SET kind = excluded.kind, step = excluded.step, disks = excluded.disks,
       opened_at_ms = excluded.opened_at_ms, closed_at_ms = excluded.closed_at_ms`,
  );
  const close = database.prepare("UPDATE journal SET closed_at_ms = ? WHERE step_id = ? AND closed_at_ms IS NULL");
  return {
    intents: () => all.all().map(toIntent),
    open: ({ stepId, step, disks, openedAtMs, closedAtMs }) =>
      void open.run(stepId, step.kind, JSON.stringify(step), JSON.stringify(disks), openedAtMs, closedAtMs ?? null),
    close: (stepId, atMs) => void close.run(atMs, stepId),
  };
}

function toIntent(row: Row): Intent {
  return {
    stepId: row.step_id,
    step: JSON.parse(row.step) as StepBase,
    disks: JSON.parse(row.disks) as readonly DiskIdentity[],
    openedAtMs: row.opened_at_ms,
    ...(row.closed_at_ms === null ? {} : { closedAtMs: row.closed_at_ms }),
  };
}
