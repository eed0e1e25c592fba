import type { Addon, Document } from "../config/document.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import { overlayAddress } from "./addresses.ts";
import { mergePatch, type Plain } from "./merge.ts";
import { writeYaml } from "./yaml.ts";

/** An IPv4 pod packet needs 50 bytes of VXLAN around it, and the overlay is 1420 unless told otherwise. */
const WIREGUARD_MTU = 1420;
const VXLAN_BYTES = 50;

const unique = <T>(items: readonly T[]): T[] => [...new Set(items)];

/** Only what is there: k0s takes an empty value for a given one. */
const given = (map: Plain): Plain => Object.fromEntries(Object.entries(map).filter(([, value]) => value !== undefined));

const orAbsent = (map: Plain): Plain | undefined => (Object.keys(map).length === 0 ? undefined : map);

function apiSection(document: Document, addresses: RecordedAddresses): Plain {
  const { endpoint, subjectAltNames } = document.cluster;
  const overlay = overlayAddress(document);
  const sans = unique([endpoint, ...subjectAltNames, overlay].filter((name) => name !== undefined));
  return given({
    address: overlay ?? addresses.apiAddress,
    externalAddress: endpoint,
    sans: sans.length === 0 ? undefined : sans,
  });
}

/** Over the overlay the CNI must wrap pod packets itself: bare ones are not in allowedIPs and are dropped. */
function cniSection(document: Document): Plain {
  const overlay = document.wireguard.find((link) => link.nodeAddress);
  if (overlay === undefined) return {};
  switch (document.network.cni) {
    case "kuberouter":
      return { kuberouter: { extraArgs: { "overlay-type": "full" } } };
    case "calico":
      return { calico: { mtu: (overlay.mtu ?? WIREGUARD_MTU) - VXLAN_BYTES } };
    case "custom":
      return {};
    default:
      return document.network.cni satisfies never;
  }
}

function loadBalancing(document: Document, addresses: RecordedAddresses): Plain | undefined {
  const { ha } = document;
  if (!ha.enabled) return undefined;
  const isUnicast = ha.unicastPeers.length > 0;
  const instance = given({
    virtualIPs: [ha.virtualIP],
    authPass: `<secret:${ha.authPassFrom === undefined ? "ha.authPass" : "ha.authPassFrom"}>`,
    interface: ha.interface,
    virtualRouterID: ha.virtualRouterID,
    unicastPeers: isUnicast ? ha.unicastPeers : undefined,
    unicastSourceIP: isUnicast ? addresses.unicastSourceIp : undefined,
  });
  return { enabled: true, type: "Keepalived", keepalived: { vrrpInstances: [instance] } };
}

function storageSection(document: Document, addresses: RecordedAddresses): Plain {
  // kine without a dataSource is k0s's own SQLite file.
  if (document.storage.type === "sqlite") return { type: "kine" };
  const peerAddress = overlayAddress(document) ?? addresses.peerAddress;
  return given({ type: "etcd", etcd: peerAddress === undefined ? undefined : { peerAddress } });
}

const chart = (addon: Addon): Plain =>
  given({
    name: addon.name,
    chartname: addon.chart,
    version: addon.version,
    namespace: addon.namespace,
    values: Object.keys(addon.values ?? {}).length === 0 ? undefined : writeYaml(addon.values),
  });

function extensionsSection(addons: readonly Addon[]): Plain | undefined {
  const repositories = new Map<string, Plain>();
  for (const { repository } of addons) {
    if (repository !== undefined && !repositories.has(repository.name)) {
      repositories.set(repository.name, { name: repository.name, url: repository.url });
    }
  }
  const helm = given({
    repositories: repositories.size === 0 ? undefined : [...repositories.values()],
    charts: addons.length === 0 ? undefined : addons.map(chart),
  });
  return orAbsent(helm) === undefined ? undefined : { helm };
}

/** The ClusterConfig as Corium means it, before the operator's patch. */
export function modelledConfig(document: Document, addresses: RecordedAddresses): Plain {
  const { network } = document;
  return {
    apiVersion: "k0s.k0sproject.io/v1beta1",
    kind: "ClusterConfig",
    metadata: { name: document.cluster.name },
    spec: given({
      api: orAbsent(apiSection(document, addresses)),
      extensions: extensionsSection(document.addons),
      network: given({
        provider: network.cni,
        podCIDR: network.podCIDR,
        serviceCIDR: network.serviceCIDR,
        ...cniSection(document),
        controlPlaneLoadBalancing: loadBalancing(document, addresses),
      }),
      storage: storageSection(document, addresses),
      telemetry: { enabled: false },
    }),
  };
}

/** The ClusterConfig that k0s gets: the model with `k0s.patch` merged last. Secrets stand as placeholders. */
export function clusterConfig(document: Document, addresses: RecordedAddresses): Plain {
  return mergePatch(modelledConfig(document, addresses), document.k0s.patch) as Plain;
}
