import { describe, expect, test } from "bun:test";
import type { Document } from "../config/document.ts";
import type { Link, LinkAddress, MachineFacts } from "./facts.ts";
import { renderK0s } from "../k0s/render.ts";
import { makeDocument } from "../test/support/document-fixture.ts";
import { goneAddresses, recordAddresses } from "./addresses.ts";
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

  test("a virtual address of another size took the route to another network with it from holder to holder", () => {
    const [wide, ...more] = lint(ha("192.168.1.50/16"));
    expect([wide?.severity, wide?.code, wide?.hint, more]).toEqual([
      "warning",
      "vip-prefix",
      "write 192.168.1.50/24",
      [],
    ]);
    expect(codes(ha("192.168.1.50/25"))).toEqual(["vip-prefix"]);
    expect(codes(ha("192.168.1.50/32"))).toEqual([]);
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

  test("B049: a virtual address off the subnet, at its edge, own, or the gateway is refused", () => {
    expect(codes(ha("10.0.0.5/24"))).toEqual(["vip-off-subnet"]);
    expect(codes(ha("192.168.1.255/24"))).toEqual(["vip-boundary"]);
    expect(codes(ha("192.168.1.0/24"))).toEqual(["vip-boundary"]);
    expect(codes(ha("192.168.1.10/24"))).toEqual(["vip-own"]);
    const six = machine({ links: [nic("eth0", "192.168.1.10/24", "fd00::10/64")] });
    expect(codes(ha("fd00::/64"), six)).toEqual(["vip-boundary"]);
    expect(codes(ha("fd00::50/64"), six)).toEqual([]);
    expect(codes(ha("192.168.1.1/24"))).toEqual(["vip-gateway"]);
    expect(codes(ha("192.168.1.50/24", { interface: "eth7" }))).toEqual(["no-link"]);
  });

  test("founding a second cluster under one address: give it a join", () => {
    const probes = { answering: ["192.168.1.50:6443"], holders: ["52:54:00:00:00:02"] };
    const [finding] = lint(ha("192.168.1.50/24"), machine(), probes);
    expect(finding).toMatchObject({ code: "cluster-exists", hint: "give this node a join token" });
    expect(codes({ ...ha("192.168.1.50/24"), join: { token: "t" } }, machine(), probes)).toEqual([]);
    const [taken] = lint(ha("192.168.1.50/24"), machine(), { ...probes, answering: [] });
    expect(taken).toMatchObject({ code: "vip-taken", path: "ha.virtualIP" });
    expect(taken?.message).toContain("52:54:00:00:00:02");
    expect(codes(ha("192.168.1.50/24"), machine(), probes, true)).toEqual([]);
  });

  test("one list of peers for all controllers names each to itself: k0s would refuse it after the disks were made", () => {
    const peers = ["192.168.1.11", "192.168.1.10"];
    expect(lint(ha("192.168.1.50/24", { unicastPeers: peers }))).toMatchObject([
      { code: "peer-own", severity: "error", path: "ha.unicastPeers[1]" },
    ]);
    expect(codes(ha("192.168.1.50/24", { unicastPeers: ["192.168.1.11"] }))).toEqual([]);
  });

  test("B052: two clusters on one network pick the same virtual router id and fight", () => {
    const heard = [
      { from: "192.168.1.77", virtualRouterId: 60 },
      { from: "192.168.1.78", virtualRouterId: 51 },
    ];
    const [finding] = lint(ha("192.168.1.50/24", { virtualRouterID: 60 }), machine(), { answering: [], heard });
    expect(finding).toMatchObject({ code: "vrid-taken", severity: "error", path: "ha.virtualRouterID" });
    expect(finding?.message).toContain("192.168.1.77");
    expect(finding?.hint).toContain("heard: 51, 60");
    // Without one in the document it is k0s's own.
    expect(codes(ha("192.168.1.50/24"), machine(), { answering: [], heard })).toEqual(["vrid-taken"]);
    expect(codes(ha("192.168.1.50/24", { virtualRouterID: 61 }), machine(), { answering: [], heard })).toEqual([]);
    expect(codes({ ...ha("192.168.1.50/24"), join: { token: "t" } }, machine(), { answering: [], heard })).toEqual([]);
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
    expect(codes(overlay(["::/0"], "[2001:db8::1]:51820"))).toEqual(["overlay-swallows"]);
  });

  test("a tunnel that swallows the virtual address is refused", () => {
    const peers = [{ publicKey: "k", allowedIPs: ["192.168.1.50/32"] }];
    const overlay = { name: "wg0", address: ["10.10.0.2/24"], nodeAddress: false, generateKey: true, peers };
    const found = lint({ ...ha("192.168.1.50/24"), wireguard: [overlay] });
    expect(found.map(({ path, message }) => `${path}: ${message}`)).toContain(
      "wireguard[0].peers[0].allowedIPs[0]: '192.168.1.50/32' takes the virtual address (192.168.1.50) into the tunnel",
    );
  });

  test("a tunnel that swallows what a peer's name leads to is refused; a name that leads nowhere is waited for", () => {
    const peers = [{ publicKey: "k", endpoint: "hub.example.net:51820", allowedIPs: ["203.0.113.0/24"] }];
    const overlay = { name: "wg0", address: ["10.10.0.2/24"], nodeAddress: false, generateKey: true, peers };
    const document = makeDocument({ wireguard: [overlay] });
    const leads = (...addresses: string[]) =>
      codes(document, machine(), { answering: [], overlayEndpoints: [{ name: "hub.example.net", addresses }] });
    expect(leads("203.0.113.9")).toEqual(["overlay-swallows"]);
    expect(leads("198.51.100.9")).toEqual([]);
    expect(leads()).toEqual([]);
  });

  test("B038: an overlay that does not fit through the uplink is a warning that says what would", () => {
    const overlay = (endpoint: string, mtu?: number): Document => {
      const peers = [{ publicKey: "k", endpoint, allowedIPs: ["10.10.0.3/32"] }];
      const spec = { name: "wg0", address: ["10.10.0.2/24"], nodeAddress: false, generateKey: true, peers };
      return makeDocument({ wireguard: [{ ...spec, ...(mtu === undefined ? {} : { mtu }) }] });
    };
    const narrow = machine({ links: [{ ...nic("eth0", "192.168.1.10/24"), mtu: 1450 }] });
    expect(lint(overlay("203.0.113.1:51820"), narrow)).toMatchObject([
      { code: "overlay-mtu", severity: "warning", path: "wireguard[0].mtu", hint: "at most 1390, on both sides" },
    ]);
    expect(lint(overlay("[2001:db8::1]:51820"), narrow)[0]?.hint).toBe("at most 1370, on both sides");
    expect(codes(overlay("203.0.113.1:51820", 1390), narrow)).toEqual([]);
    expect(codes(overlay("203.0.113.1:51820"))).toEqual([]);
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

  test("B046, B047: nor does an IPv6 one, however it is written", () => {
    const holder = machine({ links: [nic("eth0", "fd00:0::50/64", "fd00::10/64"), nic("eth1", "10.0.0.10/24")] });
    const recorded = recordAddresses(ha("fd00::50/64", { unicastPeers: ["fd00::11"] }), holder);
    expect(new Set(Object.values(recorded))).toEqual(new Set(["fd00::10"]));
    expect(Object.keys(recorded).toSorted()).toEqual(["apiAddress", "nodeIp", "peerAddress", "unicastSourceIp"]);
  });

  test("B046: nor one of privacy or on its way out, while there is another", () => {
    const passing = { ...address("fd00::99/64"), isPassing: true as const };
    const link = { ...nic("eth0"), addresses: [passing, address("fd00::10/64")] };
    expect(recordAddresses(ha("fd00::50/64"), machine({ links: [link] })).nodeIp).toBe("fd00::10");
    const only = machine({ links: [{ ...link, addresses: [passing] }] });
    expect(recordAddresses(ha("fd00::50/64"), only).nodeIp).toBe("fd00::99");
  });

  test("B181: what was recorded and is on no interface any more is found", () => {
    const recorded = { apiAddress: "192.168.1.10", peerAddress: "192.168.1.10", nodeIp: "fd00::10" };
    expect(goneAddresses(recorded, ["192.168.1.10", "fd00:0:0::10"])).toEqual([]);
    expect(goneAddresses(recorded, ["192.168.1.11", "fd00::10"])).toEqual(["192.168.1.10"]);
    expect(goneAddresses({}, ["192.168.1.11"])).toEqual([]);
  });

  test("B185: where there may be several addresses the kubelet's is pinned in its unit, and one that comes later changes nothing", () => {
    const document = ha("192.168.1.50/24", { unicastPeers: ["192.168.1.11"] });
    const recorded = recordAddresses(document, machine());
    expect(recorded.nodeIp).toBe("192.168.1.10");
    expect(renderK0s({ document, addresses: recorded }).installArgv).toContain("--node-ip=192.168.1.10");
    const later = machine({ links: [nic("eth0", "10.0.0.99/24", "192.168.1.50/24", "192.168.1.10/24")] });
    // As a node in service renders: from the record, whatever the machine has now.
    expect(
      goneAddresses(
        recorded,
        later.links.flatMap(({ addresses }) => addresses.map((each) => each.address)),
      ),
    ).toEqual([]);
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
