/** What became of Helm releases: k0s's Chart objects (facts: section 4.2). k0s itself never stops over one. */
import { isMap, valueAt } from "./merge.ts";
import type { FoundObject, ObjectRef } from "./objects/parse.ts";

export interface ChartState {
  /** Of the release; 0 while there is none. Grows with each upgrade. */
  readonly revision: number;
  /** When k0s last wrote the status, as it wrote it. */
  readonly updated: string;
  /** Helm's words; empty when all is well. */
  readonly error: string;
}

const CHART_OBJECT = "k0s-addon-chart-";

export const chartRef = (name: string): ObjectRef => ({
  resource: "charts.helm.k0sproject.io",
  namespace: "kube-system",
  name: `${CHART_OBJECT}${name}`,
});

/** Whether a chart may leave the configuration: `gone` is the cluster's own word, nothing else proves it. */
export type ChartStanding =
  /** `leaving`: deleted, but its uninstall is not over. */
  { readonly is: "gone" | "there" | "leaving" } | { readonly is: "unknown"; readonly why: string };

export function chartStanding(found: FoundObject): ChartStanding {
  switch (found.is) {
    case "there":
      return { is: valueAt(found.object, ["metadata", "deletionTimestamp"]) === undefined ? "there" : "leaving" };
    case "absent":
      return { is: "gone" };
    case "no-such-kind":
      // k0s makes the kind at each start: that it is not there says something else about the cluster.
      return { is: "unknown", why: "the cluster knows no charts" };
    case "unknown":
      return found;
    default:
      return found satisfies never;
  }
}

const textAt = (value: unknown, key: string): string => {
  const found = valueAt(value, [key]);
  return typeof found === "string" ? found : "";
};

/** `k0s kubectl get charts.helm.k0sproject.io -o json`, by the name in the configuration; undefined for anything else. */
export function parseCharts(stdout: string): ReadonlyMap<string, ChartState> | undefined {
  let list: unknown;
  try {
    list = JSON.parse(stdout);
  } catch {
    return undefined;
  }
  const items = valueAt(list, ["items"]);
  if (!Array.isArray(items)) return undefined;
  return new Map(
    items.filter(isMap).map((item) => {
      const name = textAt(item["metadata"], "name").replace(CHART_OBJECT, "");
      const revision = valueAt(item["status"], ["revision"]);
      const state = {
        revision: typeof revision === "number" ? revision : 0,
        updated: textAt(item["status"], "updated"),
        error: textAt(item["status"], "error"),
      };
      return [name, state] as const;
    }),
  );
}

/** An error that was there before counts only once k0s has tried again. */
export function chartProgress(
  before: ChartState | undefined,
  now: ChartState | undefined,
): { readonly is: "pending" | "released" } | { readonly is: "failing"; readonly error: string } {
  if (now === undefined) return { is: "pending" };
  if (now.error !== "") {
    const isOld = before !== undefined && before.updated === now.updated && before.error === now.error;
    return isOld ? { is: "pending" } : { is: "failing", error: now.error };
  }
  return { is: now.revision > (before?.revision ?? 0) ? "released" : "pending" };
}
