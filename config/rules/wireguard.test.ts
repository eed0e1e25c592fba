import { describe } from "bun:test";
import { KEY, OTHER_KEY, ruleCases } from "../../test/support/rule-cases.ts";

const peer = (key: string, ranges: string, more = ""): string => `{publicKey: ${key}, allowedIPs: [${ranges}]${more}}`;
/** RFC 7748, section 6.1: Alice's keys. */
const OWN = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
const OWN_PUBLIC = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
const overlay = (...fields: string[]): string =>
  `role: single\nwireguard: [{name: wg0, address: 10.9.0.1/24, ${fields.join(", ")}}]\n`;
const peers = (...list: string[]): string => overlay("generateKey: true", `peers: [${list.join(", ")}]`);

describe("wireguard", () =>
  ruleCases([
    [
      "two interfaces on one port, the second of which would not open",
      "role: single\nwireguard:\n  - {name: wg0, address: 10.9.0.1/24, generateKey: true, listenPort: 51820}\n  - {name: wg1, address: 10.8.0.1/24, generateKey: true, listenPort: 51820}\n",
      "conflict wireguard[1].listenPort",
    ],
    [
      "two interfaces on any port",
      "role: single\nwireguard:\n  - {name: wg0, address: 10.9.0.1/24, generateKey: true, listenPort: 0}\n  - {name: wg1, address: 10.9.0.2/24, generateKey: true, listenPort: 0}\n",
    ],
    [
      "two interfaces with one address",
      "role: single\nwireguard:\n  - {name: wg0, address: 10.9.0.1/24, generateKey: true}\n  - {name: wg1, address: ['fd00::1/64', 10.9.0.1/32], generateKey: true}\n",
      "conflict wireguard[1].address[1]",
    ],
    [
      "its own public key as a peer, which never answers",
      overlay(`privateKey: ${OWN}`, `peers: [${peer(OWN_PUBLIC, "10.9.0.2/32")}, ${peer(OTHER_KEY, "10.9.0.3/32")}]`),
      "conflict wireguard[0].peers[0].publicKey",
    ],
    ["no key", overlay("listenPort: 51820"), "missing wireguard[0].privateKey"],
    ["generateKey: false is no key", overlay("generateKey: false"), "missing wireguard[0].privateKey"],
    [
      "two keys: the later one",
      overlay("generateKey: true", "privateKeyFrom: {file: /k}"),
      "conflict wireguard[0].privateKeyFrom",
    ],
    [
      "three keys: every one but the first",
      overlay("privateKeyFrom: {file: /k}", "generateKey: true", `privateKey: ${KEY}`),
      "conflict wireguard[0].generateKey",
      "conflict wireguard[0].privateKey",
    ],
    [
      "two interfaces of one name, both the node's address",
      "role: single\nwireguard:\n  - {name: wg0, address: 10.9.0.1/24, generateKey: true, nodeAddress: true}\n  - {name: wg0, address: 10.8.0.1/24, generateKey: true, nodeAddress: true}\n",
      "conflict wireguard[1].name",
      "conflict wireguard[1].nodeAddress",
    ],
    [
      "IPv6 with a small MTU",
      "role: single\nwireguard: [{name: wg0, address: 'fd00::1/64', mtu: 1000, generateKey: true}]\n",
      "value wireguard[0].mtu",
    ],
    [
      "IPv6 behind a peer with a small MTU: the link failed for want of a route, after disks were written",
      `role: single\nwireguard: [{name: wg0, address: 10.9.0.1/24, mtu: 1000, generateKey: true, peers: [{publicKey: ${KEY}, allowedIPs: [10.9.0.2/32, '::/0']}]}]\n`,
      "value wireguard[0].mtu",
    ],
    ["IPv4 with a small MTU", overlay("generateKey: true", "mtu: 576")],
    [
      "an empty list of addresses",
      "role: single\nwireguard: [{name: wg0, address: [], generateKey: true}]\n",
      "value wireguard[0].address",
    ],
    [
      "the same peer twice",
      peers(peer(KEY, "10.9.0.2/32"), peer(KEY, "10.9.0.3/32")),
      "conflict wireguard[0].peers[1].publicKey",
    ],
    [
      "the same range on two peers",
      peers(peer(KEY, "10.9.0.0/25"), peer(OTHER_KEY, "10.9.0.0/25")),
      "conflict wireguard[0].peers[1].allowedIPs[0]",
    ],
    ["nested ranges: the longest prefix wins", peers(peer(KEY, "10.9.0.0/24"), peer(OTHER_KEY, "10.9.0.2/32"))],
    [
      "a range twice within one peer",
      peers(peer(KEY, "10.9.0.2/32, 10.9.0.2/32")),
      "repeated wireguard[0].peers[0].allowedIPs[1]",
    ],
    ["host bits are masked", peers(peer(KEY, "10.9.0.2/24")), "host-bits wireguard[0].peers[0].allowedIPs[0]"],
    [
      "equal once they are masked",
      peers(peer(KEY, "10.9.0.0/24"), peer(OTHER_KEY, "10.9.0.7/24")),
      "host-bits wireguard[0].peers[1].allowedIPs[0]",
      "conflict wireguard[0].peers[1].allowedIPs[0]",
    ],
    ["no range", peers(peer(KEY, "")), "value wireguard[0].peers[0].allowedIPs"],
    ["a range without a prefix", peers(peer(KEY, "10.9.0.2")), "value wireguard[0].peers[0].allowedIPs[0]"],
    [
      "both preshared keys: the later one",
      peers(peer(KEY, "10.9.0.2/32", `, presharedKey: ${OTHER_KEY}, presharedKeyFrom: {file: /k}`)),
      "conflict wireguard[0].peers[0].presharedKeyFrom",
    ],
    ...["hub", "hub.example:0", "2001:db8::2:51820", "https://hub.example:51820", "hub.example:65536"].map(
      (endpoint) =>
        [
          `${endpoint} is no endpoint`,
          peers(peer(KEY, "10.9.0.2/32", `, endpoint: '${endpoint}'`)),
          "value wireguard[0].peers[0].endpoint",
        ] as const,
    ),
    ["an IPv6 endpoint", peers(peer(KEY, "10.9.0.2/32", ", endpoint: '[2001:db8::2]:51820'"))],
  ]));
