/** The rendered ClusterConfig against k0s's schema: k0s silently drops most misspelt keys, so Corium says them. */
import type { Finding } from "../kit/finding.ts";
import { isMap, valueAt } from "./merge.ts";
import { clusterConfigViolations, type SchemaPath, type Violation } from "./schema.ts";

/** Ours: the API of this node listens there on every address. */
const API_PORT = 7443;

/** What a resolved secret is at most; the placeholder is longer than what the schema allows. */
const SECRET_SAMPLE = "xxxxxxxx";

const writePath = (path: SchemaPath): string =>
  path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    return /^[A-Za-z0-9_-]+$/.test(part) ? `${text}.${part}` : `${text}["${part}"]`;
  }, "k0s.patch");

/** Edits (Levenshtein) between two short words. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The nearest known key, when it is near enough to have been meant. */
export function nearestKey(key: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((name) => ({ name, edits: distance(key.toLowerCase(), name.toLowerCase()) }))
    .toSorted((a, b) => a.edits - b.edits);
  const [best] = ranked;
  return best !== undefined && best.edits <= Math.max(2, Math.ceil(key.length / 3)) ? best.name : undefined;
}

function toFinding(violation: Violation): Finding {
  const path = writePath(violation.path);
  if (violation.kind !== "unknown-key") {
    return { severity: "warning", code: "k0s-schema", path, message: `${violation.message}: k0s will refuse it` };
  }
  const nearest = nearestKey(String(violation.path.at(-1)), violation.known ?? []);
  const effect = violation.isRejected === true ? "k0s will refuse it" : "k0s drops it without a word";
  return {
    severity: "warning",
    code: "k0s-unknown-key",
    path,
    message: `${violation.message}: ${effect}`,
    ...(nearest === undefined ? {} : { hint: `did you mean ${nearest}?` }),
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
