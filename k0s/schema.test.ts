import { expect, test } from "bun:test";
import schema from "./cluster-config.schema.json" with { type: "json" };
import { clusterConfigViolations } from "./schema.ts";

const HANDLED = new Set(
  "$ref type properties additionalProperties required dependentRequired items minItems maxItems uniqueItems pattern minLength maxLength minimum maximum const enum allOf anyOf not if then $defs x-k0s-rejects-unknown".split(
    " ",
  ),
);
/** Say nothing, or (format) only what the pattern beside them says too. */
const SILENT = new Set("$schema $id $comment title description default format".split(" "));

function keywords(node: unknown, found: Set<string>): Set<string> {
  if (Array.isArray(node)) for (const item of node) keywords(item, found);
  else if (typeof node === "object" && node !== null) {
    for (const [key, value] of Object.entries(node)) {
      found.add(key);
      const isNames = key === "properties" || key === "$defs" || key === "dependentRequired";
      for (const inner of isNames ? Object.values(value as object) : [value]) keywords(inner, found);
    }
  }
  return found;
}

test("the validator handles every keyword of the schema", () => {
  const unhandled = [...keywords(schema, new Set())].filter((word) => !HANDLED.has(word) && !SILENT.has(word));
  expect(unhandled.filter((word) => !word.startsWith("x-"))).toEqual([]);
});

const minimal = { apiVersion: "k0s.k0sproject.io/v1beta1", kind: "ClusterConfig", metadata: { name: "c" } };
const problems = (spec: unknown): string[] =>
  clusterConfigViolations({ ...minimal, spec }).map((one) => `${one.path.join(".")} ${one.kind}`);

test("each kind of mistake is found where it is", () => {
  expect(problems({})).toEqual([]);
  expect(clusterConfigViolations({ spec: {} }).map((one) => one.kind)).toContain("missing");
  expect(problems({ api: { port: 0 } })).toEqual(["spec.api.port invalid"]);
  expect(problems({ api: { port: "6443" } })).toEqual(["spec.api.port invalid"]);
  expect(problems({ api: { address: "0.0.0.0" } })).toEqual(["spec.api.address invalid"]);
  expect(problems({ network: { kubeProxy: { mode: "nft" } } })).toEqual(["spec.network.kubeProxy.mode invalid"]);
  expect(problems({ nework: {} })).toEqual(["spec.nework unknown-key"]);
  expect(problems({ api: { externalAddress: "a" }, network: { nodeLocalLoadBalancing: { enabled: true } } })).toEqual([
    "spec.api.externalAddress invalid",
  ]);
  const vrrp = { virtualIPs: ["192.0.2.9/24"], authPass: "a", unicastPeers: ["192.0.2.3"] };
  expect(
    problems({ network: { controlPlaneLoadBalancing: { enabled: true, keepalived: { vrrpInstances: [vrrp] } } } }),
  ).toEqual(["spec.network.controlPlaneLoadBalancing.keepalived.vrrpInstances.0.unicastSourceIP missing"]);
});
