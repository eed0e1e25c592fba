import { describe } from "bun:test";
import { KEY, ruleCases } from "../../test/support/rule-cases.ts";

const overlay = (address: string): string =>
  `wireguard: [{name: wg0, address: ${address}, generateKey: true, peers: [{publicKey: ${KEY}, allowedIPs: [192.0.2.7/32]}]}]\n`;
const ha = (address: string): string =>
  `cluster: {endpoint: a.example}\nha: {enabled: true, virtualIP: ${address}, authPass: abc}\n`;

describe("network ranges", () =>
  ruleCases([
    ["pods and services apart", "role: single\nnetwork: {podCIDR: 10.1.0.0/16, serviceCIDR: 10.2.0.0/16}\n"],
    [
      "services in a range of one address",
      "role: single\nnetwork: {serviceCIDR: 10.2.0.0/32}\n",
      "value network.serviceCIDR",
    ],
    ["services in the least range there is", "role: single\nnetwork: {serviceCIDR: 10.2.0.0/29}\n"],
    [
      "pods and services overlap: the later one",
      "role: single\nnetwork: {serviceCIDR: 10.0.0.0/8, podCIDR: 10.2.0.0/16}\n",
      "conflict network.podCIDR",
    ],
    [
      "one that is given overlaps the default of the other",
      "role: single\nnetwork: {podCIDR: 10.96.0.0/16}\n",
      "conflict network.podCIDR",
    ],
    ["an overlay in the pod range", `role: single\n${overlay("10.244.0.1/24")}`, "conflict wireguard[0].address"],
    [
      "one of several overlay addresses in the service range",
      `role: single\n${overlay("[192.0.2.1/24, 10.96.0.9/24]")}`,
      "conflict wireguard[0].address[1]",
    ],
    [
      "a range that stands after the overlay carries the problem",
      `role: single\n${overlay("10.9.0.1/24")}network: {podCIDR: 10.9.0.0/16}\n`,
      "conflict network.podCIDR",
    ],
    ["the HA address in the pod range", `role: controller\n${ha("10.244.0.9/24")}`, "conflict ha.virtualIP"],
    ["the HA address is compared by address, not by its network", `role: controller\n${ha("10.1.0.9/8")}`],
    ["host bits", "role: single\nnetwork: {podCIDR: 10.1.0.1/16}\n", "value network.podCIDR"],
    ["IPv6 goes through k0s.patch", "role: single\nnetwork: {podCIDR: 'fd00::/48'}\n", "value network.podCIDR"],
  ]));
