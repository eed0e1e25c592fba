import type { DiskIdentity, OwnedStorage } from "../kit/disk.ts";
import type { Database } from "./sqlite.ts";

/** The storage that we made. */
export interface OwnedRepository {
  list(): readonly OwnedStorage[];
  /** By kind and name; replaces what was recorded under them. */
  put(storage: OwnedStorage): void;
  remove(kind: OwnedStorage["kind"], name: string): void;
}

interface Row {
  readonly kind: OwnedStorage["kind"];
  readonly name: string;
  readonly uuid: string;
  readonly filesystem_uuid: string | null;
  readonly disks: string;
}

export function ownedIn(database: Database): OwnedRepository {
  const all = database.prepare<[], Row>(
    `SELECT kind, name, uuid, filesystem_uuid, disks FROM owned
     UNION ALL SELECT 'luks', name, uuid, filesystem_uuid, disks FROM volumes ORDER BY kind, name`,
  );
  const put = database.prepare(
    "INSERT OR REPLACE INTO owned (kind, name, uuid, filesystem_uuid, disks) VALUES (?, ?, ?, ?, ?)",
  );
  const remove = database.prepare("DELETE FROM owned WHERE kind = ? AND name = ?");
  const putVolume = database.prepare(
    "INSERT OR REPLACE INTO volumes (name, uuid, filesystem_uuid, disks) VALUES (?, ?, ?, ?)",
  );
  const removeVolume = database.prepare("DELETE FROM volumes WHERE name = ?");
  return {
    list: () =>
      all.all().map((row) => ({
        kind: row.kind,
        name: row.name,
        uuid: row.uuid,
        ...(row.filesystem_uuid === null ? {} : { filesystemUuid: row.filesystem_uuid }),
        disks: JSON.parse(row.disks) as readonly DiskIdentity[],
      })),
    put({ kind, name, uuid, filesystemUuid, disks }) {
      const values = [name, uuid, filesystemUuid ?? null, JSON.stringify(disks)];
      if (kind === "luks") putVolume.run(...values);
      else put.run(kind, ...values);
    },
    remove(kind, name) {
      if (kind === "luks") removeVolume.run(name);
      else remove.run(kind, name);
    },
  };
}
