import type { Document, Role, WireguardPeer, WireguardSpec } from "../config/document.ts";
import { maskCidr } from "../config/ip.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import type { KeyFile } from "./model.ts";
import { sha256Of } from "../kit/sha256.ts";

const folder = "/etc/systemd/network";

/**
 * networkd reads netdev and key files as user systemd-network. A file of root's alone (0600) makes it drop the
 * interface without any unit failing, so group systemd-network may read them and nobody else.
 */
export const owner = { user: "root", group: "systemd-network" } as const;
export const keyFolder = { path: `${folder}/corium-keys`, mode: 0o750, owner } as const;
export const keyMode = 0o640;

export const netdevPath = (name: string): string => `${folder}/50-corium-${name}.netdev`;

/** The overlay of a netdev of ours; undefined: it is another file. */
export const overlayOf = (path: string): string | undefined => /(?:^|\/)50-corium-(.+)\.netdev$/.exec(path)?.[1];

export function keyFiles(spec: WireguardSpec): readonly KeyFile[] {
  const field = `wireguard[${spec.name}].privateKey`;
  const base = { path: privateKeyPath(spec.name), madeMark: madeMarkPath(spec.name) };
  const own: KeyFile =
    spec.privateKey !== undefined
      ? { ...base, field }
      : spec.privateKeyFrom !== undefined
        ? { ...base, field: `${field}From` }
        : base;
  const shared = spec.peers.flatMap((peer, at): KeyFile[] => {
    const base = `wireguard[${spec.name}].peers[${at}].presharedKey`;
    if (peer.presharedKey !== undefined) return [{ path: sharedKeyPath(spec.name, peer), field: base }];
    if (peer.presharedKeyFrom !== undefined) return [{ path: sharedKeyPath(spec.name, peer), field: `${base}From` }];
    return [];
  });
  return [own, ...shared];
}

export const privateKeyPath = (name: string): string => `${keyFolder.path}/${name}.key`;

/** Empty; there as long as the key beside it is one that this node made, and none that an earlier document gave it. */
export const madeMarkPath = (name: string): string => `${keyFolder.path}/${name}.made`;

/** Named after the peer, not its place in the list: reordering peers must not rewrite the netdev and drop sessions. */
function sharedKeyPath(name: string, peer: WireguardPeer): string {
  const digest = sha256Of(peer.publicKey).slice(0, 12);
  return `${keyFolder.path}/${name}-${digest}.psk`;
}

/** Everything about the overlays; keys that come from the document stand as `<secret:FIELD>`, made ones do not appear. */
export function renderWireguard(document: Pick<Document, "role" | "wireguard">): readonly RenderedFile[] {
  return document.wireguard.flatMap((spec) => [
    ...keyFiles(spec).flatMap(({ path, field }): RenderedFile[] =>
      field === undefined ? [] : [{ path, mode: keyMode, owner, content: `<secret:${field}>\n` }],
    ),
    ...renderInterface(spec, document.role),
  ]);
}

/** By the public key of the peer that shares it. */
export const sharedKeyPaths = ({ name, peers }: WireguardSpec): ReadonlyMap<string, string> =>
  new Map(
    peers
      .filter(({ presharedKey, presharedKeyFrom }) => presharedKey !== undefined || presharedKeyFrom !== undefined)
      .map((peer) => [peer.publicKey, sharedKeyPath(name, peer)]),
  );

export function renderInterface(spec: WireguardSpec, role: Role | undefined): readonly RenderedFile[] {
  return [
    { path: netdevPath(spec.name), mode: keyMode, owner, content: renderNetdev(spec) },
    { path: `${folder}/50-corium-${spec.name}.network`, mode: 0o644, content: renderNetwork(spec) },
    ...(role === undefined ? [] : [renderDropIn(spec, role)]),
  ];
}

function renderNetdev(spec: WireguardSpec): string {
  const sections = [
    ["[NetDev]", `Name=${spec.name}`, "Kind=wireguard", ...line("MTUBytes", spec.mtu)],
    [
      "[WireGuard]",
      `PrivateKeyFile=${privateKeyPath(spec.name)}`,
      ...line("ListenPort", spec.listenPort),
      // Without it networkd sets the peers up but no routes to what is behind them.
      "RouteTable=main",
    ],
    ...spec.peers.map((peer) => [
      "[WireGuardPeer]",
      `PublicKey=${peer.publicKey}`,
      ...(peer.presharedKey === undefined && peer.presharedKeyFrom === undefined
        ? []
        : [`PresharedKeyFile=${sharedKeyPath(spec.name, peer)}`]),
      ...[...new Set(peer.allowedIPs.map(maskCidr))].map((range) => `AllowedIPs=${range}`),
      ...line("Endpoint", peer.endpoint),
      ...line("PersistentKeepalive", peer.persistentKeepalive),
    ]),
  ];
  return file(sections);
}

function renderNetwork(spec: WireguardSpec): string {
  return file([
    ["[Match]", `Name=${spec.name}`],
    // The machine is online without its overlay; only k0s waits for that, by corium-overlay@.service.
    ["[Link]", "RequiredForOnline=no"],
    [
      "[Network]",
      ...spec.address.map((address) => `Address=${address}`),
      "LinkLocalAddressing=no",
      "IPv6AcceptRA=no",
      "DHCP=no",
    ],
  ]);
}

/** k0s does not start without the interface: it would bind, advertise and put into certificates another address. */
function renderDropIn(spec: WireguardSpec, role: Role): RenderedFile {
  const service = role === "worker" ? "k0sworker.service" : "k0scontroller.service";
  const unit = `corium-overlay@${spec.name}.service`;
  return {
    path: `/etc/systemd/system/${service}.d/50-corium-overlay-${spec.name}.conf`,
    mode: 0o644,
    content: file([["[Unit]", `Requires=${unit}`, `After=${unit}`]]),
  };
}

const line = (key: string, value: string | number | undefined): string[] =>
  value === undefined ? [] : [`${key}=${value}`];

const file = (sections: readonly (readonly string[])[]): string =>
  `${["# Written by corium from the node's document.", ...sections.map((each) => each.join("\n"))].join("\n\n")}\n`;
