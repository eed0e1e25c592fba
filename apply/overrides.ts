/** What `k0s.patch` does to things that Corium models as immutable: not judged, but it must be owned. */
import { isMap, valueAt } from "../k0s/merge.ts";
import { isSame } from "./canonical.ts";

/** A changed datastore comes up healthy and empty; the others break the cluster more visibly. */
const MODELLED: readonly (readonly string[])[] = [
  ["metadata", "name"],
  ["spec", "storage"],
  ["spec", "network", "provider"],
  ["spec", "network", "podCIDR"],
  ["spec", "network", "serviceCIDR"],
  ["spec", "network", "clusterDomain"],
  ["spec", "network", "dualStack"],
  ["spec", "api", "address"],
  ["spec", "api", "port"],
  ["spec", "api", "externalAddress"],
  ["spec", "api", "ca"],
];

/** Paths in k0s.yaml that the two configurations have differently. */
export const changedOverrides = (baseline: unknown, proposal: unknown): readonly string[] =>
  MODELLED.filter((path) => !isSame(valueAt(baseline, path), valueAt(proposal, path))).map((path) => path.join("."));

/** Charts by name in a rendered ClusterConfig. */
export function chartNames(config: unknown): readonly string[] {
  const charts = valueAt(config, ["spec", "extensions", "helm", "charts"]);
  return (Array.isArray(charts) ? charts : []).flatMap((chart: unknown) =>
    isMap(chart) && typeof chart["name"] === "string" ? [chart["name"]] : [],
  );
}

const byName = (list: unknown): unknown =>
  Array.isArray(list)
    ? list.toSorted((a: unknown, b: unknown) => (nameOf(a) < nameOf(b) ? -1 : nameOf(a) > nameOf(b) ? 1 : 0))
    : list;

const nameOf = (item: unknown): string => (isMap(item) ? String(item["name"]) : "");

/** The same to k0s: the order of charts and repositories says nothing, and reordering a list is no change. */
export function isSameConfig(a: unknown, b: unknown): boolean {
  const ordered = (config: unknown): unknown => {
    const helm = valueAt(config, ["spec", "extensions", "helm"]);
    if (!isMap(helm)) return config;
    const sorted = { ...helm, charts: byName(helm["charts"]), repositories: byName(helm["repositories"]) };
    return [withoutExtensions(config), sorted];
  };
  return isSame(ordered(a), ordered(b));
}

function withoutExtensions(config: unknown): unknown {
  if (!isMap(config) || !isMap(config["spec"]) || !isMap(config["spec"]["extensions"])) return config;
  const { helm: _, ...extensions } = config["spec"]["extensions"];
  return { ...config, spec: { ...config["spec"], extensions } };
}
