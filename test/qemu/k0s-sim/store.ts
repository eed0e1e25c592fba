/** The objects of the cluster, in SQLite where etcd or kine would keep theirs. */
import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { allResources, fullName, resourceOf, type KubeObject, type Resource } from "./resources.ts";

export interface Store {
  resources(): readonly Resource[];
  get(resource: Resource, namespace: string | undefined, name: string): KubeObject | undefined;
  list(resource: Resource, namespace?: string): readonly KubeObject[];
  all(): readonly KubeObject[];
  /** Creates or replaces; keeps uid and creation time. Throws when the kind is unknown. */
  put(object: KubeObject): KubeObject;
  /** Finalizers hold it back, marked as being deleted. */
  remove(object: KubeObject): void;
  /** Grows with each change: who has the higher one is newer. */
  revision(): number;
  dump(): readonly KubeObject[];
  load(objects: readonly KubeObject[], revision: number): void;
  close(): void;
}

export function openStore(path: string): Store {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const db = new Database(path);
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  db.run("CREATE TABLE IF NOT EXISTS objects (key TEXT PRIMARY KEY, object TEXT NOT NULL)");
  db.run("CREATE TABLE IF NOT EXISTS revision (value INTEGER NOT NULL)");
  db.run("INSERT INTO revision SELECT 1 WHERE NOT EXISTS (SELECT * FROM revision)");

  const keyOf = (resource: Resource, namespace: string | undefined, name: string): string =>
    `${fullName(resource)}|${resource.isNamespaced ? (namespace ?? "default") : ""}|${name}`;
  const query = (where: string, ...values: readonly string[]): readonly KubeObject[] =>
    db
      .query<{ object: string }, string[]>(`SELECT object FROM objects ${where} ORDER BY key`)
      .all(...values)
      .map((row) => JSON.parse(row.object) as KubeObject);
  const crds = "customresourcedefinitions.apiextensions.k8s.io||";
  const resources = (): readonly Resource[] => allResources(query("WHERE key >= ? AND key < ?", crds, `${crds}~`));
  const revision = (): number => db.query<{ value: number }, []>("SELECT value FROM revision").get()?.value ?? 0;
  const bump = (): void => {
    db.run("UPDATE revision SET value = value + 1");
  };
  const find = (object: KubeObject): Resource => {
    const resource = resourceOf(resources(), object);
    if (resource === undefined)
      throw new Error(`no matches for kind "${object.kind}" in version "${object.apiVersion}"`);
    return resource;
  };
  const get: Store["get"] = (resource, namespace, name) => query("WHERE key = ?", keyOf(resource, namespace, name))[0];
  const write = (resource: Resource, object: KubeObject): void => {
    const key = keyOf(resource, object.metadata.namespace, object.metadata.name);
    db.run("INSERT OR REPLACE INTO objects VALUES (?, ?)", [key, JSON.stringify(object)]);
    bump();
  };
  const drop = (resource: Resource, object: KubeObject): void => {
    db.run("DELETE FROM objects WHERE key = ?", [keyOf(resource, object.metadata.namespace, object.metadata.name)]);
    bump();
  };
  return {
    resources,
    get,
    list: (resource, namespace) => {
      const prefix = `${fullName(resource)}|${namespace === undefined || !resource.isNamespaced ? "" : `${namespace}|`}`;
      return query("WHERE key >= ? AND key < ?", prefix, `${prefix}~`);
    },
    all: () => query(""),
    put: (object) => {
      const resource = find(object);
      const old = get(resource, object.metadata.namespace, object.metadata.name);
      const metadata = {
        ...object.metadata,
        uid: old?.metadata.uid ?? crypto.randomUUID(),
        creationTimestamp: old?.metadata.creationTimestamp ?? new Date().toISOString().replace(/\.\d+/, ""),
        resourceVersion: String(revision() + 1),
        ...(resource.isNamespaced ? { namespace: object.metadata.namespace ?? "default" } : {}),
      };
      const kept = { ...object, metadata };
      // The last finalizer of something being deleted is gone.
      if (metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0) drop(resource, kept);
      else write(resource, kept);
      return kept;
    },
    remove: (object) => {
      const resource = find(object);
      const old = get(resource, object.metadata.namespace, object.metadata.name);
      if (old === undefined) return;
      if ((old.metadata.finalizers ?? []).length === 0) {
        drop(resource, old);
        // A namespace takes what is in it along.
        if (resource.kind === "Namespace")
          for (const inside of query("WHERE key LIKE ?", `%|${old.metadata.name}|%`)) drop(find(inside), inside);
      } else if (old.metadata.deletionTimestamp === undefined)
        write(resource, { ...old, metadata: { ...old.metadata, deletionTimestamp: new Date().toISOString() } });
    },
    revision,
    dump: () => query(""),
    load: (objects, at) => {
      db.transaction(() => {
        db.run("DELETE FROM objects");
        // Definitions first: they say what the others are.
        const order = (object: KubeObject): number => (object.kind === "CustomResourceDefinition" ? 0 : 1);
        for (const object of objects.toSorted((a, b) => order(a) - order(b))) write(find(object), object);
        db.run("UPDATE revision SET value = ?", [at]);
      })();
    },
    close: () => {
      db.close();
    },
  };
}
