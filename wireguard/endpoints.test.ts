import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { fakeHost } from "../test/support/fake-host.ts";
import { nextAddress, parseAhosts, splitEndpoint } from "./endpoints.ts";
import type { OverlayMemory } from "./watch.ts";
import { readInterfaces, refreshEndpoints } from "./watch/driver.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const key = "STD2rTn0C9aHb+DNkcYnXFbNPo2gHX9/sCGGnafboTE=";
const spec = (endpoint: string) => ({
  name: "wg0",
  peers: [{ publicKey: key, endpoint, allowedIPs: ["10.10.0.2/32"] }],
});
const nowMs = 1_800_000_000_000;

/** wg with one peer that answered so many seconds ago; the resolver gives these addresses. */
function machine(options: { endpoint: string; ageSeconds: number; resolved: readonly string[] }) {
  return fakeHost({
    nowMs,
    programs: {
      wg: ({ argv }) =>
        argv[1] === "show"
          ? `wg0\tPRIVATE\tPUBLIC\t51820\toff\nwg0\t${key}\t(none)\t${options.endpoint}\t10.10.0.2/32\t${nowMs / 1000 - options.ageSeconds}\t1\t1\toff\n`
          : "",
      getent: () => options.resolved.map((address) => `${address}  STREAM hub\n${address}  DGRAM\n`).join(""),
    },
  });
}
const refresh = async (host: ReturnType<typeof machine>, endpoint: string, memory: OverlayMemory = []) =>
  refreshEndpoints(host, [spec(endpoint)], await readInterfaces(host), memory);
/** It was silent before, and more was sent since. */
const unanswered: OverlayMemory = [{ overlay: "wg0", publicKey: key, sentAtLoss: 0 }];
const commands = (host: ReturnType<typeof machine>): string[] =>
  host.calls.filter((call) => /^exec (wg set|getent)/.test(call)).map((call) => call.slice(5));

describe("refreshEndpoints", () => {
  test("B035, B036: a peer whose name moved is followed, without touching the netdev", async () => {
    const host = machine({ endpoint: "192.0.2.1:51820", ageSeconds: 200, resolved: ["192.0.2.9"] });
    expect(await refresh(host, "hub.example.net:51820")).toEqual([
      "overlay wg0: peer hub.example.net moved from 192.0.2.1 to 192.0.2.9",
    ]);
    expect(commands(host)).toEqual([
      "getent ahosts hub.example.net",
      `wg set wg0 peer ${key} endpoint 192.0.2.9:51820`,
    ]);
  });

  test("a peer that answers, or has a fixed address, or did not resolve yet, is left alone", async () => {
    const fresh = machine({ endpoint: "192.0.2.1:51820", ageSeconds: 100, resolved: ["192.0.2.9"] });
    await refresh(fresh, "hub.example.net:51820");
    const fixed = machine({ endpoint: "192.0.2.1:51820", ageSeconds: 900, resolved: ["192.0.2.9"] });
    await refresh(fixed, "192.0.2.1:51820");
    const waiting = machine({ endpoint: "(none)", ageSeconds: 900, resolved: ["192.0.2.9"] });
    await refresh(waiting, "hub.example.net:51820");
    expect([fresh, fixed, waiting].flatMap(commands)).toEqual([]);
  });

  test("same address, or no answer of the resolver: nothing is changed", async () => {
    for (const resolved of [["192.0.2.1"], []]) {
      const host = machine({ endpoint: "192.0.2.1:51820", ageSeconds: 900, resolved });
      expect(await refresh(host, "hub.example.net:51820")).toEqual([]);
    }
  });

  test("both families get their turn, and IPv6 is bracketed", async () => {
    const host = machine({ endpoint: "192.0.2.1:51820", ageSeconds: 900, resolved: ["192.0.2.1", "2001:db8::1"] });
    expect(await refresh(host, "hub.example.net:51820", unanswered)).toEqual([]);
    expect(commands(host).at(-1)).toBe(`wg set wg0 peer ${key} endpoint [2001:db8::1]:51820`);
    expect(nextAddress("2001:db8:0::1", ["192.0.2.1", "2001:db8::1"])).toBe("192.0.2.1");
  });
});

test("an idle peer stays at the one of its addresses that it has: nothing failed there", async () => {
  const host = machine({ endpoint: "192.0.2.1:51820", ageSeconds: 900, resolved: ["192.0.2.1", "2001:db8::1"] });
  const idle: OverlayMemory = [{ overlay: "wg0", publicKey: key, sentAtLoss: 1 }];
  expect(await refresh(host, "hub.example.net:51820", idle)).toEqual([]);
  expect(commands(host)).toEqual(["getent ahosts hub.example.net"]);
});

test("a peer that roamed and is heard there is left where it is, whatever its name says", async () => {
  const host = machine({ endpoint: "198.51.100.7:40000", ageSeconds: 30, resolved: ["192.0.2.1"] });
  expect(await refresh(host, "hub.example.net:51820", unanswered)).toEqual([]);
  expect(commands(host)).toEqual([]);
});

test("parsers take any text", () => {
  expect(splitEndpoint("[2001:db8::1]:51820")).toEqual({ host: "2001:db8::1", port: 51820 });
  expect(parseAhosts("fe80::1%eth0 STREAM\n192.0.2.1 STREAM x\n192.0.2.1 DGRAM\n")).toEqual(["192.0.2.1"]);
  fc.assert(fc.property(fc.string(), (text) => void [splitEndpoint(text), parseAhosts(text)]));
});
