/**
 * Everything that can be known to fail fails here: all at once, before the first change. Pure; the facts were read
 * by the driver. What a single domain can tell (disks, tokens) its own planner says.
 */
import type { Document } from "../config/document.ts";
import type { Finding } from "../kit/finding.ts";
import type { Advertisement } from "../k0s/vip/parse.ts";
import type { Link, MachineFacts } from "./facts.ts";
import type { PlanningCode } from "./finding-codes.ts";
import type { ResolvedName } from "./secrets.ts";
import { boundaryAddresses, familyOf, isSameAddress, rangesOverlap, recordAddresses, vrrpLink } from "./addresses.ts";
import { defaultRoute, globalAddresses, isNic } from "./facts.ts";
import { splitEndpoint } from "../wireguard/endpoints.ts";
import { DEFAULT_MTU } from "../wireguard/peers.ts";

/** What was heard when the network was asked about a cluster that this document would found. */
export interface Probes {
  /** Link addresses that answer for the virtual address; absent where nobody could be asked. */
  readonly holders?: readonly string[];
  /** VRRP heard for four seconds on its link; absent where it could not be heard. */
  readonly heard?: readonly Pick<Advertisement, "from" | "virtualRouterId">[];
  /** Peers of overlays that are named. */
  readonly overlayEndpoints?: readonly ResolvedName[];
  /** Servers of secrets that are named, where there is an overlay that may lead to them. */
  readonly secretServers?: readonly ResolvedName[];
  /** `10.0.0.9:6443`: an API server is there already. */
  readonly answering: readonly string[];
  /** Addresses of a cluster.endpoint that is a name; absent when it is an address. */
  readonly endpointAddresses?: readonly string[];
}

export interface LintInput {
  readonly document: Document;
  readonly facts: MachineFacts;
  readonly probes: Probes;
  /** An earlier attempt of ours got as far as k0s. */
  readonly hasK0sRecord: boolean;
}

const MIB = 1024 * 1024;

export function lintBootstrap(input: LintInput): readonly Finding[] {
  const { document, facts } = input;
  return [
    ...lintMachine(document, facts),
    ...lintOldData(input),
    ...lintRanges(document, facts),
    ...lintOverlay(document, facts, input.probes),
    ...lintOverlayMtu(document, facts),
    ...lintOverlayNames(document, facts),
    ...lintHa(input),
    ...lintLease(document, facts),
  ];
}

const error = (code: PlanningCode, path: string, message: string, hint?: string): Finding => ({
  severity: "error",
  code,
  path,
  message,
  ...(hint === undefined ? {} : { hint }),
});
const warning = (code: PlanningCode, path: string, message: string, hint?: string): Finding => ({
  ...error(code, path, message, hint),
  severity: "warning",
});

function lintMachine(document: Document, facts: MachineFacts): Finding[] {
  const findings: Finding[] = [];
  if (!facts.hasCgroup2) {
    findings.push(
      error("no-cgroup2", "", "the kernel has no cgroup v2 hierarchy at /sys/fs/cgroup", "kubelet needs it"),
    );
  }
  const [neededMib, wishedMib] = document.role === "worker" ? [384, 900] : [512, 1800];
  const foundMib = Math.floor(facts.memoryBytes / MIB);
  if (foundMib < neededMib) {
    findings.push(error("memory", "role", `the machine has ${foundMib} MiB of memory, ${neededMib} MiB are needed`));
  } else if (foundMib < wishedMib) {
    findings.push(warning("memory", "role", `${foundMib} MiB of memory are little for a ${document.role ?? "node"}`));
  }
  const { version } = document.kubernetes;
  const found = facts.k0sVersion?.replace(/-sim$/, "");
  if (facts.k0sVersion === undefined) {
    findings.push(error("k0s-missing", "", "the k0s of this image does not answer", "install the image again"));
  } else if (version !== undefined && version !== found) {
    findings.push(
      error(
        "k0s-version",
        "kubernetes.version",
        `wanted '${version}', this image holds ${found ?? ""}`,
        "boot the image with that version",
      ),
    );
  }
  return findings;
}

function lintOldData({ facts, hasK0sRecord }: LintInput): Finding[] {
  if (facts.oldK0s.length === 0 || hasK0sRecord) return [];
  return [
    error(
      "old-k0s",
      "",
      `/var/lib/k0s holds data of another installation: ${facts.oldK0s.join(", ")}`,
      "reset this node, or remove the data if nobody needs it",
    ),
  ];
}

/** networkd matches by name: the network of the overlay would take the place of the link's own. */
function lintOverlayNames(document: Document, { links }: MachineFacts): Finding[] {
  return document.wireguard.flatMap(({ name }, at) =>
    links.some((link) => link.name === name && link.kind !== "wireguard")
      ? [
          error(
            "overlay-name",
            `wireguard[${at}].name`,
            `this machine has a link '${name}' already`,
            "choose another name",
          ),
        ]
      : [],
  );
}

