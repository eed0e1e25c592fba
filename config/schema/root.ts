import * as z from "zod";
import type { Document } from "../document.ts";
import { cluster, join, network, role, storage } from "./cluster.ts";
import { node } from "./node.ts";
import { api, backup, ha, upgrades } from "./service.ts";
import { disks, install, luks, raid, zfs } from "./storage.ts";
import { wireguard } from "./wireguard.ts";
import { addons, k0s, kubernetes, manifests } from "./workloads.ts";

/** The document as people write it. Shapes and single values only: what fields say together is in rules/. */
export const documentSchema = z.strictObject({
  role: role.optional(),
  cluster: cluster.optional(),
  network: network.optional(),
  storage: storage.optional(),
  join: join.optional(),
  node: node.optional(),
  addons: addons.optional(),
  manifests: manifests.optional(),
  ha: ha.optional(),
  upgrades: upgrades.optional(),
  backup: backup.optional(),
  raid: raid.optional(),
  luks: luks.optional(),
  disks: disks.optional(),
  zfs: zfs.optional(),
  wireguard: wireguard.optional(),
  api: api.optional(),
  k0s: k0s.optional(),
  kubernetes: kubernetes.optional(),
  install: install.optional(),
});

/** A value that was decoded never holds `undefined`: what is not there has no key. */
type Exact<T> = T extends readonly (infer E)[]
  ? readonly Exact<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Exact<Exclude<T[K], undefined>> }
    : T;

export type DocumentInput = Exact<z.input<typeof documentSchema>>;

/** The same with anything left out: what remains of a document once its wrong parts are taken away. List positions stay. */
export type Draft<T> = T extends readonly (infer E)[]
  ? readonly (Draft<E> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: Draft<T[K]> | undefined }
    : T;

export type DocumentDraft = Draft<DocumentInput>;

/** Both ways: a field that only the schema or only the parsed document has does not compile. */
type Fields<T> = T extends readonly (infer E)[]
  ? Fields<E>
  : T extends object
    ? string extends keyof T
      ? "map"
      : { readonly [K in keyof T]-?: Fields<NonNullable<T[K]>> }
    : "value";
type AreSame<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
true satisfies AreSame<Fields<DocumentInput>, Fields<Document>>;
