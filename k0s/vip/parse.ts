/** Packets and texts that say who holds, or announces, a virtual address. */
import { Address4, Address6 } from "ip-address";
import { z } from "zod";

/** One VRRP advertisement (RFC 3768 section 5.1, RFC 9568 section 5.1: the first four bytes are the same). */
export interface Advertisement {
  /** Of the sender. */
  readonly from: string;
  readonly virtualRouterId: number;
  readonly priority: number;
}

const hex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const textOf6 = (bytes: Uint8Array): string => Address6.fromBigInt(BigInt(`0x${hex(bytes)}`)).correctForm();
const macOf = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":");

/** IPv4 with its IP header (raw(7)); IPv6 without, its sender beside it. Undefined for what is no advertisement. */
export function parseAdvertisement(bytes: Uint8Array, from?: Uint8Array): Advertisement | undefined {
  const headerBytes = from === undefined ? ((bytes[0] ?? 0) & 0x0f) * 4 : 0;
  if (from === undefined && (headerBytes < 20 || (bytes[0] ?? 0) >> 4 !== 4 || bytes[9] !== 112)) return undefined;
  const [kind, virtualRouterId, priority] = bytes.subarray(headerBytes, headerBytes + 3);
  if (kind === undefined || virtualRouterId === undefined || priority === undefined) return undefined;
  const [version, type] = [kind >> 4, kind & 0x0f];
  if (type !== 1 || version < 2 || version > 3) return undefined;
  const sender = from === undefined ? [...bytes.subarray(12, 16)].join(".") : textOf6(from);
  return { from: sender, virtualRouterId, priority };
}

const ALL_ONES_16 = 0xffn << 120n;

/** The group that whoever has the address hears (RFC 4291, section 2.7.1), and the question to it (RFC 4861, 4.3). */
export function solicitation(
  address: string,
  mac: string,
): { readonly group: Uint8Array; readonly message: Uint8Array } {
  const target = bytesOf6(address);
  const group = bytesOf6Value((ALL_ONES_16 | (0x02n << 112n) | (0x01n << 32n) | (0xffn << 24n)) as bigint);
  group.set(target.subarray(13), 13);
  const source = mac.split(":").map((byte) => Number.parseInt(byte, 16));
  return { group, message: Uint8Array.from([135, 0, 0, 0, 0, 0, 0, 0, ...target, 1, 1, ...source]) };
}

const bytesOf6 = (address: string): Uint8Array => bytesOf6Value(new Address6(address).bigInt());
const bytesOf6Value = (value: bigint): Uint8Array =>
  Uint8Array.from({ length: 16 }, (_, at) => Number((value >> BigInt(8 * (15 - at))) & 0xffn));

/** The link address in an answer about this very address (RFC 4861, section 4.4); undefined for any other packet. */
export function parseNeighbour(bytes: Uint8Array, address: string): string | undefined {
  if (bytes[0] !== 136 || bytes.length < 24 || hex(bytes.subarray(8, 24)) !== hex(bytesOf6(address))) return undefined;
  for (let at = 24; at + 8 <= bytes.length; at += (bytes[at + 1] ?? 0) * 8) {
    if (bytes[at] === 2 && bytes[at + 1] === 1) return macOf(bytes.subarray(at + 2, at + 8));
    if (bytes[at + 1] === 0) return undefined;
  }
  return undefined;
}

/** The link addresses that arping(8) prints, lower case, each once. Its exit status depends on its options. */
export function parseArping(stdout: string): readonly string[] {
  const found = [...stdout.matchAll(/^\w+ reply from \S+ \[([0-9A-Fa-f:]{17})\]/gm)].map(([, mac = ""]) => mac);
  return [...new Set(found.map((mac) => mac.toLowerCase()))];
}

const heard = z.array(z.strictObject({ from: z.string(), virtualRouterId: z.number(), priority: z.number() }));
const answered = z.array(z.string().regex(/^[0-9a-f:]{17}$/));

const jsonOf = (stdout: string): unknown => {
  try {
    return JSON.parse(stdout);
  } catch {
    return undefined;
  }
};

/** What `corium link vrrp` prints. */
export const parseHeard = (stdout: string): readonly Advertisement[] | undefined =>
  heard.safeParse(jsonOf(stdout)).data;

/** What `corium link ask` prints. */
export const parseAnswered = (stdout: string): readonly string[] | undefined => answered.safeParse(jsonOf(stdout)).data;

/** Is the address one of this machine's? `text`: of /proc/net/if_inet6 for IPv6, else of /proc/net/fib_trie. */
export function isLocal(address: string, text: string): boolean {
  if (address.includes(":")) {
    const wanted = hex(bytesOf6(address));
    return text.split("\n").some((line) => line.startsWith(wanted));
  }
  const wanted = new Address4(address).correctForm().replaceAll(".", "\\.");
  return new RegExp(`\\|-- ${wanted}\\n(?:\\s+/\\d+ (?!host LOCAL).*\\n)*\\s+/32 host LOCAL`).test(text);
}
