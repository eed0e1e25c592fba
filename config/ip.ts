import { Address4, Address6 } from "ip-address";

/** 4 or 6, and the address as a number. */
export interface Ip {
  readonly family: 4 | 6;
  readonly value: bigint;
}

/** An address with its prefix length, and the network it lies in. */
export interface Cidr {
  readonly ip: Ip;
  readonly prefix: number;
  readonly first: bigint;
  readonly last: bigint;
  readonly hasHostBits: boolean;
}

/** `ffff:` six times and an IPv4 address; INET6_ADDRSTRLEN without its NUL. The library takes its time over longer text. */
const LONGEST = 45;

/** No prefix, no zone, no leading zeros (`010.9.0.7` is octal to some programs). */
export function parseIp(text: string): Ip | undefined {
  if (text.length > LONGEST || /[/%\s]/.test(text)) return undefined;
  if (Address4.isValid(text)) return { family: 4, value: new Address4(text).bigInt() };
  if (Address6.isValid(text)) return { family: 6, value: new Address6(text).bigInt() };
  return undefined;
}

export function parseCidr(text: string): Cidr | undefined {
  const match = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text);
  const ip = match?.[1] === undefined ? undefined : parseIp(match[1]);
  if (match === null || ip === undefined) return undefined;
  const bits = ip.family === 4 ? 32 : 128;
  const prefix = Number(match[2]);
  if (prefix > bits) return undefined;
  const host = (1n << BigInt(bits - prefix)) - 1n;
  const first = ip.value & ~host;
  return { ip, prefix, first, last: first | host, hasHostBits: first !== ip.value };
}

export const overlaps = (a: Cidr, b: Cidr): boolean =>
  a.ip.family === b.ip.family && a.first <= b.last && b.first <= a.last;

export const contains = (range: Cidr, ip: Ip): boolean =>
  range.ip.family === ip.family && range.first <= ip.value && ip.value <= range.last;

/** `10.9.0.7/24` → `10.9.0.0/24`; text that is no CIDR stays. */
export function maskCidr(text: string): string {
  const cidr = parseCidr(text);
  if (cidr === undefined || !cidr.hasHostBits) return text;
  const address = cidr.ip.family === 4 ? Address4.fromBigInt(cidr.first) : Address6.fromBigInt(cidr.first);
  return `${address.correctForm()}/${cidr.prefix}`;
}

/** Equal networks have equal keys, however they are written. */
export const cidrKey = (cidr: Cidr): string => `${cidr.ip.family}:${cidr.first}/${cidr.prefix}`;

/** Whether one machine can have it: neither unspecified, nor loopback, nor multicast or above. */
export function isHostAddress({ family, value }: Ip): boolean {
  if (family === 6) return value > 1n && value >> 120n !== 0xffn;
  const first = value >> 24n;
  return first !== 0n && first !== 127n && first < 224n;
}