/** Links that are there without us: the document's own overlays come up later and are checked by their own rules. */
const outsideLinks = (document: Document, facts: MachineFacts): readonly Link[] =>
  facts.links.filter((link) => isNic(link) && !document.wireguard.some((overlay) => overlay.name === link.name));

/** The node's own network in a cluster range: packets for its gateway would go to a pod. */
function lintRanges(document: Document, facts: MachineFacts): Finding[] {
  const findings: Finding[] = [];
  const own = [
    ...outsideLinks(document, facts).flatMap((link) =>
      globalAddresses(link).map(({ address, prefix }) => ({
        what: `the network of ${link.name}`,
        range: `${address}/${prefix}`,
      })),
    ),
    ...facts.routes.flatMap(({ gateway }) => (gateway === undefined ? [] : [{ what: "the gateway", range: gateway }])),
    ...facts.nameservers.map((range) => ({ what: "the name server", range: range.split("%")[0] ?? range })),
  ];
  for (const field of ["podCIDR", "serviceCIDR"] as const) {
    const cluster = document.network[field];
    for (const { what, range } of own) {
      if (!rangesOverlap(cluster, range)) continue;
      findings.push(
        error(
          "range-overlap",
          `network.${field}`,
          `'${cluster}' overlaps ${what} (${range})`,
          "choose another range for the cluster",
        ),
      );
    }
  }
  return findings;
}

/** A peer that takes the node's own network, its service range or its own endpoint into the tunnel cuts the node off. */
function lintOverlay(document: Document, facts: MachineFacts, { overlayEndpoints = [] }: Probes): Finding[] {
  const findings: Finding[] = [];
  const vip = document.ha.virtualIP?.split("/")[0];
  const own = outsideLinks(document, facts).flatMap((link) =>
    globalAddresses(link).map(({ address, prefix }) => ({
      what: `the network of ${link.name}`,
      range: `${address}/${prefix}`,
    })),
  );
  const endpoints = document.wireguard.flatMap((overlay) =>
    overlay.peers.flatMap(({ endpoint }) => {
      const host = endpoint?.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
      return host !== undefined && (host.includes(":") || /^[\d.]+$/.test(host)) ? [host] : [];
    }),
  );
  const victims = [
    ...own,
    { what: "the service range", range: document.network.serviceCIDR },
    ...(vip === undefined ? [] : [{ what: "the virtual address", range: vip }]),
    ...endpoints.map((range) => ({ what: "a peer's endpoint", range })),
    ...overlayEndpoints.flatMap(({ name, addresses }) =>
      addresses.map((range) => ({ what: `a peer's endpoint, ${name}`, range })),
    ),
  ];
  document.wireguard.forEach((overlay, at) =>
    overlay.peers.forEach((peer, peerAt) =>
      peer.allowedIPs.forEach((allowed, allowedAt) => {
        for (const { what, range } of victims) {
          if (!rangesOverlap(allowed, range)) continue;
          const path = `wireguard[${at}].peers[${peerAt}].allowedIPs[${allowedAt}]`;
          findings.push(error("overlay-swallows", path, `'${allowed}' takes ${what} (${range}) into the tunnel`));
        }
      }),
    ),
  );
  return findings;
}

/** B038: what WireGuard puts around a packet, where the outer one is IPv4, and where it is IPv6. */
const AROUND = { 4: 60, 6: 80 } as const;

function lintOverlayMtu(document: Document, facts: MachineFacts): Finding[] {
  const link = facts.links.find(({ name }) => name === defaultRoute(facts.routes)?.device);
  if (link === undefined || link.mtu === 0) return [];
  return document.wireguard.flatMap(({ name, mtu = DEFAULT_MTU, peers }, at) => {
    const hosts = peers.flatMap(({ endpoint }) => splitEndpoint(endpoint ?? "")?.host ?? []);
    // A name may lead to either; that it has an IPv6 address is not known to matter.
    const around = hosts.some((host) => host.includes(":")) ? AROUND[6] : AROUND[4];
    if (hosts.length === 0 || mtu + around <= link.mtu) return [];
    const message = `mtu ${mtu} of overlay ${name} does not fit through ${link.name}, which takes ${link.mtu} bytes`;
    return [warning("overlay-mtu", `wireguard[${at}].mtu`, message, `at most ${link.mtu - around}, on both sides`)];
  });
}

