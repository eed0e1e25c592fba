/**
 * Two things that no program of the image does: hearing VRRP, and asking a link who has an IPv6 address. Raw sockets,
 * through libc as in host/notify.ts, never blocking. Needs CAP_NET_RAW; ip(7), ipv6(7), raw(7).
 */
import { dlopen, ptr } from "bun:ffi";
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";

/** One packet as it came, for a parser. */
export interface RawPacket {
  readonly family: 4 | 6;
  /** IPv4: with its IP header, which says from whom. IPv6: what is behind it. */
  readonly bytes: Uint8Array;
  /** IPv6: the 16 bytes of the sender's address. */
  readonly from?: Uint8Array;
}

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_RAW_CLOEXEC_NONBLOCK = 3 | 0o2000000 | 0o4000;
const SOL_SOCKET = 1;
const SO_BINDTODEVICE = 25;
const IPPROTO_IP = 0;
const IP_ADD_MEMBERSHIP = 35;
const IPPROTO_IPV6 = 41;
const IPV6_MULTICAST_IF = 17;
const IPV6_MULTICAST_HOPS = 18;
const IPV6_MULTICAST_LOOP = 19;
const IPV6_JOIN_GROUP = 20;
const IPPROTO_ICMPV6 = 58;
const IPPROTO_VRRP = 112;
const PACKET_BYTES = 2048;
const SOCKADDR_IN6_BYTES = 28;
const POLL_MS = 20;

const openLibc = () =>
  dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
    sendto: { args: ["i32", "ptr", "u64", "i32", "ptr", "u32"], returns: "i64" },
    recvfrom: { args: ["i32", "ptr", "u64", "i32", "ptr", "ptr"], returns: "i64" },
    if_nametoindex: { args: ["ptr"], returns: "u32" },
    close: { args: ["i32"], returns: "i32" },
  }).symbols;

type Libc = ReturnType<typeof openLibc>;

interface RawSocket {
  readonly family: 4 | 6;
  readonly descriptor: number;
}

const cString = (text: string): Uint8Array => new TextEncoder().encode(`${text}\0`);
const int32 = (value: number): Uint8Array => new Uint8Array(new Int32Array([value]).buffer);

function setOption(libc: Libc, { descriptor }: RawSocket, level: number, name: number, value: Uint8Array): boolean {
  return libc.setsockopt(descriptor, level, name, ptr(value), value.length) === 0;
}

/** A raw socket that hears one link only. */
function openOn(libc: Libc, device: string, family: 4 | 6, protocol: number): Result<RawSocket, AppError> {
  const descriptor = libc.socket(family === 4 ? AF_INET : AF_INET6, SOCK_RAW_CLOEXEC_NONBLOCK, protocol);
  if (descriptor < 0) return fail("raw-socket", "a raw socket can't be opened", { hint: "this needs root" });
  const socket = { family, descriptor };
  if (setOption(libc, socket, SOL_SOCKET, SO_BINDTODEVICE, cString(device))) return ok(socket);
  libc.close(descriptor);
  return fail("raw-socket", `a raw socket can't be bound to ${device}`);
}

function receive(libc: Libc, { family, descriptor }: RawSocket): RawPacket | undefined {
  const buffer = new Uint8Array(PACKET_BYTES);
  const sender = new Uint8Array(SOCKADDR_IN6_BYTES);
  const senderBytes = int32(SOCKADDR_IN6_BYTES);
  const count = Number(libc.recvfrom(descriptor, ptr(buffer), PACKET_BYTES, 0, ptr(sender), ptr(senderBytes)));
  if (count < 0) return undefined;
  const bytes = buffer.slice(0, count);
  return family === 4 ? { family, bytes } : { family, bytes, from: sender.slice(8, 24) };
}

async function listen(
  libc: Libc,
  sockets: readonly RawSocket[],
  until: number,
  onPacket: (packet: RawPacket) => void,
): Promise<void> {
  for (;;) {
    for (const socket of sockets) {
      for (let packet = receive(libc, socket); packet !== undefined; packet = receive(libc, socket)) onPacket(packet);
    }
    if (performance.now() >= until) return;
    await Bun.sleep(POLL_MS);
  }
}

/** VRRP of both families that reaches this machine: to 224.0.0.18 and ff02::12, or to itself; nothing sent to others. */
export async function hearVrrp(
  device: string,
  durationMs: number,
  onPacket: (packet: RawPacket) => void,
): Promise<Result<void, AppError>> {
  const libc = openLibc();
  const index = libc.if_nametoindex(ptr(cString(device)));
  if (index === 0) return fail("no-link", `there is no link '${device}'`);
  const opened = openOn(libc, device, 4, IPPROTO_VRRP);
  if (!opened.ok) return opened;
  const sockets = [opened.value];
  try {
    // struct ip_mreqn: group, own address (any), link.
    const group = Uint8Array.from([224, 0, 0, 18, 0, 0, 0, 0, ...int32(index)]);
    if (!setOption(libc, opened.value, IPPROTO_IP, IP_ADD_MEMBERSHIP, group)) {
      return fail("raw-socket", `${device} takes no multicast`);
    }
    // A kernel without IPv6 has nothing to hear there.
    const six = openOn(libc, device, 6, IPPROTO_VRRP);
    if (six.ok) {
      sockets.push(six.value);
      const all = Uint8Array.from([0xff, 2, ...Array.from({ length: 13 }, () => 0), 0x12, ...int32(index)]);
      setOption(libc, six.value, IPPROTO_IPV6, IPV6_JOIN_GROUP, all);
    }
    await listen(libc, sockets, performance.now() + durationMs, onPacket);
    return ok(undefined);
  } finally {
    for (const { descriptor } of sockets) libc.close(descriptor);
  }
}

/**
 * Sends `message` (ICMPv6; the kernel fills in its checksum and takes the link's own address) to a multicast group of the
 * link, twice, a second apart, and hears all ICMPv6 of that link meanwhile and a second longer.
 */
export async function askLink(
  device: string,
  request: { readonly group: Uint8Array; readonly message: Uint8Array },
  onPacket: (packet: RawPacket) => void,
): Promise<Result<void, AppError>> {
  const libc = openLibc();
  const index = libc.if_nametoindex(ptr(cString(device)));
  if (index === 0) return fail("no-link", `there is no link '${device}'`);
  const opened = openOn(libc, device, 6, IPPROTO_ICMPV6);
  if (!opened.ok) return opened;
  const socket = opened.value;
  try {
    setOption(libc, socket, IPPROTO_IPV6, IPV6_MULTICAST_IF, int32(index));
    // Neighbour discovery is only taken from the same link (RFC 4861, section 7.1).
    setOption(libc, socket, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, int32(255));
    // This machine shall not ask itself.
    setOption(libc, socket, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, int32(0));
    const to = new Uint8Array(SOCKADDR_IN6_BYTES);
    to[0] = AF_INET6;
    to.set(request.group, 8);
    to.set(int32(index), 24);
    for (let round = 0; round < 2; round += 1) {
      const { message } = request;
      const sent = libc.sendto(socket.descriptor, ptr(message), message.length, 0, ptr(to), to.length);
      if (Number(sent) < 0) return fail("raw-socket", `${device} has no address to ask from`);
      await listen(libc, [socket], performance.now() + 1_000, onPacket);
    }
    return ok(undefined);
  } finally {
    libc.close(socket.descriptor);
  }
}
