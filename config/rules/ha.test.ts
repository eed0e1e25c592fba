import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

const whole = "cluster: {endpoint: 192.0.2.9}\nha: {enabled: true, virtualIP: 192.0.2.9/24, authPass: abc}\n";

describe("ha", () =>
  ruleCases([
    ["a whole one", `role: controller\n${whole}`],
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
