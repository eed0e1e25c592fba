import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fakeHost } from "../../test/support/fake-host.ts";
import { hearAdvertisements, isHeldHere, whoAnswers } from "./driver.ts";
import { isLocal, parseAdvertisement, parseArping, parseNeighbour, solicitation } from "./parse.ts";
import type { VipDecision, VipLook } from "./watch.ts";
import { askAgainMs, noteAnswers, noteHolding } from "./watch.ts";

const sample = (name: string): string => readFileSync(join(import.meta.dir, "testdata", name), "utf8");
const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));
const vip = "10.0.0.50";

describe("what a link says", () => {
  test("arping: every machine that answers, each once, whatever the exit status", () => {
    expect(parseArping(sample("arping-two-holders.txt"))).toEqual(["aa:78:ba:5f:16:28", "22:c2:e7:3f:89:3f"]);
    expect(parseArping(sample("arping-one-other.txt"))).toEqual(["aa:78:ba:5f:16:28"]);
    expect(parseArping(sample("arping-detection.txt"))).toEqual(["aa:78:ba:5f:16:28"]);
    expect(parseArping(sample("arping-nobody.txt"))).toEqual([]);
  });

  /** As a raw socket gives it: a header of 20 bytes, then VRRP of version 2. */
  const ipv4 = "45c0 0028 0001 0000 ff70 0000 0a00 0002 e000 0012";
  test("an advertisement of each version, with who sent it", () => {
    expect(parseAdvertisement(bytes(`${ipv4} 2133c801 0101 0000 0a000032`))).toEqual({
      from: "10.0.0.2",
      virtualRouterId: 51,
      priority: 200,
    });
    const from = bytes("fe80 0000 0000 0000 5054 00ff fe12 3456");
    expect(parseAdvertisement(bytes("313c6401 0064 0000"), from)).toEqual({
      from: "fe80::5054:ff:fe12:3456",
      virtualRouterId: 60,
      priority: 100,
    });
  });

  test("what is no advertisement is none: another protocol, another type, a packet that is cut off", () => {
    expect(parseAdvertisement(bytes(`${ipv4.replace("ff70", "ff06")} 2133c801`))).toBeUndefined();
    expect(parseAdvertisement(bytes(`${ipv4} 2233c801`))).toBeUndefined();
    expect(parseAdvertisement(bytes(ipv4))).toBeUndefined();
    fc.assert(
      fc.property(fc.uint8Array(), fc.option(fc.uint8Array(), { nil: undefined }), (packet, from) => {
        parseAdvertisement(packet, from?.length === 16 ? from : undefined);
        parseNeighbour(packet, "fd00::50");
      }),
    );
  });

  test("IPv6: the question goes to the group of the address, and only an answer about it counts", () => {
    const { group, message } = solicitation("fd00::ab:cd12:3450", "52:54:00:00:00:01");
    expect(Buffer.from(group).toString("hex")).toBe("ff0200000000000000000001ff123450");
    expect(message).toEqual(bytes("8700 0000 0000 0000 fd00 0000 0000 0000 0000 00ab cd12 3450 0101 5254 0000 0001"));
    const target = "fd00 0000 0000 0000 0000 0000 0000 0050";
    const answer = bytes(`8800 0000 6000 0000 ${target} 0201 5254 0000 0002`);
    expect(parseNeighbour(answer, "fd00:0::50")).toBe("52:54:00:00:00:02");
    expect(parseNeighbour(answer, "fd00::51")).toBeUndefined();
    expect(parseNeighbour(bytes(`8800 0000 6000 0000 ${target} 0200`), "fd00::50")).toBeUndefined();
  });

  test("the kernel's own list says whether the address is here; a prefix of it is another address", () => {
    const trie = sample("fib-trie.txt");
    for (const address of ["10.0.0.50", "10.0.0.2", "127.0.0.1"])
      expect([address, isLocal(address, trie)]).toEqual([address, true]);
    for (const address of ["10.0.0.5", "10.0.0.0", "10.0.0.255", "10.0.0.51"])
      expect([address, isLocal(address, trie)]).toEqual([address, false]);
    const six = sample("if-inet6.txt");
    expect(isLocal("fd00:0:0::50", six)).toBe(true);
    expect(isLocal("fd00::5", six)).toBe(false);
  });
});

