import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

describe("node", () =>
  ruleCases([
    ["labels of a domain of one's own", 'role: single\nnode: {labels: {example.com/x: a, pool: "", b: A.b_c}}\n'],
    ["a key that is none", "role: single\nnode: {labels: {'a b': c}}\n", 'value node.labels["a…"]'],
    [
      "what a kubelet may not set on itself",
      "role: single\nnode: {labels: {node-role.kubernetes.io/x: a}}\n",
      'value node.labels["node-role.kubernetes.io/x"]',
    ],
    ["what a kubelet may set", "role: single\nnode: {labels: {topology.kubernetes.io/zone: a}}\n"],
    [
      "text that is something else to YAML 1.1",
      "role: single\nnode: {labels: {a: no}}\n",
      "ambiguous-text node.labels.a",
    ],
    [
      "the same in a taint",
      "role: single\nnode: {taints: [{key: a, value: on, effect: NoExecute}]}\n",
      "ambiguous-text node.taints[0].value",
    ],
    ["quoted it is text to all", "role: single\nnode: {labels: {a: 'no'}}\n"],
    ["what would break k0s's command line", "role: single\nnode: {labels: {a: 'x%y'}}\n", "value node.labels.a"],
    [
      "the same taint twice",
      "role: single\nnode: {taints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]}\n",
      "conflict node.taints[1]",
    ],
    [
      "the same key with another effect",
      "role: single\nnode: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}]}\n",
    ],
    ["a taint without effect", "role: single\nnode: {taints: [{key: a}]}\n", "missing node.taints[0].effect"],
  ]));
