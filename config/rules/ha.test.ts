import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

const whole = "cluster: {endpoint: 192.0.2.9}\nha: {enabled: true, virtualIP: 192.0.2.9/24, authPass: abc}\n";

describe("ha", () =>
  ruleCases([
    ["a whole one", `role: controller\n${whole}`],
    ...[
      "0.0.0.0/0",
      "127.0.0.1/8",
      "224.0.0.1/24",
      "255.255.255.255/32",
      "192.0.2.9/0",
      "::/64",
      "::1/128",
      "ff02::1/64",
    ].map(
      (address) =>
        [
          `${address} as the shared address was valid`,
          `role: controller\ncluster: {endpoint: a.example}\nha: {enabled: true, virtualIP: '${address}', authPass: abc}\n`,
          "value ha.virtualIP",
        ] as const,
    ),
    [
      "the shared address and none at all as peers",
      `role: controller\n${whole.replace("authPass: abc", "authPass: abc, unicastPeers: [192.0.2.9, 0.0.0.0, 192.0.2.7]")}`,
      "conflict ha.unicastPeers[0]",
      "value ha.unicastPeers[1]",
    ],
    [
      "peers of another family: keepalived left them out, and each controller held the address",
      `role: controller\n${whole.replace("authPass: abc", "authPass: abc, unicastPeers: ['fd00::12', 192.0.2.7]")}`,
      "conflict ha.unicastPeers[0]",
    ],
    [
      "the address of an overlay, which was not up yet when the node looked whose it is",
      `role: controller\n${whole}wireguard: [{name: wg0, address: [10.9.0.1/24, 192.0.2.9/32], generateKey: true}]\n`,
      "conflict wireguard[0].address[1]",
    ],
    ...["'#x'", "'!'"].map(
      (text) =>
        [
          `the password ${text}, which keepalived takes for a comment`,
          `role: controller\n${whole.replace("authPass: abc", `authPass: ${text}`)}`,
          "read-as-comment ha.authPass",
        ] as const,
    ),
    ["not for a single node", `role: single\n${whole}`, "role ha.enabled"],
    ["not for a worker", `role: worker\njoin: {tokenFrom: {file: /t}}\n${whole}`, "role ha.enabled"],
    [
      "needs endpoint, address and password",
      "role: controller\nha: {enabled: true}\n",
      "missing cluster.endpoint",
      "missing ha.virtualIP",
      "missing ha.authPass",
    ],
    [
      "any other field without the switch",
      "role: controller\nha: {virtualIP: 192.0.2.9/24, virtualRouterID: 7, authPassFrom: {file: /a}}\n",
      "conflict ha.virtualIP",
      "conflict ha.virtualRouterID",
      "conflict ha.authPassFrom",
    ],
    ["switched off by itself is fine", "role: single\nha: {enabled: false}\n"],
    [
      "both passwords: the later one",
      "role: controller\ncluster: {endpoint: a.example}\nha: {enabled: true, virtualIP: 192.0.2.9/24, authPassFrom: {file: /a}, authPass: abc}\n",
      "conflict ha.authPass",
    ],
    [
      "an endpoint that is another address",
      "role: controller\ncluster: {endpoint: 192.0.2.8}\nha: {enabled: true, virtualIP: 192.0.2.9/24, authPass: abc}\n",
      "conflict cluster.endpoint",
    ],
    [
      "the same IPv6 address in another spelling",
      'role: controller\ncluster: {endpoint: "2001:db8:0::9"}\nha: {enabled: true, virtualIP: "2001:DB8::9/64", authPass: abc}\n',
    ],
    [
      "a name may be the endpoint",
      "role: controller\ncluster: {endpoint: api.example}\nha: {enabled: true, virtualIP: 192.0.2.9/24, authPass: abc}\n",
    ],
    [
      "an endpoint that is wrong by itself is not missing too",
      "role: controller\ncluster: {endpoint: 'https://a'}\nha: {enabled: true, virtualIP: 192.0.2.9/24, authPass: abc}\n",
      "value cluster.endpoint",
    ],
  ]));
