/**
 * The private segment of several machines, as a further card on it sees it: VRRP advertisements (RFC 3768, RFC 5798) and
 * who answers ARP (RFC 826) for an address. QEMU's `-netdev socket,mcast=` carries one Ethernet frame in each datagram.
 */
import { GROUP } from "./argv.ts";
import { arpFrame, ETHERTYPE_ARP, ETHERTYPE_IPV4, ipOf, joinSegment, macOf } from "./frames.ts";

/** Of the card that asks; no machine has it. */
const OWN_MAC = "52:54:00:ff:ff:fe";
const PROTOCOL_VRRP = 112;
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
export const arpRequest = (address: string, asker: string): Buffer =>
  arpFrame(1, { mac: OWN_MAC, address: asker }, { mac: "", address });

export async function openWire(port: number): Promise<Wire> {
  const adverts: Advert[] = [];
  const claims: Claim[] = [];
  const packets: Packet[] = [];
  const timers = new Set<ReturnType<typeof setInterval>>();
  const socket = await joinSegment(port, (frame) => {
    const atMs = performance.now();
    for (const seen of readFrame(frame)) {
      if (seen.kind === "advert") adverts.push({ atMs, ...seen });
      else if (seen.kind === "claim") claims.push({ atMs, ...seen });
      else packets.push({ atMs, ...seen });
    }
  });
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
