/** What kubectl prints of nodes, budgets and pods, and what its drain says. */
import { parseJson } from "../../kit/json.ts";
import { isMap, valueAt } from "../merge.ts";
import type { Budget, ClusterNode, DrainRun, Pod, PodName } from "./model.ts";

/** On a Node that was cordoned through Corium; the value says who asked. */
export const CORDONED_BY = "corium/cordoned-by";

function itemsOf(stdout: string): readonly unknown[] | undefined {
  const value = parseJson(stdout);
  const items = valueAt(value, ["items"]);
  if (Array.isArray(items)) return items;
  // kubectl prints one object, not a list, for one name.
  return isMap(value) && typeof value["kind"] === "string" ? [value] : undefined;
}

const textAt = (value: unknown, path: readonly string[]): string => {
  const found = valueAt(value, path);
  return typeof found === "string" ? found : "";
};

const nameOf = (item: unknown): PodName => ({
  namespace: textAt(item, ["metadata", "namespace"]),
  name: textAt(item, ["metadata", "name"]),
});

/** `kubectl get nodes -o json`; undefined for anything else. */
export function parseNodes(stdout: string): readonly ClusterNode[] | undefined {
  return itemsOf(stdout)?.map((item) => {
    const conditions = valueAt(item, ["status", "conditions"]);
    const ready = (Array.isArray(conditions) ? conditions : []).find((one) => textAt(one, ["type"]) === "Ready");
    return {
      name: nameOf(item).name,
      isReady: textAt(ready, ["status"]) === "True",
      isCordoned: valueAt(item, ["spec", "unschedulable"]) === true,
      isOurs: textAt(item, ["metadata", "annotations", CORDONED_BY]) !== "",
    };
  });
}

/** `kubectl get pdb -A -o json`: those that let no pod go now. */
export function parseBudgets(stdout: string): readonly Budget[] {
  return (itemsOf(stdout) ?? []).flatMap((item) => {
    if (valueAt(item, ["status", "disruptionsAllowed"]) !== 0) return [];
    const [healthy, expected, wanted] = ["currentHealthy", "expectedPods", "desiredHealthy"].map((key) => {
      const count = valueAt(item, ["status", key]);
      return typeof count === "number" ? String(count) : "?";
    });
    const state = `${healthy} of ${expected} healthy, ${wanted} wanted`;
    return [{ ...nameOf(item), selector: valueAt(item, ["spec", "selector"]), state }];
  });
}

/** `kubectl get pods -n NAMESPACE NAME… -o json` */
export function parsePods(stdout: string): readonly Pod[] {
  return (itemsOf(stdout) ?? []).map((item) => {
    const labels = valueAt(item, ["metadata", "labels"]);
    const pairs = Object.entries(isMap(labels) ? labels : {}).map(([key, value]) => [key, String(value)] as const);
    return { ...nameOf(item), labels: Object.fromEntries(pairs) };
  });
}

/** A label selector of policy/v1: an empty one takes every pod of its namespace, an absent one none. */
export function selects(selector: unknown, labels: Readonly<Record<string, string>>): boolean {
  if (!isMap(selector)) return false;
  const wanted = selector["matchLabels"];
  if (isMap(wanted) && !Object.entries(wanted).every(([key, value]) => labels[key] === value)) return false;
  const expressions = selector["matchExpressions"];
  return (Array.isArray(expressions) ? expressions : []).every((one: unknown) => {
    const value = labels[textAt(one, ["key"])];
    const values = valueAt(one, ["values"]);
    const isListed = Array.isArray(values) && value !== undefined && values.includes(value);
    switch (textAt(one, ["operator"])) {
      case "In":
        return isListed;
      case "NotIn":
        return !isListed;
      case "Exists":
        return value !== undefined;
      case "DoesNotExist":
        return value === undefined;
      default:
        return false;
    }
  });
}

/** Refusals that only `--force` and its like would overcome. */
const REFUSED = /cannot delete (?:cannot delete )?((?:Pods|DaemonSet-managed Pods)[^\n]*)/;
const GONE = /^Error from server \(NotFound\): nodes "[^"]*" not found$/m;
const EVICTING = /error when evicting pods\/"([^"]+)" -n "([^"]+)"/g;
const ENDING = /error when waiting for pod "([^"]+)" (?:in namespace|-n) "([^"]+)"/g;

/** `kubectl drain`, which retries for as long as it may and then exits with 1. */
export function parseDrain(result: { readonly exitCode: number | null; readonly stderr: string }): DrainRun {
  if (result.exitCode === 0) return { kind: "drained" };
  if (GONE.test(result.stderr)) return { kind: "gone" };
  const refused = REFUSED.exec(result.stderr)?.[1];
  if (refused !== undefined) {
    return {
      kind: "refused",
      said: refused.replace(/ \(use [^)]*\)/g, "").replace(/\]?, continuing command\.\.\.$/, ""),
    };
  }
  const pods = new Map<string, PodName>();
  for (const pattern of [EVICTING, ENDING]) {
    for (const [, name = "", namespace = ""] of result.stderr.matchAll(pattern)) {
      pods.set(`${namespace}/${name}`, { namespace, name });
    }
  }
  const last = result.stderr.trim().split("\n").at(-1) ?? "";
  return { kind: "blocked", pods: [...pods.values()], said: last.replace(/^error: /, "") };
}
