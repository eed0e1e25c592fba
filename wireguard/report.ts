import { parseCidr } from "../config/ip.ts";
import type { InterfaceStatus, LinkStatus } from "./model.ts";

/** `NodeAnswer.overlay[]`. */
export interface OverlayReport {
  readonly name: string;
  readonly up: boolean;
  readonly addresses: readonly string[];
  readonly publicKey?: string;
  readonly listenPort?: number;
  readonly peers: readonly {
    readonly publicKey: string;
    readonly endpoint?: string;
    /** ISO 8601. */
    readonly lastHandshake?: string;
  }[];
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

export function reportOverlay(
  wanted: { readonly name: string; readonly address: readonly string[] },
  link: LinkStatus | undefined,
  status: InterfaceStatus | undefined,
  keptPublicKey: string | undefined,
): OverlayReport {
  const publicKey = status?.publicKey ?? keptPublicKey;
  return {
    name: wanted.name,
    up: isLinkUp(wanted.address, link),
    addresses: wanted.address,
    ...(publicKey === undefined ? {} : { publicKey }),
    ...(status?.listenPort === undefined ? {} : { listenPort: status.listenPort }),
    peers: (status?.peers ?? []).map((peer) => ({
      publicKey: peer.publicKey,
      ...(peer.endpoint === undefined ? {} : { endpoint: peer.endpoint }),
      ...(peer.latestHandshake === undefined
        ? {}
        : { lastHandshake: new Date(peer.latestHandshake * 1000).toISOString() }),
    })),
  };
}
