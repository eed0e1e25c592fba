/** The rendered ClusterConfig against k0s's schema: k0s silently drops most misspelt keys, so Corium says them. */
import { nearest } from "../config/names.ts";
import { formatPath } from "../config/path.ts";
import type { Finding } from "../kit/finding.ts";
import { isMap, valueAt } from "./merge.ts";
import { clusterConfigViolations, type Violation } from "./schema.ts";

/** Ours: the API of this node listens there on every address. */
const API_PORT = 7443;

/** What a resolved secret is at most; the placeholder is longer than what the schema allows. */
const SECRET_SAMPLE = "xxxxxxxx";

function toFinding(violation: Violation): Finding {
  const path = formatPath(["k0s", "patch", ...violation.path]);
  if (violation.kind !== "unknown-key") {
    return { severity: "warning", code: "k0s-schema", path, message: `${violation.message}: k0s will refuse it` };
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
function lintLoadBalancingPort(config: unknown): readonly Finding[] {
  const section = valueAt(config, ["spec", "network", "nodeLocalLoadBalancing"]);
  if (!isMap(section) || section["enabled"] !== true) return [];
  const proxy = section["type"] === "Traefik" ? "traefik" : "envoyProxy";
  const port = valueAt(section, [proxy, "apiServerBindPort"]) ?? API_PORT;
  if (port !== API_PORT) return [];
  return [
    {
      severity: "warning",
      code: "port-taken",
      path: `k0s.patch.spec.network.nodeLocalLoadBalancing.${proxy}.apiServerBindPort`,
      message: `node-local load balancing would listen on ${API_PORT}, where the API of the node is`,
      hint: "give another port, for example 7445",
    },
  ];
}

const withSampleSecrets = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, item: unknown) =>
    typeof item === "string" && /^<secret:[^>]+>$/.test(item) ? SECRET_SAMPLE : item,
  );

/** Warnings only: k0s has the last word (`k0s config validate`, on the node). Paths are those of `k0s.patch`. */
export function lintConfig(config: unknown): readonly Finding[] {
  const findings = clusterConfigViolations(withSampleSecrets(config)).map(toFinding);
  return [...findings, ...lintLoadBalancingPort(config)].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}
