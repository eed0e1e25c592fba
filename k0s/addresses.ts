import type { Document } from "../config/document.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";

const isV6 = (address: string): boolean => address.includes(":");

const withoutPrefix = (address: string): string => address.split("/", 1)[0] ?? address;

/** Of several overlay addresses the first of podCIDR's family is the node address. */
export function overlayAddress(document: Document): string | undefined {
  const overlay = document.wireguard.find((link) => link.nodeAddress);
  if (overlay === undefined) return undefined;
  const addresses = overlay.address.map(withoutPrefix);
  return addresses.find((address) => isV6(address) === isV6(document.network.podCIDR)) ?? addresses[0];
}

export const runsControlPlane = (document: Document): boolean => document.role !== "worker";

/**
 * What a node with the document and this own address (of its VRRP interface, or of its default route; absent where
 * k0s may choose) records when it enters service. An overlay that is the node address wins; only VRRP stays on
 * the link its peers are on.
 */
export function addressesToRecord(document: Document, own: string | undefined): RecordedAddresses {
  const address = overlayAddress(document) ?? own;
  if (address === undefined) return {};
  const isUnicast = document.ha.enabled && document.ha.unicastPeers.length > 0 && own !== undefined;
  return {
    ...(runsControlPlane(document) ? { apiAddress: address, peerAddress: address } : {}),
    nodeIp: address,
    ...(isUnicast ? { unicastSourceIp: own } : {}),
  };
}
