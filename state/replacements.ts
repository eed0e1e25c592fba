import type { DiskIdentity, ReplacedDisk } from "../kit/disk.ts";
import type { Database } from "./sqlite.ts";

/** One request to replace a disk of an array. */
export interface Replacement extends ReplacedDisk {
  readonly id: number;
  /** What is on the new disk may be destroyed. */
  readonly isWipeAllowed: boolean;
  readonly begunAtMs: number;
}

export interface Replacements {
  /** The number that the next one gets. */
  nextId(): number;
  begin(replacement: Omit<Replacement, "id">): Replacement;
  /** Begun and not over: at most one. */
  open(): Replacement | undefined;
  end(id: number, outcome: "done" | "failed", atMs: number): void;
  /** Oldest first. */
  done(): readonly ReplacedDisk[];
}

interface Row {
  readonly id: number;
  readonly array_name: string;
  readonly device: string;
  readonly old_disk: string;
  readonly new_disk: string;
  readonly new_links: string;
  readonly is_wipe_allowed: number;
  readonly begun_at_ms: number;
}

export function replacementsIn(database: Database): Replacements {
  const last = database.prepare<[], { id: number | null }>("SELECT max(id) AS id FROM replacements");
  const open = database.prepare<[], Row>("SELECT * FROM replacements WHERE outcome IS NULL ORDER BY id DESC LIMIT 1");
  const done = database.prepare<[], Row>("SELECT * FROM replacements WHERE outcome = 'done' ORDER BY id");
  const insert = database.prepare(
    `INSERT INTO replacements (id, array_name, device, old_disk, new_disk, new_links, is_wipe_allowed, begun_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const end = database.prepare("UPDATE replacements SET outcome = ?, ended_at_ms = ? WHERE id = ? AND outcome IS NULL");
  const nextId = (): number => (last.get()?.id ?? 0) + 1;
  return {
    nextId,
    begin(replacement) {
      const id = nextId();
      const { array, device, old, new: next, newLinks, isWipeAllowed, begunAtMs } = replacement;
      const [oldDisk, newDisk, links] = [old, next, newLinks].map((each) => JSON.stringify(each));
      insert.run(id, array, device, oldDisk, newDisk, links, isWipeAllowed ? 1 : 0, begunAtMs);
      return { id, ...replacement };
    },
    open: () => open.all().map(toReplacement)[0],
    end: (id, outcome, atMs) => void end.run(outcome, atMs, id),
    done: () => done.all().map(toReplacement),
  };
}

const toReplacement = (row: Row): Replacement => ({
  id: row.id,
  array: row.array_name,
  device: row.device,
  old: JSON.parse(row.old_disk) as DiskIdentity,
  new: JSON.parse(row.new_disk) as DiskIdentity,
  newLinks: JSON.parse(row.new_links) as readonly string[],
  isWipeAllowed: row.is_wipe_allowed === 1,
  begunAtMs: row.begun_at_ms,
});
