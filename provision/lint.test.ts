import { describe, expect, test } from "bun:test";
import type { Document } from "../config/document.ts";
import type { Link, LinkAddress, MachineFacts } from "./facts.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { recordAddresses } from "./addresses.ts";
import { lintBootstrap, type Probes } from "./lint.ts";

const address = (cidr: string, isDynamic = false): LinkAddress => {
  const [ip = "", prefix = "24"] = cidr.split("/");
  return { family: ip.includes(":") ? 6 : 4, address: ip, prefix: Number(prefix), scope: "global", isDynamic };
};
const nic = (name: string, ...cidrs: string[]): Link => ({
  name,
  mac: "52:54:00:00:00:01",
  mtu: 1500,
  isUp: true,
  hasCarrier: true,
  isLoopback: false,
  addresses: cidrs.map((cidr) => address(cidr)),
});
const machine = (changes: Partial<MachineFacts> = {}): MachineFacts => ({
  hostname: "n1",
  machineId: "0".repeat(32),
  links: [nic("eth0", "192.168.1.10/24")],
  routes: [{ family: 4, destination: "default", device: "eth0", gateway: "192.168.1.1", metric: 100 }],
  nameservers: ["192.168.1.1"],
  memoryBytes: 4 * 1024 ** 3,
  kernel: "6.12.0",
  hasCgroup2: true,
  oldK0s: [],
  k0sVersion: "v1.36.4+k0s.1-sim",
  ...changes,
});
const lint = (document: Document, facts = machine(), probes: Probes = { answering: [] }, hasK0sRecord = false) =>
  lintBootstrap({ document, facts, probes, hasK0sRecord });
const codes = (...of: Parameters<typeof lint>): string[] => lint(...of).map(({ code }) => code);

const ha = (virtualIP: string, more: Partial<Document["ha"]> = {}): Document =>
  makeDocument({
    role: "controller",
    cluster: { name: "c", endpoint: "192.168.1.50", subjectAltNames: [] },
    ha: { enabled: true, virtualIP, authPass: "x", unicastPeers: [], ...more },
  });

describe("lint", () => {
  test("a sound machine passes without a word", () => {
    expect(lint(makeDocument())).toEqual([]);
    expect(lint(ha("192.168.1.50/24"))).toEqual([]);
  });

  test("everything wrong is told at once", () => {
    const found = codes(
      makeDocument({ kubernetes: { version: "v1.35.8+k0s.1" } }),
      machine({ hasCgroup2: false, memoryBytes: 1, oldK0s: ["pki", "etcd"], nameservers: ["10.96.0.10"] }),
    );
    expect(found).toEqual(["no-cgroup2", "memory", "k0s-version", "old-k0s", "range-overlap"]);
  });

  test("old k0s data is refused unless an earlier attempt of ours made it", () => {
    const facts = machine({ oldK0s: ["pki"] });
    expect(codes(makeDocument(), facts)).toEqual(["old-k0s"]);
    expect(codes(makeDocument(), facts, { answering: [] }, true)).toEqual([]);
  });

  test("the node's own LAN inside the pod range names the interface", () => {
    const [finding] = lint(makeDocument(), machine({ links: [nic("eth0", "10.244.7.2/24")], nameservers: [] }));
    expect(finding).toMatchObject({ code: "range-overlap", path: "network.podCIDR" });
    expect(finding?.message).toContain("eth0");
  });

  test("a virtual address off the subnet, at its edge, own, or the gateway is refused", () => {
    expect(codes(ha("10.0.0.5/24"))).toEqual(["vip-off-subnet"]);
    expect(codes(ha("192.168.1.255/24"))).toEqual(["vip-boundary"]);
    expect(codes(ha("192.168.1.0/24"))).toEqual(["vip-boundary"]);
    expect(codes(ha("192.168.1.10/24"))).toEqual(["vip-own"]);
    expect(codes(ha("192.168.1.1/24"))).toEqual(["vip-gateway"]);
    expect(codes(ha("192.168.1.50/24", { interface: "eth7" }))).toEqual(["no-link"]);
  });

  test("founding a second cluster under one address: give it a join", () => {
    const probes = { answering: ["192.168.1.50:6443"], isVipTaken: true };
    const [finding] = lint(ha("192.168.1.50/24"), machine(), probes);
    expect(finding).toMatchObject({ code: "cluster-exists", hint: "give this node a join token" });
    expect(codes({ ...ha("192.168.1.50/24"), join: { token: "t" } }, machine(), probes)).toEqual([]);
    expect(codes(ha("192.168.1.50/24"), machine(), { answering: [], isVipTaken: true })).toEqual(["vip-taken"]);
    expect(codes(ha("192.168.1.50/24"), machine(), probes, true)).toEqual([]);
  });

  test("an endpoint name that leads elsewhere is refused with what it resolves to", () => {
    const document = { ...ha("192.168.1.50/24"), cluster: { name: "c", endpoint: "k.example", subjectAltNames: [] } };
    const [finding] = lint(document, machine(), { answering: [], endpointAddresses: ["192.0.2.9"] });
    expect(finding?.message).toContain("192.0.2.9");
    expect(codes(document, machine(), { answering: [], endpointAddresses: ["192.168.1.50"] })).toEqual([]);
  });

  test("a tunnel that swallows the LAN, the service range or a peer's endpoint is refused", () => {
    const overlay = (allowedIPs: string[], endpoint = "203.0.113.1:51820"): Document =>
      makeDocument({
        wireguard: [
          {
            name: "wg0",
            address: ["10.10.0.2/24"],
            nodeAddress: true,
            generateKey: true,
            peers: [{ publicKey: "k", endpoint, allowedIPs }],
          },
        ],
      });
    expect(codes(overlay(["10.10.0.0/24"]))).toEqual([]);
    expect(codes(overlay(["192.168.0.0/16"]))).toEqual(["overlay-swallows"]);
    expect(codes(overlay(["10.100.0.0/16"]))).toEqual(["overlay-swallows"]);
    expect(codes(overlay(["203.0.113.0/24"]))).toEqual(["overlay-swallows"]);
    expect(codes(overlay(["0.0.0.0/0"])).length).toBe(3);
  });

  test("a leased controller address is a warning", () => {
    const facts = machine({ links: [{ ...nic("eth0"), addresses: [address("192.168.1.10/24", true)] }] });
    expect(lint(makeDocument({ role: "controller" }), facts)).toMatchObject([
      { code: "leased-address", severity: "warning" },
    ]);
    expect(codes(makeDocument({ role: "worker" }), facts)).toEqual([]);
  });
});

