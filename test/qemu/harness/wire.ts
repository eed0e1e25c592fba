/**
 * The private segment of several machines, as a further card on it sees it: VRRP advertisements (RFC 3768, RFC 5798) and
 * who answers ARP (RFC 826) for an address. QEMU's `-netdev socket,mcast=` carries one Ethernet frame in each datagram.
 */
import { createSocket } from "node:dgram";
import { GROUP } from "./argv.ts";

const HOST = "127.0.0.1";
/** Of the card that asks; no machine has it. */
const OWN_MAC = "52:54:00:ff:ff:fe";
const ETHERTYPE_IPV4 = 0x0800;
const ETHERTYPE_ARP = 0x0806;
const PROTOCOL_VRRP = 112;
const ARP_REQUEST = 1;
const ARP_REPLY = 2;

export interface Advert {
  /** `performance.now()`. */
  readonly atMs: number;
  readonly mac: string;
  readonly source: string;
  readonly target: string;
  readonly virtualRouterId: number;
  /** 0: the holder lets go. */
  readonly priority: number;
  readonly addresses: readonly string[];
}

/** Somebody said that an address is theirs: an answer, or an announcement to all (gratuitous). */
export interface Claim {
  readonly atMs: number;
  readonly mac: string;
  readonly address: string;
  readonly isAnswer: boolean;
}

export interface Packet {
  readonly atMs: number;
  readonly source: string;
  readonly target: string;
  readonly protocol: number;
  /** Of UDP and TCP. */
  readonly targetPort?: number;
}

export interface Wire {
  readonly adverts: readonly Advert[];
  readonly claims: readonly Claim[];
  /** IPv4 packets, in order. */
  readonly packets: readonly Packet[];
  /** Forgets what was seen so far. */
  clear(): void;
  /** Asks all machines who has the address, every `everyMs`, until the returned function is called. */
  ask(address: string, asker: string, everyMs: number): () => void;
  close(): void;
}

const macOf = (bytes: Buffer): string => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
const ipOf = (bytes: Buffer): string => [...bytes].join(".");
const macBytes = (mac: string): Buffer => Buffer.from(mac.replaceAll(":", ""), "hex");
const ipBytes = (address: string): Buffer => Buffer.from(address.split(".").map(Number));

export type Seen =
  | ({ readonly kind: "advert" } & Omit<Advert, "atMs">)
  | ({ readonly kind: "claim" } & Omit<Claim, "atMs">)
  | ({ readonly kind: "packet" } & Omit<Packet, "atMs">);

/** What one frame says; nothing of what is neither IPv4 nor ARP. */
export function readFrame(frame: Buffer): readonly Seen[] {
  if (frame.length < 34) return [];
  const mac = macOf(frame.subarray(6, 12));
  const type = frame.readUInt16BE(12);
  if (type === ETHERTYPE_ARP && frame.length >= 42) {
    const operation = frame.readUInt16BE(20);
    const [address, target] = [ipOf(frame.subarray(28, 32)), ipOf(frame.subarray(38, 42))];
    const isAnnouncement = address === target;
    if (operation !== ARP_REPLY && !isAnnouncement) return [];
    return [{ kind: "claim", mac: macOf(frame.subarray(22, 28)), address, isAnswer: !isAnnouncement }];
  }
  if (type !== ETHERTYPE_IPV4) return [];
  const packet = frame.subarray(14);
  const header = ((packet[0] ?? 0) & 15) * 4;
  const protocol = packet[9] ?? 0;
  const [source, target] = [ipOf(packet.subarray(12, 16)), ipOf(packet.subarray(16, 20))];
  const hasPorts = (protocol === 6 || protocol === 17) && packet.length >= header + 4;
  const ports = hasPorts ? { targetPort: packet.readUInt16BE(header + 2) } : {};
  const seen: Seen[] = [{ kind: "packet", source, target, protocol, ...ports }];
  const vrrp = packet.subarray(header);
  if (protocol === PROTOCOL_VRRP && vrrp.length >= 8) {
    const count = vrrp[3] ?? 0;
    const addresses = Array.from({ length: count }, (_, at) => ipOf(vrrp.subarray(8 + at * 4, 12 + at * 4)));
    seen.push({
      kind: "advert",
      mac,
      source,
      target,
      virtualRouterId: vrrp[1] ?? 0,
      priority: vrrp[2] ?? 0,
      addresses,
    });
  }
  return seen;
}

/** `who has ADDRESS?`, to all. */
export function arpRequest(address: string, asker: string): Buffer {
  const frame = Buffer.alloc(60);
  frame.fill(0xff, 0, 6);
  macBytes(OWN_MAC).copy(frame, 6);
  frame.writeUInt16BE(ETHERTYPE_ARP, 12);
  // Ethernet, IPv4, addresses of 6 and 4 bytes.
  frame.set([0, 1, 8, 0, 6, 4], 14);
  frame.writeUInt16BE(ARP_REQUEST, 20);
  macBytes(OWN_MAC).copy(frame, 22);
  ipBytes(asker).copy(frame, 28);
  ipBytes(address).copy(frame, 38);
  return frame;
}

export async function openWire(port: number): Promise<Wire> {
  const adverts: Advert[] = [];
  const claims: Claim[] = [];
  const packets: Packet[] = [];
  const socket = createSocket({ type: "udp4", reuseAddr: true });
  const timers = new Set<ReturnType<typeof setInterval>>();
  socket.on("message", (frame) => {
    const atMs = performance.now();
    for (const seen of readFrame(frame)) {
      if (seen.kind === "advert") adverts.push({ atMs, ...seen });
      else if (seen.kind === "claim") claims.push({ atMs, ...seen });
      else packets.push({ atMs, ...seen });
    }
  });
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  socket.once("error", reject);
  socket.bind(port, GROUP, () => {
    socket.addMembership(GROUP, HOST);
    socket.setMulticastInterface(HOST);
    socket.setMulticastLoopback(true);
    resolve(undefined);
  });
  await promise;
  return {
    adverts,
    claims,
    packets,
    clear: () => {
      for (const list of [adverts, claims, packets]) list.length = 0;
    },
    ask: (address, asker, everyMs) => {
      const frame = arpRequest(address, asker);
      const timer = setInterval(() => {
        socket.send(frame, port, GROUP);
      }, everyMs);
      timers.add(timer);
      return () => {
        clearInterval(timer);
        timers.delete(timer);
      };
    },
    close: () => {
      for (const timer of timers) clearInterval(timer);
      socket.close();
    },
  };
}
