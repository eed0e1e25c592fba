/** Ethernet frames on a private segment: QEMU's `-netdev socket,mcast=` carries one of them in each datagram. */
import { createSocket, type Socket } from "node:dgram";
import { GROUP } from "./argv.ts";

const HOST = "127.0.0.1";
export const ETHERTYPE_IPV4 = 0x0800;
export const ETHERTYPE_ARP = 0x0806;

export const macOf = (bytes: Buffer): string => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
export const ipOf = (bytes: Buffer): string => [...bytes].join(".");
export const macBytes = (mac: string): Buffer => Buffer.from(mac.replaceAll(":", ""), "hex");
export const ipBytes = (address: string): Buffer => Buffer.from(address.split(".").map(Number));

interface Card {
  readonly mac: string;
  readonly address: string;
}

/** RFC 826; operation 1 asks all whose the address is, 2 answers one. */
export function arpFrame(operation: 1 | 2, from: Card, to: Card): Buffer {
  const frame = Buffer.alloc(60);
  if (operation === 1) frame.fill(0xff, 0, 6);
  else macBytes(to.mac).copy(frame, 0);
  macBytes(from.mac).copy(frame, 6);
  frame.writeUInt16BE(ETHERTYPE_ARP, 12);
  // Ethernet, IPv4, addresses of 6 and 4 bytes.
  frame.set([0, 1, 8, 0, 6, 4, 0, operation], 14);
  macBytes(from.mac).copy(frame, 22);
  ipBytes(from.address).copy(frame, 28);
  if (operation === 2) macBytes(to.mac).copy(frame, 32);
  ipBytes(to.address).copy(frame, 38);
  return frame;
}

/** A further card on the segment; what it sends comes back to it as well. */
export async function joinSegment(port: number, onFrame: (frame: Buffer) => void): Promise<Socket> {
  const socket = createSocket({ type: "udp4", reuseAddr: true });
  socket.on("message", onFrame);
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  socket.once("error", reject);
  socket.bind(port, GROUP, () => {
    socket.addMembership(GROUP, HOST);
    socket.setMulticastInterface(HOST);
    socket.setMulticastLoopback(true);
    resolve(undefined);
  });
  await promise;
  return socket;
}