describe("recorded addresses", () => {
  const two = machine({ links: [nic("eth0", "192.168.1.10/24"), nic("eth1", "10.0.0.10/24")] });

  test("B046: the virtual address never ends up as node-ip, api or peer address", () => {
    const holder = machine({ links: [nic("eth0", "192.168.1.50/24", "192.168.1.10/24"), nic("eth1", "10.0.0.10/24")] });
    const recorded = recordAddresses(ha("192.168.1.50/24", { unicastPeers: ["192.168.1.11"] }), holder);
    expect(recorded).toEqual({
      apiAddress: "192.168.1.10",
      peerAddress: "192.168.1.10",
      nodeIp: "192.168.1.10",
      unicastSourceIp: "192.168.1.10",
    });
  });

  test("with one NIC k0s chooses, with several the default route's is taken", () => {
    expect(recordAddresses(makeDocument(), machine())).toEqual({});
    expect(recordAddresses(makeDocument({ role: "worker" }), two)).toEqual({ nodeIp: "192.168.1.10" });
  });

  test("an overlay that carries the node's address wins", () => {
    const overlay = {
      name: "wg0",
      address: ["fd10::2/64", "10.10.0.2/24"],
      nodeAddress: true,
      generateKey: true,
      peers: [],
    };
    expect(recordAddresses(makeDocument({ role: "controller", wireguard: [overlay] }), two).nodeIp).toBe("10.10.0.2");
  });
});

test("an overlay with the name of the network card took its network away", () => {
  const overlay = (name: string): Document =>
    makeDocument({
      role: "single",
      wireguard: [{ name, address: ["10.9.0.1/24"], nodeAddress: false, generateKey: true, peers: [] }],
    } as Partial<Document>);
  expect(codes(overlay("eth0"))).toContain("overlay-name");
  expect(codes(overlay("wg0"))).not.toContain("overlay-name");
  const links = [...machine().links, { ...nic("wg0", "10.9.0.1/24"), kind: "wireguard" }];
  expect(codes(overlay("wg0"), machine({ links }))).not.toContain("overlay-name");
});
