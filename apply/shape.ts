/**
 * What may change on a node in service: one class for each field of the document. The type follows the document, so
 * a field without a class does not compile.
 */
import type { FieldClass } from "../api/contract.ts";
import type { Document } from "../config/document.ts";

/** A list whose entries have names: compared by name; `entry` is the class of one that came or went. */
export interface NamedList<E> {
  readonly entry: FieldClass;
  /** One that is gone is no change of a field but a removal, which has its own way. */
  readonly isRemovable?: true;
  readonly fields: Block<E>;
}

/** Every key of it, the optional ones too. */
export type Block<T> = { readonly [K in keyof Required<T>]: Shape<NonNullable<T[K]>> };

/** One class makes it one field, whatever is inside (free maps, lists without names, devices). */
export type Shape<T> =
  FieldClass | (T extends readonly (infer E)[] ? NamedList<E> : T extends object ? Block<T> : never);

const source = { url: "immutable", file: "immutable", authFile: "immutable", waitFor: "immutable" } as const;

export const documentShape: Block<Document> = {
  role: "immutable",
  cluster: { name: "immutable", endpoint: "immutable", subjectAltNames: "immutable" },
  network: {
    podCIDR: "immutable",
    serviceCIDR: "immutable",
    cni: "immutable",
    handover: { mode: "host", stack: "immutable", application: { name: "immutable", namespace: "immutable" } },
  },
  storage: { type: "immutable" },
  join: { token: "immutable", tokenFrom: source },
  node: { name: "immutable", labels: "immutable", taints: "immutable" },
  addons: {
    entry: "safe",
    isRemovable: true,
    fields: {
      name: "immutable",
      // Another chart or namespace under the same name moves the release, which removes it with its data.
      chart: "immutable",
      namespace: "immutable",
      version: "safe",
      repository: { name: "safe", url: "safe" },
      values: "safe",
    },
  },
  manifests: {
    entry: "safe",
    isRemovable: true,
    fields: {
      name: "immutable",
      files: { entry: "safe", isRemovable: true, fields: { name: "immutable", content: "safe" } },
    },
  },
  ha: {
    enabled: "immutable",
    virtualIP: "immutable",
    interface: "immutable",
    virtualRouterID: "immutable",
    unicastPeers: "immutable",
    authPass: "immutable",
    authPassFrom: source,
  },
  upgrades: { automatic: "host", schedule: "host", source: { url: "host" } },
  backup: { enabled: "host", schedule: "host", path: "host", keep: "host" },
  raid: {
    entry: "immutable",
    fields: {
      name: "immutable",
      level: "immutable",
      devices: "immutable",
      spares: "immutable",
      filesystem: "immutable",
      mountPoint: "immutable",
      wipe: "spent",
    },
  },
  luks: {
    entry: "immutable",
    fields: {
      name: "immutable",
      device: "immutable",
      unlock: "immutable",
      passphrase: "immutable",
      passphraseFrom: source,
      filesystem: "immutable",
      mountPoint: "immutable",
      wipe: "spent",
    },
  },
  disks: {
    entry: "immutable",
    fields: {
      name: "immutable",
      device: "immutable",
      filesystem: "immutable",
      mountPoint: "immutable",
      wipe: "spent",
    },
  },
  zfs: {
    entry: "immutable",
    fields: {
      name: "immutable",
      vdevs: "immutable",
      mountPoint: "immutable",
      options: "immutable",
      filesystemOptions: "immutable",
      datasets: "immutable",
      wipe: "spent",
    },
  },
  wireguard: {
    entry: "immutable",
    fields: {
      name: "immutable",
      address: "immutable",
      listenPort: "immutable",
      mtu: "immutable",
      nodeAddress: "immutable",
      privateKey: "immutable",
      privateKeyFrom: source,
      generateKey: "immutable",
      peers: "immutable",
    },
  },
  api: {
    enabled: "guarded",
    operatorCA: "guarded",
    operatorCAFrom: { url: "guarded", file: "guarded", authFile: "guarded", waitFor: "guarded" },
    insecure: "guarded",
    awaitConfig: "guarded",
  },
  k0s: { patch: "safe" },
  kubernetes: { version: "own-verb" },
  install: { disk: "immutable", mirror: "immutable", wipe: "spent" },
};
