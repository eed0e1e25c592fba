import { createSocket } from "node:dgram";
import { expect, test } from "bun:test";
import { GROUP } from "./argv.ts";
import { forward, openRouter, readIpv4 } from "./router.ts";
import { freePort } from "./vm.ts";

const NEAR = { address: "192.168.77.11", mac: "52:54:00:20:00:11" };
const FAR = { address: "10.88.0.14", mac: "52:54:00:20:00:14" };
const CARRIER = "203.0.113.7";

const macBytes = (mac: string): Buffer => Buffer.from(mac.replaceAll(":", ""), "hex");
const ip = (address: string): number[] => address.split(".").map(Number);

function udp(from: string, to: string, ports: readonly [number, number], toMac: string, fromMac: string): Buffer {
  const frame = Buffer.alloc(14 + 28 + 32);
  macBytes(toMac).copy(frame, 0);
  macBytes(fromMac).copy(frame, 6);
  frame.writeUInt16BE(0x0800, 12);
  frame.set([0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0, ...ip(from), ...ip(to)], 14);
  frame.writeUInt16BE(ports[0], 34);
  frame.writeUInt16BE(ports[1], 36);
  frame.writeUInt16BE(40, 38);
  return frame;
}

/** What a host does that gets it: over all of the header the sum is 0xffff. */
function sumOf(header: Buffer): number {
  let sum = 0;
  for (let at = 0; at < header.length; at += 2) sum += header.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return sum;
}

test("a forwarded packet has another sender, one hop less and a right checksum", () => {
  const next = forward(udp(FAR.address, NEAR.address, [51820, 51820], "52:54:00:ff:fe:02", FAR.mac), {
    source: { address: CARRIER, port: 40_001 },
    macs: { from: "52:54:00:ff:fe:01", to: NEAR.mac },
  });
  expect(readIpv4(next)).toMatchObject({ source: CARRIER, target: NEAR.address, protocol: 17 });
  expect([next[22], next.readUInt16BE(34), sumOf(next.subarray(14, 34))]).toEqual([63, 40_001, 0xffff]);
});

/** A host on a segment, which says once that it is there. */
async function openHost(lanPort: number, { address, mac }: typeof NEAR) {
  const frames: Buffer[] = [];
  const socket = createSocket({ type: "udp4", reuseAddr: true });
  socket.on("message", (frame) => {
    if (frame.subarray(0, 6).equals(macBytes(mac))) frames.push(frame);
  });
  await new Promise<void>((resolve) => {
    socket.bind(lanPort, GROUP, () => {
      socket.addMembership(GROUP, "127.0.0.1");
      socket.setMulticastInterface("127.0.0.1");
      resolve();
    });
  });
  const send = (frame: Buffer): void => socket.send(frame, lanPort, GROUP);
  const announce = Buffer.alloc(60, 0);
  announce.fill(0xff, 0, 6);
  macBytes(mac).copy(announce, 6);
  announce.set([8, 6, 0, 1, 8, 0, 6, 4, 0, 1], 12);
  macBytes(mac).copy(announce, 22);
  announce.set(ip(address), 28);
  announce.set(ip(address), 38);
  send(announce);
  const next = async (): Promise<Buffer> => {
    while (frames.length === 0) await Bun.sleep(5);
    return frames.shift() ?? Buffer.alloc(0);
  };
  return { send, next, frames, close: () => socket.close() };
}

test("only WireGuard passes, the far site is reached only where it called from, and a move makes it call again", async () => {
  const [nearPort, farPort] = [await freePort(), await freePort()];
  const router = await openRouter(
    { lanPort: nearPort, gateway: "192.168.77.1" },
    { lanPort: farPort, gateway: "10.88.0.1" },
    CARRIER,
  );
  const [near, far] = [await openHost(nearPort, NEAR), await openHost(farPort, FAR)];
  const gateways = { near: "52:54:00:ff:fe:01", far: "52:54:00:ff:fe:02" };
  await Bun.sleep(50);

  near.send(udp(NEAR.address, CARRIER, [51820, 40_001], gateways.near, NEAR.mac));
  far.send(udp(FAR.address, NEAR.address, [51820, 6443], gateways.far, FAR.mac));
  far.send(udp(FAR.address, NEAR.address, [51820, 51820], gateways.far, FAR.mac));
  const came = await near.next();
  expect(readIpv4(came)).toMatchObject({ source: CARRIER, target: NEAR.address });
  expect(router.refused.map(({ source, target }) => [source, target])).toEqual([
    [NEAR.address, CARRIER],
    [FAR.address, NEAR.address],
  ]);
  near.send(udp(NEAR.address, CARRIER, [51820, came.readUInt16BE(34)], gateways.near, NEAR.mac));
  expect(readIpv4(await far.next())).toMatchObject({ source: NEAR.address, target: FAR.address });

  // The hub moved: whoever called it by its old address hears it again only after a call to the new one.
  const moved = { ...NEAR, address: "192.168.77.21" };
  near.send(udp(moved.address, CARRIER, [51820, came.readUInt16BE(34)], gateways.near, NEAR.mac));
  while (router.refused.at(-1)?.source !== moved.address) await Bun.sleep(5);
  expect(far.frames).toEqual([]);
  far.send(udp(FAR.address, moved.address, [51820, 51820], gateways.far, FAR.mac));
  near.send(udp(moved.address, CARRIER, [51820, came.readUInt16BE(34)], gateways.near, NEAR.mac));
  expect(readIpv4(await far.next())).toMatchObject({ source: moved.address, target: FAR.address });

  router.moveFarSite("203.0.113.8");
  near.send(udp(NEAR.address, CARRIER, [51820, came.readUInt16BE(34)], gateways.near, NEAR.mac));
  far.send(udp(FAR.address, NEAR.address, [51820, 51820], gateways.far, FAR.mac));
  expect(readIpv4(await near.next())).toMatchObject({ source: "203.0.113.8" });
  expect(far.frames).toEqual([]);

  router.clear();
  router.limit(50);
  far.send(udp(FAR.address, NEAR.address, [51820, 51820], gateways.far, FAR.mac));
  while (router.passed.length === 0) await Bun.sleep(5);
  await Bun.sleep(50);
  expect(near.frames).toEqual([]);
  for (const each of [near, far, router]) each.close();
});
