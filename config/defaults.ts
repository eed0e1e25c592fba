import { DEFAULTS } from "./default-values.ts";
import type {
  Addon,
  Document,
  DiskSpec,
  LuksSpec,
  ManifestStack,
  RaidSpec,
  Taint,
  WireguardPeer,
  WireguardSpec,
  ZfsSpec,
} from "./document.ts";
import { maskCidr } from "./ip.ts";
import type { DocumentInput } from "./schema/root.ts";

/** A valid document with everything spelled out. `undefined` fields are left out, so that equal documents are equal. */
export function applyDefaults(input: DocumentInput): Document {
  const type = input.storage?.type ?? defaultStorage(input.role);
  const join = compact({ token: input.join?.token?.trim(), tokenFrom: input.join?.tokenFrom });
  return compact({
    role: input.role,
    cluster: compact({
      name: input.cluster?.name ?? DEFAULTS.clusterName,
      endpoint: input.cluster?.endpoint,
      subjectAltNames: input.cluster?.subjectAltNames ?? [],
    }),
    network: compact({
      podCIDR: input.network?.podCIDR ?? DEFAULTS.podCIDR,
      serviceCIDR: input.network?.serviceCIDR ?? DEFAULTS.serviceCIDR,
      cni: input.network?.cni ?? DEFAULTS.cni,
      handover: input.network?.handover,
    }),
    storage: { type },
    join: isEmpty(join) ? undefined : join,
    node: compact({
      name: input.node?.name,
      labels: input.node?.labels ?? {},
      taints: (input.node?.taints ?? []).map((taint): Taint => compact(taint)),
    }),
    addons: (input.addons ?? []).map((addon): Addon =>
      compact({ ...addon, namespace: addon.namespace ?? DEFAULTS.addonNamespace }),
    ),
    manifests: (input.manifests ?? []) satisfies readonly ManifestStack[],
    ha: compact({
      enabled: input.ha?.enabled ?? false,
      virtualIP: input.ha?.virtualIP,
      interface: input.ha?.interface,
      virtualRouterID: input.ha?.virtualRouterID,
      unicastPeers: input.ha?.unicastPeers ?? [],
      authPass: input.ha?.authPass,
      authPassFrom: input.ha?.authPassFrom,
    }),
    upgrades: compact({
      automatic: input.upgrades?.automatic ?? DEFAULTS.automatic,
      schedule: input.upgrades?.schedule ?? DEFAULTS.schedule,
      source: input.upgrades?.source,
    }),
    backup: backup(input),
    raid: (input.raid ?? []).map((raid): RaidSpec => compact({ ...raid, spares: raid.spares ?? [], ...volume(raid) })),
    luks: (input.luks ?? []).map((luks): LuksSpec =>
      compact({ ...luks, unlock: luks.unlock ?? DEFAULTS.unlock, ...volume(luks) }),
    ),
    disks: (input.disks ?? []).map((disk): DiskSpec => compact({ ...disk, ...volume(disk) })),
    zfs: (input.zfs ?? []).map(pool),
    wireguard: (input.wireguard ?? []).map(wireguard),
    api: api(input),
    k0s: { patch: input.k0s?.patch ?? {} },
    kubernetes: compact({ version: input.kubernetes?.version }),
    install: input.install === undefined ? undefined : compact({ ...input.install, wipe: input.install.wipe ?? false }),
  });
}

/** A single node needs no etcd; with no role yet, what most roles have. */
export const defaultStorage = (role: Document["role"]): "etcd" | "sqlite" => (role === "single" ? "sqlite" : "etcd");

type Volume = { readonly filesystem?: "ext4" | "xfs" | "none" | undefined; readonly wipe?: boolean | undefined };
const volume = (given: Volume): { filesystem: "ext4" | "xfs" | "none"; wipe: boolean } => ({
  filesystem: given.filesystem ?? DEFAULTS.filesystem,
  wipe: given.wipe ?? false,
});

/** Absent and off are the same. */
function backup({ backup: given }: DocumentInput): Document["backup"] {
  if (given?.enabled !== true) return undefined;
  return {
    enabled: true,
    schedule: given.schedule ?? DEFAULTS.schedule,
    path: given.path ?? DEFAULTS.backupPath,
    keep: given.keep ?? DEFAULTS.backupKeep,
  };
}

function pool(given: NonNullable<DocumentInput["zfs"]>[number]): ZfsSpec {
  return compact({
    ...given,
    vdevs: given.vdevs.map((vdev) => ({ ...vdev, type: vdev.type ?? DEFAULTS.vdevType })),
    options: given.options ?? {},
    filesystemOptions: given.filesystemOptions ?? {},
    datasets: given.datasets ?? [],
    wipe: given.wipe ?? false,
  });
}

/** Zero means absent for port and keepalive, as it does to WireGuard. */
function wireguard(given: NonNullable<DocumentInput["wireguard"]>[number]): WireguardSpec {
  return compact({
    ...given,
    address: typeof given.address === "string" ? [given.address] : given.address,
    listenPort: given.listenPort === 0 ? undefined : given.listenPort,
    nodeAddress: given.nodeAddress ?? false,
    generateKey: given.generateKey ?? false,
    peers: (given.peers ?? []).map((peer): WireguardPeer =>
      compact({
        ...peer,
        allowedIPs: [...new Set(peer.allowedIPs.map(maskCidr))],
        persistentKeepalive: peer.persistentKeepalive === 0 ? undefined : peer.persistentKeepalive,
      }),
    ),
  });
}

/** `api: {}` is absent. */
function api({ api: given }: DocumentInput): Document["api"] {
  if (given === undefined || isEmpty(given)) return undefined;
  return compact({
    enabled: given.enabled ?? true,
    operatorCA: given.operatorCA,
    operatorCAFrom: given.operatorCAFrom,
    insecure: given.insecure ?? false,
    awaitConfig: given.awaitConfig ?? false,
  });
}

type Compact<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

function compact<T extends object>(fields: T): Compact<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Compact<T>;
}

const isEmpty = (value: object): boolean => Object.keys(value).length === 0;
