import { describe, expect, test } from "bun:test";
import type { Document } from "../../config/document.ts";
import { appError } from "../../kit/app-error.ts";
import { err, ok } from "../../kit/result.ts";
import { makeDocument } from "../../test/support/document-fixture.ts";
import { fakeHost } from "../../test/support/fake-host.ts";
import type { Network } from "../facts.ts";
import { probeNetwork } from "./driver.ts";

const network: Network = {
  links: [
    {
      name: "eth0",
      mac: "52:54:00:00:00:01",
      mtu: 1500,
      isUp: true,
      hasCarrier: true,
      isLoopback: false,
      addresses: [{ family: 4, address: "10.0.0.2", prefix: 24, scope: "global", isDynamic: false }],
    },
  ],
  routes: [{ family: 4, destination: "default", device: "eth0", metric: 0 }],
};
const ha = (more: Partial<Document["ha"]> = {}): Document =>
  makeDocument({
    role: "controller",
    cluster: { name: "c", endpoint: "10.0.0.50", subjectAltNames: [] },
    ha: { enabled: true, virtualIP: "10.0.0.50/24", authPass: "x", unicastPeers: [], ...more },
  });

/** A network on which these answer: the ports by https, the address by ARP, the router by VRRP. */
function network6443(answering: readonly string[]) {
  return fakeHost({
    programs: {
      arping: () => ({
        exitCode: 1,
        stdout: answering.length === 0 ? "" : "Unicast reply from x [52:54:00:00:00:02] 1ms\n",
      }),
      corium: () => (answering.length === 0 ? "[]" : '[{"from":"10.0.0.3","virtualRouterId":51,"priority":200}]'),
      getent: ({ argv }) => `10.0.0.50       STREAM ${argv[2]}\n10.0.0.50       DGRAM\n`,
    },
    http: async ({ url }) => {
      const target = new URL(url).host;
      if (!answering.includes(target)) return err(appError("refused", "connection refused"));
      // A certificate that nobody here knows is somebody all the same.
      return target.endsWith(":9443")
        ? err(appError("tls", "not trusted"))
        : ok({ status: 401, body: new Uint8Array(), url });
    },
  });
}
const asked = (host: ReturnType<typeof network6443>): string[] =>
  host.calls.filter((call) => !call.startsWith("clock"));

describe("before founding", () => {
  test("address and peers are asked on both ports, the link who has the address and which routers are announced", async () => {
    const host = network6443(["10.0.0.50:6443", "10.0.0.3:9443"]);
    const found = await probeNetwork(host, ha({ unicastPeers: ["10.0.0.3"] }), network, true);
    expect(found.answering).toEqual(["10.0.0.50:6443", "10.0.0.3:9443"]);
    expect(found.holders).toEqual(["52:54:00:00:00:02"]);
    expect(found.heard).toMatchObject([{ from: "10.0.0.3", virtualRouterId: 51 }]);
    expect(asked(host)).toContain("exec arping -b -s 10.0.0.2 -c 2 -w 3 -I eth0 10.0.0.50");
    expect(asked(host)).toContain("exec /usr/bin/corium link vrrp eth0 4");
  });

  test("a quiet network is told from one that could not be asked", async () => {
    expect(await probeNetwork(network6443([]), ha(), network, true)).toEqual({
      answering: [],
      holders: [],
      heard: [],
      overlayEndpoints: [],
    });
    const host = fakeHost({ http: async () => err(appError("refused", "no")) });
    expect(await probeNetwork(host, ha(), network, true)).toEqual({ answering: [], overlayEndpoints: [] });
  });

  test("IPv6: answers of the link are asked for as well", async () => {
    const host = network6443([]);
    host.programs.set("corium", ({ argv }) => (argv[2] === "ask" ? '["52:54:00:00:00:02"]' : "[]"));
    const found = await probeNetwork(host, ha({ virtualIP: "fd00::50/64" }), network, true);
    expect(found.holders).toEqual(["52:54:00:00:00:02"]);
    expect(asked(host)).toContain("exec /usr/bin/corium link ask eth0 fd00::50");
  });
});

test("whoever joins, or began once, asks nobody: the answers would be its own cluster's", async () => {
  const host = network6443(["10.0.0.50:6443"]);
  expect(await probeNetwork(host, ha(), network, false)).toEqual({ answering: [], overlayEndpoints: [] });
  expect(asked(host)).toEqual([]);
});

test("names of servers of secrets are resolved where they may be behind an overlay, and nowhere else", async () => {
  const join = { tokenFrom: { url: "https://tokens.example.net/t" } };
  const wg0 = { name: "wg0", address: ["10.9.0.1/24"], nodeAddress: false, generateKey: true, peers: [] };
  const document = makeDocument({ role: "worker", join, wireguard: [wg0] });
  const host = network6443([]);
  expect((await probeNetwork(host, document, network, false)).secretServers).toEqual([
    { name: "tokens.example.net", addresses: ["10.0.0.50"] },
  ]);
  const bare = network6443([]);
  await probeNetwork(bare, makeDocument({ role: "worker", join }), network, false);
  expect(asked(bare)).toEqual([]);
});

test("names are resolved: of the endpoint, and of peers of overlays, each once", async () => {
  const host = network6443([]);
  const peer = { publicKey: "k", allowedIPs: [] };
  const peers = ["hub.example.net:51820", "hub.example.net:51821", "192.0.2.1:51820"].map((endpoint) => ({
    ...peer,
    endpoint,
  }));
  const document = {
    ...ha(),
    cluster: { name: "c", endpoint: "k8s.example.net", subjectAltNames: [] },
    wireguard: [{ name: "wg0", address: ["10.9.0.1/24"], nodeAddress: false, generateKey: true, peers }],
  };
  expect(await probeNetwork(host, document, network, false)).toEqual({
    answering: [],
    endpointAddresses: ["10.0.0.50"],
    overlayEndpoints: [{ name: "hub.example.net", addresses: ["10.0.0.50"] }],
  });
});