describe("asking", () => {
  test("with an own address every holder is heard; without, as duplicate address detection does", async () => {
    const host = fakeHost({ programs: { arping: () => ({ exitCode: 1, stdout: sample("arping-two-holders.txt") }) } });
    expect(await whoAnswers(host, { device: "eth0", address: vip, own: "10.0.0.2" })).toHaveLength(2);
    await whoAnswers(host, { device: "eth0", address: vip });
    expect(host.calls).toEqual([
      "exec arping -b -s 10.0.0.2 -c 2 -w 3 -I eth0 10.0.0.50",
      "exec arping -D -c 2 -w 3 -I eth0 10.0.0.50",
    ]);
  });

  test("a link that can't be asked, or a program that fails, is not an answer", async () => {
    const host = fakeHost({
      programs: {
        arping: () => ({ exitCode: 2, stderr: "arping: Device nope not available.\n" }),
        corium: () => ({ exitCode: 1, stderr: "corium link: a raw socket can't be opened\n" }),
      },
    });
    expect(await whoAnswers(host, { device: "nope", address: vip })).toBeUndefined();
    expect(await whoAnswers(host, { device: "eth0", address: "fd00::50" })).toBeUndefined();
    expect(await hearAdvertisements(host, "eth0")).toBeUndefined();
    host.programs.set("corium", () => "not json");
    expect(await hearAdvertisements(host, "eth0")).toBeUndefined();
    expect(await isHeldHere(host, vip)).toBeUndefined();
  });
});

/** Look after look; the events by kind. */
function live(...looks: readonly (VipLook | boolean)[]): { readonly kinds: string[]; readonly last: VipDecision } {
  let last: VipDecision = { memory: {}, events: [] };
  const kinds: string[] = [];
  for (const look of looks) {
    last = typeof look === "boolean" ? noteHolding(last.memory, look, vip) : noteAnswers(last.memory, look, vip);
    kinds.push(...last.events.map(({ kind }) => kind));
  }
  return { kinds, last };
}
const here = { isHeld: true, others: [] };
const there = { isHeld: false, others: ["52:54:00:00:00:02"] };
const both = { isHeld: true, others: ["52:54:00:00:00:02"] };
const nobody = { isHeld: false, others: [] };

describe("holders", () => {
  test("B042: a second holder is an error when two looks see it, and its end is said", () => {
    const { kinds, last } = live(true, here, here, both, both, both, here, here);
    expect(kinds).toEqual(["vip-held", "vip-contested", "vip-settled"]);
    expect(last.events[0]?.message).toContain("one holder again: this node");
    expect(live(true, both, both).last.events[0]).toMatchObject({
      severity: "error",
      message: expect.stringContaining("this node and 52:54:00:00:00:02"),
    });
  });

  test("two other machines that have it are seen from a third", () => {
    const others = ["52:54:00:00:00:02", "52:54:00:00:00:03"];
    const look = { isHeld: false, others };
    expect(live(false, look, look).last.events[0]?.message).toContain("52:54:00:00:00:02 and 52:54:00:00:00:03");
  });

  test("a failover is an event of who takes it and who leaves it, and of nothing else", () => {
    expect(live(true, here, here, false, nobody, there, there, there).kinds).toEqual(["vip-held", "vip-left"]);
    expect(live(false, there, there, true, both, here, here).kinds).toEqual(["vip-held"]);
  });

  test("nobody answers: a warning, once", () => {
    expect(live(false, nobody, nobody, nobody).kinds).toEqual(["vip-unheld"]);
  });

  test("the link is asked once a minute while all is well, never more often than each three seconds", () => {
    expect(askAgainMs(live(true, here, here).last.memory)).toBe(60_000);
    expect(askAgainMs(live(true, both, both).last.memory)).toBe(15_000);
    for (const looks of [[], [true], [true, here], [false, there, there, nobody]] as const) {
      expect(askAgainMs(live(...looks).last.memory)).toBeLessThan(60_000);
    }
  });
});
