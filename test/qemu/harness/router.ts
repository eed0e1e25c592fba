/**
 * What lies between two sites: their gateways, and a carrier that lets nothing through but WireGuard. The far site is
 * behind NAT: its packets come from addresses of the carrier, and nobody reaches it who was not called from there.
 */
import type { Socket } from "node:dgram";
import { GROUP } from "./argv.ts";
import { arpFrame, ETHERTYPE_ARP, ETHERTYPE_IPV4, ipBytes, ipOf, joinSegment, macBytes, macOf } from "./frames.ts";

const UDP = 17;
const WIREGUARD_PORT = 51820;
const FIRST_PORT = 40_000;

export interface Segment {
  readonly lanPort: number;
  /** Of the site: `192.168.77.1`. */
  readonly gateway: string;
}

export interface Passed {
  readonly atMs: number;
  /** As its sender sent it. */
  readonly source: string;
  readonly target: string;
  readonly bytes: number;
}

export interface Refused extends Omit<Passed, "bytes"> {
  readonly protocol: number;
}

interface Mapping {
  readonly address: string;
  readonly port: number;
  /** Whom it sent to: nobody else gets in, not even whom it knows by another address. */
  readonly called: Set<string>;
}

export interface Router {
  readonly passed: readonly Passed[];
  /** What is no WireGuard, or was not called for. */
  readonly refused: readonly Refused[];
  clear(): void;
  /** The carrier gives the far site another address: what it sent from before is forgotten. */
  moveFarSite(address: string): void;
  /** Larger IP packets are lost without a word; `undefined`: none are. */
  limit(bytes: number | undefined): void;
  close(): void;
}

export interface Ipv4 {
  readonly source: string;
  readonly target: string;
  readonly protocol: number;
  /** Of its header. */
  readonly headerBytes: number;
  readonly bytes: number;
}

/** The packet in an Ethernet frame; undefined: something else. */
export function readIpv4(frame: Buffer): Ipv4 | undefined {
  if (frame.length < 34 || frame.readUInt16BE(12) !== ETHERTYPE_IPV4) return undefined;
  const packet = frame.subarray(14);
  return {
    source: ipOf(packet.subarray(12, 16)),
    target: ipOf(packet.subarray(16, 20)),
    protocol: packet[9] ?? 0,
    headerBytes: ((packet[0] ?? 0) & 15) * 4,
    bytes: packet.readUInt16BE(2),
  };
}

