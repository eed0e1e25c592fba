/** Which addresses are recorded when the node enters service (provision: Addresses). Pure; called once. */
import { Address4, Address6 } from "ip-address";
import type { Document } from "../config/document.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { Link, LinkAddress, Network } from "./facts.ts";
import { addressesToRecord } from "../k0s/addresses.ts";
import { defaultRoute, globalAddresses, isNic } from "./facts.ts";

/**
 * Overlay first; with HA the VRRP interface's own address; with several NICs the default route's; else k0s chooses.
 * The virtual address is never the node's: it moves away.
 */
export function recordAddresses(document: Document, facts: Network): RecordedAddresses {
  const vip = document.ha.virtualIP?.split("/")[0];
  const own = document.ha.enabled ? vrrpAddress(document, facts, vip) : multiHomedAddress(facts, vip);
  return addressesToRecord(document, own);
}

/** The interface that VRRP runs on: the one named, else the default route's (as k0s chooses). */
export function vrrpLink(document: Document, facts: Network): Link | undefined {
  const name = document.ha.interface ?? defaultRoute(facts.routes)?.device;
  return facts.links.find((link) => link.name === name);
}

function vrrpAddress(document: Document, facts: Network, vip: string | undefined): string | undefined {
  const link = vrrpLink(document, facts);
  return link === undefined || vip === undefined ? undefined : ownAddressOn(link, vip);
}

/** Of the family of the virtual address, and not that one. */
export const ownAddressOn = (link: Link, vip: string): string | undefined =>
  pick(globalAddresses(link, familyOf(vip)), vip)?.address;

function multiHomedAddress(facts: Network, vip: string | undefined): string | undefined {
  const nics = facts.links.filter((link) => isNic(link) && globalAddresses(link).length > 0);
  if (nics.length < 2) return undefined;
  const route = defaultRoute(facts.routes);
  const link = nics.find((candidate) => candidate.name === route?.device);
  return link === undefined ? undefined : pick(globalAddresses(link, route?.family), vip)?.address;
}

/** What was recorded and is on no interface now. Overlay addresses among them too. */
export function goneAddresses(recorded: RecordedAddresses, present: readonly string[]): readonly string[] {
  const wanted = new Set(Object.values(recorded).filter((address): address is string => address !== undefined));
  return [...wanted].filter((address) => !present.some((other) => isSameAddress(address, other)));
}

/** One that stays; only for want of it another one. Never the virtual one. */
function pick(addresses: readonly LinkAddress[], vip: string | undefined): LinkAddress | undefined {
  const own = addresses.filter((address) => vip === undefined || !isSameAddress(address.address, vip));
  return own.find(({ isPassing }) => isPassing !== true) ?? own[0];
}

export const familyOf = (addressOrCidr: string): 4 | 6 => (addressOrCidr.includes(":") ? 6 : 4);

/** `fd00::1` and `fd00:0::1` are one address. */
export function isSameAddress(a: string, b: string): boolean {
  if (familyOf(a) !== familyOf(b)) return false;
  return familyOf(a) === 4
    ? new Address4(a).correctForm() === new Address4(b).correctForm()
    : new Address6(a).correctForm() === new Address6(b).correctForm();
}

/** Do two CIDRs (or addresses) share any address? Of different families never. */
export function rangesOverlap(a: string, b: string): boolean {
  if (familyOf(a) !== familyOf(b)) return false;
  const [x, y] = familyOf(a) === 4 ? [new Address4(a), new Address4(b)] : [new Address6(a), new Address6(b)];
  return x.isInSubnet(y as never) || y.isInSubnet(x as never);
}

/** First and last address of the network that an interface address with prefix lies in. */
export function boundaryAddresses(cidr: string): { readonly first: string; readonly last: string } {
  const address = familyOf(cidr) === 4 ? new Address4(cidr) : new Address6(cidr);
  return { first: address.startAddress().correctForm(), last: address.endAddress().correctForm() };
}
