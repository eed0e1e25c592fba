import { expect, test } from "bun:test";
import { arpRequest, openWire, readFrame } from "./wire.ts";
import { freePort } from "./vm.ts";

/** keepalived 2.3.3 with `advert_int 1`, as it went over such a segment. */
const ADVERT = Buffer.from(
  "01005e00001252540000000b0800" +
    "45c000280001000 0ff700000c0a84d0be0000012".replaceAll(" ", "") +
    "2133c80101010000c0a84d6473336372337431320000",
  "hex",
);

test("an advertisement of VRRP: who sent it, router, priority, addresses", () => {
  expect(readFrame(ADVERT)).toEqual([
    { kind: "packet", source: "192.168.77.11", target: "224.0.0.18", protocol: 112 },
    {
      kind: "advert",
      mac: "52:54:00:00:00:0b",
      source: "192.168.77.11",
      target: "224.0.0.18",
      virtualRouterId: 51,
      priority: 200,
      addresses: ["192.168.77.100"],
    },
  ]);
});

test("an answer and an announcement are claims of an address, a question is none", () => {
  const question = arpRequest("192.168.77.100", "192.168.77.250");
  expect(readFrame(question)).toEqual([]);
  const answer = Buffer.from(question);
  answer.writeUInt16BE(2, 20);
  expect(readFrame(answer)).toEqual([
    { kind: "claim", mac: "52:54:00:ff:ff:fe", address: "192.168.77.250", isAnswer: true },
  ]);
  expect(readFrame(arpRequest("192.168.77.100", "192.168.77.100"))).toMatchObject([{ isAnswer: false }]);
});

test("what is cut short, and what is neither IPv4 nor ARP, says nothing", () => {
  expect(readFrame(ADVERT.subarray(0, 33))).toEqual([]);
  const other = Buffer.from(ADVERT);
  other.writeUInt16BE(0x86dd, 12);
  expect(readFrame(other)).toEqual([]);
});

test("two cards on one segment see each other's frames", async () => {
  const port = await freePort();
  const [here, there] = [await openWire(port), await openWire(port)];
  const stop = there.ask("192.168.77.100", "192.168.77.100", 20);
  while (here.claims.length === 0) await Bun.sleep(10);
  stop();
  expect(here.claims[0]).toMatchObject({ mac: "52:54:00:ff:ff:fe", address: "192.168.77.100" });
  here.close();
  there.close();
});