/** RFC 1071. */
function checksum(header: Buffer): number {
  let sum = 0;
  for (let at = 0; at < header.length; at += 2) sum += header.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

export interface Rewrite {
  readonly source?: { readonly address: string; readonly port: number };
  readonly target?: { readonly address: string; readonly port: number };
  readonly macs: { readonly from: string; readonly to: string };
}

/** A frame with a UDP packet, a hop further and from or to another address; without a UDP checksum, which IPv4 allows. */
export function forward(frame: Buffer, { source, target, macs }: Rewrite): Buffer {
  const next = Buffer.from(frame);
  macBytes(macs.to).copy(next, 0);
  macBytes(macs.from).copy(next, 6);
  const packet = next.subarray(14);
  const { headerBytes } = readIpv4(next) ?? { headerBytes: 20 };
  packet.writeUInt8((packet[8] ?? 1) - 1, 8);
  if (source !== undefined) {
    ipBytes(source.address).copy(packet, 12);
    packet.writeUInt16BE(source.port, headerBytes);
  }
  if (target !== undefined) {
    ipBytes(target.address).copy(packet, 16);
    packet.writeUInt16BE(target.port, headerBytes + 2);
  }
  packet.writeUInt16BE(0, headerBytes + 6);
  packet.writeUInt16BE(0, 10);
  packet.writeUInt16BE(checksum(packet.subarray(0, headerBytes)), 10);
  return next;
}

interface Port {
  readonly socket: Socket;
  readonly segment: Segment;
  readonly mac: string;
  /** MAC by address. */
  readonly neighbours: Map<string, string>;
}

const macAt = (frame: Buffer, at: number): string => macOf(frame.subarray(at, at + 6));

async function openPort(segment: Segment, mac: string, onFrame: (frame: Buffer, port: Port) => void): Promise<Port> {
  let port: Port | undefined;
  const socket = await joinSegment(segment.lanPort, (frame) => {
    // Its own come back as well.
    if (port === undefined || frame.length < 34 || macAt(frame, 6) === mac) return;
    if (frame.readUInt16BE(12) === ETHERTYPE_ARP) answerArp(port, frame);
    else if (macAt(frame, 0) === mac) onFrame(frame, port);
  });
  port = { socket, segment, mac, neighbours: new Map() };
  return port;
}

const send = ({ socket, segment }: Port, frame: Buffer): void => {
  socket.send(frame, segment.lanPort, GROUP);
};

function answerArp(port: Port, frame: Buffer): void {
  const { segment, mac, neighbours } = port;
  const sender = { mac: macAt(frame, 22), address: ipOf(frame.subarray(28, 32)) };
  neighbours.set(sender.address, sender.mac);
  const isQuestion = frame.readUInt16BE(20) === 1 && ipOf(frame.subarray(38, 42)) === segment.gateway;
  if (isQuestion) send(port, arpFrame(2, { mac, address: segment.gateway }, sender));
}

export async function openRouter(near: Segment, far: Segment, farAddress: string): Promise<Router> {
  const passed: Passed[] = [];
  const refused: Refused[] = [];
  let [address, limitBytes] = [farAddress, undefined as number | undefined];
  /** Port of the carrier's address → who sent from it. */
  let mappings = new Map<number, Mapping>();
  let nextPort = FIRST_PORT;

  function deliver(frame: Buffer, out: Port, target: string, rewrite: Omit<Rewrite, "macs">): void {
    const to = out.neighbours.get(target);
    // Lost, as the first packet to a new neighbour often is; its sender tries again.
    if (to === undefined)
      send(out, arpFrame(1, { mac: out.mac, address: out.segment.gateway }, { mac: "", address: target }));
    else send(out, forward(frame, { ...rewrite, macs: { from: out.mac, to } }));
  }

  function onFrame(frame: Buffer, port: Port): void {
    const packet = readIpv4(frame);
    if (packet === undefined) return;
    const { source, target, protocol, bytes, headerBytes } = packet;
    const [atMs, at] = [performance.now(), 14 + headerBytes];
    const [sourcePort, targetPort] = protocol === UDP ? [frame.readUInt16BE(at), frame.readUInt16BE(at + 2)] : [0, 0];
    const mapping = port === inner ? undefined : mappings.get(targetPort);
    const isAnswer = mapping?.called.has(source) === true && target === address;
    const isWireguard = port === inner ? targetPort === WIREGUARD_PORT : isAnswer;
    if (!isWireguard) {
      refused.push({ atMs, source, target, protocol });
      return;
    }
    passed.push({ atMs, source, target, bytes });
    if (limitBytes !== undefined && bytes > limitBytes) return;
    if (mapping !== undefined) deliver(frame, inner, mapping.address, { target: mapping });
    else deliver(frame, outer, target, { source: { address, port: mappedPort(source, sourcePort, target) } });
  }

  function mappedPort(sourceAddress: string, port: number, target: string): number {
    for (const [mapped, { address: known, port: knownPort, called }] of mappings) {
      if (known !== sourceAddress || knownPort !== port) continue;
      called.add(target);
      return mapped;
    }
    nextPort += 1;
    mappings.set(nextPort, { address: sourceAddress, port, called: new Set([target]) });
    return nextPort;
  }

  const outer = await openPort(near, "52:54:00:ff:fe:01", onFrame);
  const inner = await openPort(far, "52:54:00:ff:fe:02", onFrame);
  return {
    passed,
    refused,
    clear: () => {
      for (const list of [passed, refused]) list.length = 0;
    },
    moveFarSite: (moved) => {
      address = moved;
      mappings = new Map();
    },
    limit: (bytes) => {
      limitBytes = bytes;
    },
    close: () => {
      for (const { socket } of [outer, inner]) socket.close();
    },
  };
}
