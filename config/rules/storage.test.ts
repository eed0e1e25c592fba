import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

const ha = "cluster: {endpoint: a.example}\nha: {enabled: true, virtualIP: 192.0.2.9/24, authPass: abc}\n";

describe("storage", () =>
  ruleCases([
    ["sqlite for a single node and a lone controller+worker", "role: single\nstorage: {type: sqlite}\n"],
    ["sqlite for a lone controller+worker", "role: controller+worker\nstorage: {type: sqlite}\n"],
    ["etcd for a single node", "role: single\nstorage: {type: etcd}\n"],
    ["sqlite for a controller", "role: controller\nstorage: {type: sqlite}\n", "conflict storage.type"],
    [
      "sqlite for a second controller, which would found a cluster of its own",
      "role: controller+worker\nstorage: {type: sqlite}\njoin: {tokenFrom: {file: /t}}\n",
      "conflict storage.type",
    ],
    ["join: {} is none", "role: controller+worker\nstorage: {type: sqlite}\njoin: {}\n"],
    ["sqlite with HA", `role: controller+worker\nstorage: {type: sqlite}\n${ha}`, "conflict storage.type"],
    [
      "HA refused for its role is not compared with storage",
      `role: single\nstorage: {type: sqlite}\n${ha}`,
      "role ha.enabled",
    ],
  ]));