function lintHa({ document, facts, probes, hasK0sRecord }: LintInput): Finding[] {
  const { ha, cluster } = document;
  if (!ha.enabled || ha.virtualIP === undefined) return [];
  const findings: Finding[] = [];
  const vip = ha.virtualIP.split("/")[0] ?? "";
  const link = vrrpLink(document, facts);
  const path = "ha.virtualIP";
  if (link === undefined) {
    const wanted = ha.interface === undefined ? "there is no default route" : `there is no interface '${ha.interface}'`;
    const present = facts.links.filter((each) => !each.isLoopback).map((each) => each.name);
    return [
      error("no-link", "ha.interface", `${wanted} to hold the virtual address`, `present: ${present.join(", ")}`),
    ];
  }
  const networks = globalAddresses(link, familyOf(vip));
  const network = networks.find(({ address, prefix }) => rangesOverlap(`${address}/${prefix}`, vip));
  if (network === undefined) {
    const found = networks.map(({ address, prefix }) => `${address}/${prefix}`).join(", ");
    findings.push(
      error(
        "vip-off-subnet",
        path,
        `'${vip}' is in no network of ${link.name}`,
        `it has: ${found === "" ? "none" : found}`,
      ),
    );
  } else {
    const { first, last } = boundaryAddresses(`${network.address}/${network.prefix}`);
    // IPv6 has no broadcast; the first address is every router's (RFC 4291, section 2.6.1).
    const bits = familyOf(vip) === 4 ? 32 : 128;
    const taken = bits === 32 ? [first, last] : [first];
    if (network.prefix < bits - 1 && taken.some((each) => isSameAddress(each, vip))) {
      findings.push(error("vip-boundary", path, `'${vip}' is the network or broadcast address of ${link.name}`));
    }
    const prefix = Number(ha.virtualIP.split("/")[1]);
    if (prefix !== network.prefix && prefix !== bits) {
      const message = `'${ha.virtualIP}' is of another size than the network of ${link.name}, ${network.address}/${network.prefix}: a route of that size comes and goes with it`;
      findings.push(warning("vip-prefix", path, message, `write ${vip}/${network.prefix}`));
    }
  }
  ha.unicastPeers.forEach((peer, at) => {
    if (!facts.links.some((each) => each.addresses.some(({ address }) => isSameAddress(address, peer)))) return;
    const message = `'${peer}' is an address of this node itself, and k0s refuses its own among its peers`;
    findings.push(error("peer-own", `ha.unicastPeers[${at}]`, message, "name the other controllers only"));
  });
  // After k0s was started once, keepalived may hold the address on this very node.
  if (!hasK0sRecord) {
    if (facts.links.some((each) => each.addresses.some(({ address }) => isSameAddress(address, vip)))) {
      findings.push(
        error("vip-own", path, `'${vip}' is an address of this node already`, "the virtual address must be free"),
      );
    }
    findings.push(...lintFounding(document, vip, probes));
  }
  if (facts.routes.some(({ gateway }) => gateway !== undefined && isSameAddress(gateway, vip))) {
    findings.push(error("vip-gateway", path, `'${vip}' is the gateway`));
  }
  const resolved = probes.endpointAddresses;
  if (resolved !== undefined && !resolved.some((address) => isSameAddress(address, vip))) {
    const got = resolved.length === 0 ? "does not resolve" : `resolves to ${resolved.join(", ")}`;
    findings.push(
      error(
        "endpoint-elsewhere",
        "cluster.endpoint",
        `'${cluster.endpoint ?? ""}' ${got}, not to the virtual address '${vip}'`,
      ),
    );
  }
  return findings;
}

/** k0s takes this one when none is given (facts: section 1.6). */
const DEFAULT_ROUTER_ID = 51;

/** Founding beside a cluster that is there already would give two clusters one address. */
function lintFounding(document: Document, vip: string, { answering, holders = [], heard = [] }: Probes): Finding[] {
  if (document.join !== undefined) return [];
  if (answering.length > 0) {
    const message = `this cluster exists already: ${answering.join(", ")} answers`;
    return [error("cluster-exists", "join", message, "give this node a join token")];
  }
  const findings: Finding[] = [];
  if (holders.length > 0) {
    const message = `somebody answers for '${vip}' already: ${holders.join(", ")}`;
    findings.push(error("vip-taken", "ha.virtualIP", message, "choose a free address"));
  }
  const id = document.ha.virtualRouterID ?? DEFAULT_ROUTER_ID;
  const others = heard.filter(({ virtualRouterId }) => virtualRouterId === id).map(({ from }) => from);
  if (others.length > 0) {
    const message = `virtual router ${id} is in use on this network: ${others.join(", ")} announces it`;
    const taken = [...new Set(heard.map(({ virtualRouterId }) => virtualRouterId))].toSorted((a, b) => a - b);
    const hint = `if that is this cluster, give this node a join token; else another ha.virtualRouterID (heard: ${taken.join(", ")})`;
    findings.push(error("vrid-taken", "ha.virtualRouterID", message, hint));
  }
  return findings;
}

/** A controller's address is in its certificates and in etcd: a lease that changes takes it out of the cluster. */
function lintLease(document: Document, facts: MachineFacts): Finding[] {
  if (document.role === "worker" || document.role === "single" || document.role === undefined) return [];
  const recorded = recordAddresses(document, facts);
  const device = defaultRoute(facts.routes)?.device;
  const leased = facts.links
    .filter((link) => recorded.nodeIp !== undefined || link.name === device)
    .flatMap((link) => globalAddresses(link).filter((address) => address.isDynamic))
    .find(({ address }) => recorded.nodeIp === undefined || isSameAddress(address, recorded.nodeIp));
  if (leased === undefined) return [];
  return [
    warning(
      "leased-address",
      "",
      `the address ${leased.address} of this controller is leased`,
      "reserve it in the DHCP server, or give a fixed one with ip=",
    ),
  ];
}
