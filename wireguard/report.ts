import { parseCidr } from "../config/ip.ts";
import type { InterfaceStatus, LinkStatus, PeerStatus } from "./model.ts";
import type { PeerVerdict } from "./peers.ts";
import { judgePeer, peerIn } from "./peers.ts";
import type { OverlayMemory, WatchedOverlay } from "./watch.ts";
import { remembered } from "./watch.ts";

/** `NodeAnswer.overlay[].peers[]`. */
export interface PeerReport extends PeerVerdict {
  readonly publicKey: string;
  readonly endpoint?: string;
  /** ISO 8601. */
  readonly lastHandshake?: string;
  readonly receivedBytes?: number;
  readonly sentBytes?: number;
}

/** `NodeAnswer.overlay[]`. */
export interface OverlayReport {
  readonly name: string;
  readonly up: boolean;
  readonly addresses: readonly string[];
  readonly publicKey?: string;
  readonly listenPort?: number;
  readonly peers: readonly PeerReport[];
}

/** All addresses on it, and the link up: what k0s needs. Whether a peer answers is another question. */
export function isLinkUp(wanted: readonly string[], link: LinkStatus | undefined): boolean {
  if (link === undefined || !link.isUp || !link.isConfigured) return false;
  return wanted.every((address) => link.addresses.some((other) => isSameCidr(address, other)));
}

function isSameCidr(a: string, b: string): boolean {
  const [left, right] = [parseCidr(a), parseCidr(b)];
  if (left === undefined || right === undefined) return a === b;
  return left.ip.family === right.ip.family && left.ip.value === right.ip.value && left.prefix === right.prefix;
}

export interface OverlaySeen {
  readonly link: LinkStatus | undefined;
  /** Absent: no such interface. */
  readonly status: InterfaceStatus | undefined;
  readonly keptKey: string | undefined;
  readonly memory: OverlayMemory;
  readonly nowSeconds: number;
}

/** The document's peers in its order, then those that somebody else gave the interface. */
export function reportOverlay(wanted: WatchedOverlay, seen: OverlaySeen): OverlayReport {
  const { link, status, keptKey, memory, nowSeconds } = seen;
  const publicKey = status?.publicKey ?? keptKey;
  const declared =
    status === undefined
      ? []
      : wanted.peers.map((peer) => {
          const found = peerIn([status], wanted.name, peer.publicKey);
          const history = remembered(memory, wanted.name, peer.publicKey);
          return reportPeer(
            peer.publicKey,
            found,
            judgePeer({ ...wanted, ownKey: publicKey }, peer, found, history, nowSeconds),
          );
        });
  const strangers = (status?.peers ?? [])
    .filter((found) => !wanted.peers.some((peer) => peer.publicKey === found.publicKey))
    .map((found) => reportPeer(found.publicKey, found, { state: "unknown", cause: "the document does not have it" }));
  return {
    name: wanted.name,
    up: isLinkUp(wanted.address, link),
    addresses: wanted.address,
    ...(publicKey === undefined ? {} : { publicKey }),
    ...(status?.listenPort === undefined ? {} : { listenPort: status.listenPort }),
    peers: [...declared, ...strangers],
  };
}

function reportPeer(publicKey: string, status: PeerStatus | undefined, verdict: PeerVerdict): PeerReport {
  const handshake = status?.latestHandshake;
  return {
    publicKey,
    ...(status?.endpoint === undefined ? {} : { endpoint: status.endpoint }),
    ...(handshake === undefined ? {} : { lastHandshake: new Date(handshake * 1000).toISOString() }),
    ...(status === undefined ? {} : { receivedBytes: status.receivedBytes, sentBytes: status.sentBytes }),
    ...verdict,
  };
}
