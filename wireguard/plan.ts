import type { Document, WireguardSpec } from "../config/document.ts";
import type { Finding } from "../kit/finding.ts";
import type { WireguardInterfaceStep, WireguardKeyStep, WireguardStep } from "./model.ts";
import { keyFiles, netdevPath, renderInterface, sharedKeyPaths } from "./render.ts";

/** The keys, then the interface, overlay by overlay. What ranges may not be routed is said by provision/lint.ts. */
export function planWireguard(document: Pick<Document, "role" | "wireguard">): {
  readonly steps: readonly WireguardStep[];
  readonly findings: readonly Finding[];
} {
  const steps = document.wireguard.flatMap((spec): WireguardStep[] => [keyStep(spec), interfaceStep(spec, document)]);
  return { steps, findings: document.wireguard.flatMap((spec, at) => lintMtu(spec, `wireguard[${at}]`)) };
}

const keyStep = (spec: WireguardSpec): WireguardKeyStep => ({
  kind: "wireguard:key",
  id: `wireguard:${spec.name}:key`,
  title: spec.generateKey ? `make or keep the key of overlay ${spec.name}` : `write the keys of overlay ${spec.name}`,
  keys: keyFiles(spec),
});

const interfaceStep = (spec: WireguardSpec, document: Pick<Document, "role">): WireguardInterfaceStep => ({
  kind: "wireguard:interface",
  id: `wireguard:${spec.name}`,
  title: `bring up overlay ${spec.name} with ${spec.peers.length} ${spec.peers.length === 1 ? "peer" : "peers"}`,
  name: spec.name,
  addresses: spec.address,
  netdevPath: netdevPath(spec.name),
  sharedKeyPaths: sharedKeyPaths(spec),
  files: renderInterface(spec, document.role),
  ...(spec.mtu === undefined ? {} : { mtu: spec.mtu }),
});

/** B038: 1500 − 80 is the most that fits where the outer packets are IPv6. */
function lintMtu(spec: WireguardSpec, path: string): Finding[] {
  if (spec.mtu === undefined || spec.mtu <= 1420) return [];
  return [
    {
      severity: "warning",
      code: "overlay-mtu",
      path: `${path}.mtu`,
      message: `mtu ${spec.mtu} of overlay ${spec.name} does not fit through an uplink of 1500 bytes over IPv6`,
      hint: "leave it out (1420), unless every link to each peer carries jumbo frames",
    },
  ];
}
