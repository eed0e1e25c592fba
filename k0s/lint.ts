/** The rendered ClusterConfig against k0s's schema: k0s silently drops most misspelt keys, so Corium says them. */
import type { Document } from "../config/document.ts";
import { nearest } from "../config/names.ts";
import { formatPath, getAt, type Path } from "../config/path.ts";
import type { Finding } from "../kit/finding.ts";
import { joins } from "./argv.ts";
import { isMap, valueAt } from "./merge.ts";
import { clusterConfigViolations, type SchemaPath, type Violation } from "./schema.ts";

/** Ours: the API of this node listens there on every address. */
const API_PORT = 7443;

const VRRP = "spec.network.controlPlaneLoadBalancing.keepalived.vrrpInstances[0]";

/** What a resolved secret is at most; the placeholder is longer than what the schema allows. */
const SECRET_SAMPLE = "xxxxxxxx";

/** Fields of the document that k0s.yaml is made of: where they stand there, and where people wrote them. */
const ORIGINS: readonly (readonly [string, Path])[] = [
  ["metadata.name", ["cluster", "name"]],
  ["spec.api.externalAddress", ["cluster", "endpoint"]],
  ["spec.api.sans", ["cluster", "subjectAltNames"]],
  ["spec.network.podCIDR", ["network", "podCIDR"]],
  ["spec.network.serviceCIDR", ["network", "serviceCIDR"]],
  ["spec.network.provider", ["network", "cni"]],
  [`${VRRP}.virtualIPs`, ["ha", "virtualIP"]],
  [`${VRRP}.interface`, ["ha", "interface"]],
  [`${VRRP}.virtualRouterID`, ["ha", "virtualRouterID"]],
  [`${VRRP}.unicastPeers`, ["ha", "unicastPeers"]],
  [`${VRRP}.authPass`, ["ha", "authPass"]],
  ["spec.network.controlPlaneLoadBalancing", ["ha"]],
  ["spec.extensions.helm", ["addons"]],
  ["spec.storage", ["storage", "type"]],
];

/** Where the document says it: in the patch, in the field that the model made it of, or else nearest in the patch. */
function pathInDocument(patch: unknown, path: SchemaPath): Path {
  const inPatch = ["k0s", "patch", ...path];
  if (getAt(patch, path) !== undefined) return inPatch;
  if (path.length > 1 && getAt(patch, path.slice(0, -1)) !== undefined) return inPatch;
  const text = formatPath(path);
  const isBelow = (start: string): boolean =>
    text === start || text.startsWith(`${start}.`) || text.startsWith(`${start}[`);
  return ORIGINS.find(([start]) => isBelow(start))?.[1] ?? inPatch;
}

function toFinding(patch: unknown, violation: Violation): Finding {
  const path = formatPath(pathInDocument(patch, violation.path));
  if (violation.kind !== "unknown-key") {
    const message = `${violation.message}: k0s will refuse it`;
    const { hint } = violation;
    return { severity: "warning", code: "k0s-schema", path, message, ...(hint === undefined ? {} : { hint }) };
  }
  const known = nearest(String(violation.path.at(-1)), violation.known ?? []);
  const effect = violation.isRejected === true ? "k0s will refuse it" : "k0s drops it without a word";
  return {
    severity: "warning",
    code: "k0s-unknown-key",
    path,
    message: `${violation.message}: ${effect}`,
    ...(known === undefined ? {} : { hint: `did you mean ${known}?` }),
  };
}

/** Node-local load balancing listens on the loopback of every worker, on the port that the node's API has. */
function lintLoadBalancingPort(config: unknown, patch: unknown): readonly Finding[] {
  const section = valueAt(config, ["spec", "network", "nodeLocalLoadBalancing"]);
  if (!isMap(section) || section["enabled"] !== true) return [];
  const proxy = section["type"] === "Traefik" ? "traefik" : "envoyProxy";
  const port = valueAt(section, [proxy, "apiServerBindPort"]) ?? API_PORT;
  if (port !== API_PORT) return [];
  const at = ["spec", "network", "nodeLocalLoadBalancing", proxy, "apiServerBindPort"];
  return [
    {
      severity: "warning",
      code: "port-taken",
      path: formatPath(["k0s", "patch", ...(getAt(patch, at) === undefined ? at.slice(0, 3) : at)]),
      message: `node-local load balancing would listen on ${API_PORT}, where the API of the node is`,
      hint: "give another port, for example 7445",
    },
  ];
}

/**
 * Several controllers need something that leads to all of them (facts: section 5, "HA needs one of"): otherwise agents reach
 * the one that they joined by. Only a controller that joins is known to be one of several.
 */
export function lintReach(document: Document, config: unknown): readonly Finding[] {
  if (document.role === "worker" || !joins(document)) return [];
  const network = ["spec", "network"];
  const isOn = (section: string): boolean => valueAt(config, [...network, section, "enabled"]) === true;
  if (isOn("controlPlaneLoadBalancing") || isOn("nodeLocalLoadBalancing")) return [];
  if (valueAt(config, ["spec", "api", "externalAddress"]) !== undefined) return [];
  return [
    {
      severity: "warning",
      code: "no-balancer",
      path: "cluster.endpoint",
      message:
        "several controllers and nothing in front of them: workers, and what asks for logs, reach one of them only",
      hint: "ha; or cluster.endpoint of a load balancer for 6443, 9443 and 8132; or nodeLocalLoadBalancing in k0s.patch",
    },
  ];
}

const withSampleSecrets = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, item: unknown) =>
    typeof item === "string" && /^<secret:[^>]+>$/.test(item) ? SECRET_SAMPLE : item,
  );

/**
 * Warnings only: k0s has the last word (`k0s config validate`, on the node). Paths are those of the document, so that
 * every command says the same of it. `isAddressKnown`: else what only the node knows is not said to be missing.
 */
export function lintConfig(config: unknown, patch: unknown, isAddressKnown: boolean): readonly Finding[] {
  const isUnknown = ({ kind, path }: Violation): boolean =>
    !isAddressKnown && kind === "missing" && formatPath(path) === `${VRRP}.unicastSourceIP` && isModelled(path);
  const isModelled = (path: SchemaPath): boolean => getAt(patch, path.slice(0, -1)) === undefined;
  const violations = clusterConfigViolations(withSampleSecrets(config)).filter((found) => !isUnknown(found));
  const findings = violations.map((found) => toFinding(patch, found));
  return [...findings, ...lintLoadBalancingPort(config, patch)].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}
