/**
 * How it stands with a peer, and why, as far as this side can tell: WireGuard itself answers nobody whose key it does not
 * know, so that a wrong key and a dead peer look alike on the wire. Pure.
 */
import type { WireguardPeer, WireguardSpec } from "../config/document.ts";
import { parseCidr } from "../config/ip.ts";
import { splitEndpoint } from "./endpoints.ts";
import type { InterfaceStatus, PeerStatus } from "./model.ts";

/** A session ends after so long (REJECT_AFTER_TIME); whoever has something to say makes a new one before. */
const SESSION_SECONDS = 180;
/** What an interface gets that is not told otherwise. */
export const DEFAULT_MTU = 1420;

/**
 * - `up`: heard within a session's life. `narrow`: that too, but packets of the full size do not get through.
 * - `idle`: nothing is sent to it, so nothing is heard. `waiting`: no endpoint is known, it has to call.
 * - `unresolved`, `silent`, `unreachable`, `unfinished`: never heard; `stale`: not heard any more. The cause says more.
 * - `missing`: of the document but not of the interface. `unknown`: the other way round.
 */
export type PeerState =
  | "up"
  | "narrow"
  | "idle"
  | "waiting"
  | "unresolved"
  | "silent"
  | "unreachable"
  | "unfinished"
  | "stale"
  | "missing"
  | "unknown";

/** What one look does not tell: found out over time, or by asking (wireguard/watch.ts). */
export interface PeerHistory {
  /** Bytes sent when it was first seen without a session; absent while it has one. */
  readonly sentAtLoss?: number;
  /** Does the machine behind its endpoint answer ping? Many are told not to. */
  readonly answersPing?: boolean;
  /** Do packets as large as the overlay takes reach it? */
  readonly takesFullSize?: boolean;
}

export interface PeerVerdict {
  readonly state: PeerState;
  /** In words; absent where there is nothing to explain. */
  readonly cause?: string;
}

/** States that a person should look at. */
const TROUBLED = new Set<PeerState>([
  "narrow",
  "unresolved",
  "silent",
  "unreachable",
  "unfinished",
  "stale",
  "missing",
]);
export const isTroubled = (state: PeerState): boolean => TROUBLED.has(state);

export const peerIn = (
  interfaces: readonly InterfaceStatus[],
  name: string,
  publicKey: string,
): PeerStatus | undefined =>
  interfaces.find((each) => each.name === name)?.peers.find((peer) => peer.publicKey === publicKey);

export const hasSession = (status: PeerStatus | undefined, nowSeconds: number): boolean =>
  status?.latestHandshake !== undefined && nowSeconds - status.latestHandshake < SESSION_SECONDS;

export function judgePeer(
  { mtu, ownKey }: Pick<WireguardSpec, "mtu"> & { readonly ownKey?: string | undefined },
  peer: Pick<WireguardPeer, "endpoint" | "publicKey">,
  status: PeerStatus | undefined,
  history: PeerHistory,
  nowSeconds: number,
): PeerVerdict {
  if (status === undefined) {
    // The kernel passes over such a peer without a word.
    const cause =
      peer.publicKey === ownKey
        ? "its public key is this node's own: the document needs that of the other side"
        : "the interface does not have it: the netdev was changed, or wg was used by hand";
    return { state: "missing", cause };
  }
  if (hasSession(status, nowSeconds)) {
    if (history.takesFullSize !== false) return { state: "up" };
    const cause = `packets of ${mtu ?? DEFAULT_MTU} bytes do not get through, small ones do: a link on the way carries less; a smaller mtu for the overlay on both sides`;
    return { state: "narrow", cause };
  }
  if (status.latestHandshake === undefined) return judgeUnheard(peer, status, history);
  // A tunnel that nobody uses makes no handshakes; only what is sent without an answer is a fault.
  if (history.sentAtLoss === undefined || status.sentBytes <= history.sentAtLoss) {
    return { state: "idle", cause: "nothing is sent to it" };
  }
  const minutes = Math.floor((nowSeconds - status.latestHandshake) / 60);
  const cause = `not heard for ${minutes} min although this node sends to ${status.endpoint ?? "it"}${pingWords(history)}`;
  return { state: "stale", cause };
}

function judgeUnheard(
  { endpoint }: Pick<WireguardPeer, "endpoint">,
  status: PeerStatus,
  history: PeerHistory,
): PeerVerdict {
  if (status.receivedBytes > 0) {
    const cause = "it calls, but no handshake is completed: the preshared keys differ, or what is sent to it is lost";
    return { state: "unfinished", cause };
  }
  if (status.endpoint === undefined) {
    if (endpoint === undefined)
      return { state: "waiting", cause: "it has no endpoint here: this node waits for its call" };
    const host = splitEndpoint(endpoint)?.host ?? endpoint;
    return { state: "unresolved", cause: `no address is known for '${host}'; networkd goes on asking` };
  }
  if (status.sentBytes === 0) return { state: "idle", cause: "nothing was sent to it yet" };
  const what = `no handshake ever with ${status.endpoint}`;
  if (history.answersPing === false) return { state: "unreachable", cause: `${what}${pingWords(history)}` };
  const how = "a wrong key on either side, another port, or something on the way drops it";
  return { state: "silent", cause: `${what}${pingWords(history)}: ${how}` };
}

function pingWords({ answersPing }: PeerHistory): string {
  if (answersPing === undefined) return "";
  return answersPing ? ", whose machine answers ping" : ", whose machine does not answer ping either";
}

/** Where a packet of full size can be sent to a peer: an address that is its alone, in the overlay's own network if any. */
export function probeTarget(
  { address }: Pick<WireguardSpec, "address">,
  { allowedIPs }: Pick<WireguardPeer, "allowedIPs">,
): string | undefined {
  const own = address.flatMap((cidr) => parseCidr(cidr) ?? []);
  const hosts = allowedIPs.flatMap((text) => {
    const cidr = parseCidr(text);
    return cidr !== undefined && cidr.prefix === (cidr.ip.family === 4 ? 32 : 128) ? [{ text, ip: cidr.ip }] : [];
  });
  const isNear = ({ ip }: (typeof hosts)[number]): boolean =>
    own.some((network) => {
      const shift = BigInt((network.ip.family === 4 ? 32 : 128) - network.prefix);
      return network.ip.family === ip.family && network.ip.value >> shift === ip.value >> shift;
    });
  return (hosts.find(isNear) ?? hosts[0])?.text.split("/")[0];
}

/** For people: keys are long, and an endpoint names its machine. */
export const peerName = ({ publicKey, endpoint }: Pick<WireguardPeer, "publicKey" | "endpoint">): string =>
  `${publicKey.slice(0, 8)}…${endpoint === undefined ? "" : ` (${endpoint})`}`;
