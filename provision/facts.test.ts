import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { defaultRoute, isNic, parseLinks, parseMemory, parseNameservers, parseRoutes } from "./facts.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const fixture = (name: string): Promise<string> => Bun.file(join(import.meta.dir, "testdata", name)).text();

describe("facts", () => {
  test("links and their addresses, from captured output", async () => {
    const links = parseLinks(await fixture("ip-j-addr.json"));
    const eth0 = links.ok ? links.value.find((link) => link.name === "eth0") : undefined;
    expect(eth0).toMatchObject({ isUp: true, hasCarrier: true, isLoopback: false });
    expect(eth0?.addresses[0]).toMatchObject({ family: 4, address: "192.0.2.2", prefix: 24, scope: "global" });
    expect(links.ok && links.value.filter(isNic).map((link) => link.name)).toEqual(["eth0"]);
  });

  test("an address on its way out, as keepalived makes an IPv6 one, is told from those that stay", async () => {
    const links = parseLinks(await fixture("ip-j-addr-passing.json"));
    const passing = (links.ok ? links.value : []).flatMap(({ addresses }) =>
      addresses.filter(({ isPassing }) => isPassing),
    );
    expect(passing.map(({ address }) => address).toSorted()).toEqual(["10.0.0.77", "fd00::77"]);
  });

  test("the default route is the IPv4 one with the lowest metric", async () => {
    const four = parseRoutes(await fixture("ip-j-route-4.json"), 4);
    const six = parseRoutes(await fixture("ip-j-route-6.json"), 6);
    if (!four.ok || !six.ok) throw new Error("fixture not parsed");
    expect(defaultRoute([...six.value, ...four.value])).toMatchObject({ family: 4, gateway: "192.0.2.1" });
    expect(defaultRoute(six.value)).toMatchObject({ gateway: "fd00::1", device: "eth0" });
    const [first] = four.value;
    if (first === undefined) throw new Error("no route");
    const other = { ...first, device: "eth1", metric: 100 };
    expect(defaultRoute([other, first])?.device).toBe("eth0");
  });

  test("a link that vanished while ip listed it leaves {} behind and is skipped", () => {
    expect(parseLinks('[{},{"ifname":"eth0","addr_info":[{}]}]')).toMatchObject({
      ok: true,
      value: [{ name: "eth0", addresses: [] }],
    });
  });

  test("whatever a program prints, a parser answers", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        parseLinks(text);
        parseRoutes(text, 4);
        parseMemory(text);
        parseNameservers(text);
      }),
    );
  });

  test("memory and name servers", () => {
    expect(parseMemory("MemTotal:        2014544 kB\nMemFree: 1 kB\n")).toBe(2_014_544 * 1024);
    expect(parseNameservers("# x\nnameserver 10.0.2.3\nsearch a\nnameserver fe80::1%eth0\n")).toEqual([
      "10.0.2.3",
      "fe80::1%eth0",
    ]);
  });
});
