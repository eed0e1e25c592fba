/** The Helm extension: Chart objects from the configuration, releases from Chart objects. */
import { existsSync } from "node:fs";
import { createHash } from "node:crypto";
import { chartsOf, type Chart, type ClusterConfig } from "./config.ts";
import { applyStack } from "./manifests.ts";
import { findResource, type KubeObject } from "./resources.ts";
import { isRecord } from "./schema.ts";
import { fault, log, rooted } from "./stand-in.ts";
import type { Store } from "./store.ts";

const FINALIZER = "helm.k0sproject.io/uninstall-helm-release";
const RETRY_MS = 5000;
const RELEASE_LABEL = "k0s-sim/release";

export const chartObject = (chart: Chart): KubeObject => ({
  apiVersion: "helm.k0sproject.io/v1beta1",
  kind: "Chart",
  metadata: { name: `k0s-addon-chart-${chart.name}`, namespace: "kube-system", finalizers: [FINALIZER] },
  spec: {
    chartName: chart.chartname,
    releaseName: chart.name,
    namespace: chart.namespace,
    ...(chart.version === undefined ? {} : { version: chart.version }),
    ...(chart.values === undefined ? {} : { values: chart.values }),
    timeout: "10m0s",
  },
});

interface ChartSpec {
  readonly chartName: string;
  readonly releaseName: string;
  readonly namespace: string;
  readonly version?: string;
  readonly values?: string;
}

/** A chart that left the configuration is uninstalled: its Chart object is pruned from the stack `helm`. */
export function startHelm(
  store: Store,
  config: ClusterConfig,
  isLeader = (): boolean => true,
): { readonly stop: () => void } {
  let isApplied = false;
  const look = (): void => {
    if (!isLeader()) {
      isApplied = false;
      return;
    }
    if (!isApplied) {
      isApplied = true;
      for (const failure of applyStack(store, "helm", chartsOf(config).map(chartObject)))
        log("error", failure, "applier-helm");
    }
    reconcileCharts(store);
  };
  look();
  const timer = setInterval(look, 1000);
  return {
    stop: () => {
      clearInterval(timer);
    },
  };
}

export function reconcileCharts(store: Store): void {
  const charts = findResource(store.resources(), "charts.helm.k0sproject.io");
  if (charts === undefined) return;
  for (const chart of store.list(charts)) {
    const spec = chart["spec"] as ChartSpec;
    if (chart.metadata.deletionTimestamp !== undefined) uninstall(store, chart, spec);
    else release(store, chart, spec);
  }
}

function uninstall(store: Store, chart: KubeObject, spec: ChartSpec): void {
  for (const object of store.all())
    if (object.metadata.labels?.[RELEASE_LABEL] === `${spec.namespace}.${spec.releaseName}`) store.remove(object);
  log("info", `uninstalled release ${spec.namespace}/${spec.releaseName}`, "helm");
  store.put({ ...chart, metadata: { ...chart.metadata, finalizers: [] } });
}

const isNamedBy = (name: "chart-fails" | "chart-waits", spec: ChartSpec): boolean =>
  (fault(name) ?? "").split("\n").includes(spec.releaseName);

function release(store: Store, chart: KubeObject, spec: ChartSpec): void {
  if (isNamedBy("chart-waits", spec)) return;
  const status = isRecord(chart["status"]) ? chart["status"] : {};
  const hash = createHash("sha256").update(JSON.stringify(spec)).digest("hex");
  const error = failureOf(spec);
  if (status["valuesHash"] === hash && (status["error"] ?? "") === (error ?? "")) {
    // What failed is tried again by itself; each try shows in `updated`.
    if (error === undefined || Date.now() - Date.parse(String(status["updated"])) < RETRY_MS) return;
  }
  const updated = new Date().toISOString();
  const before = typeof status["revision"] === "number" ? status["revision"] : 0;
  if (error !== undefined) {
    log("error", `chart ${spec.releaseName}: ${error}`, "helm");
    store.put({ ...chart, status: { ...status, error, updated, valuesHash: hash } });
    return;
  }
  const namespaces = findResource(store.resources(), "namespaces");
  if (namespaces !== undefined && store.get(namespaces, undefined, spec.namespace) === undefined)
    store.put({ apiVersion: "v1", kind: "Namespace", metadata: { name: spec.namespace }, status: { phase: "Active" } });
  const labels = { [RELEASE_LABEL]: `${spec.namespace}.${spec.releaseName}`, "app.kubernetes.io/managed-by": "Helm" };
  store.put({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: `${spec.releaseName}-release`, namespace: spec.namespace, labels },
    data: { chart: spec.chartName, version: spec.version ?? "", values: spec.values ?? "" },
  });
  log("info", `released ${spec.namespace}/${spec.releaseName}, revision ${before + 1}`, "helm");
  store.put({
    ...chart,
    status: {
      releaseName: spec.releaseName,
      namespace: spec.namespace,
      version: spec.version ?? "0.0.0-sim",
      appVersion: spec.version ?? "0.0.0-sim",
      revision: before + 1,
      updated,
      valuesHash: hash,
      error: "",
    },
  });
}

function failureOf(spec: ChartSpec): string | undefined {
  if (isNamedBy("chart-fails", spec)) return `can't install chart ${spec.releaseName}: the test wants it so`;
  if (spec.chartName.startsWith("/") && !existsSync(rooted(spec.chartName)))
    return `can't locate chart: path "${spec.chartName}" not found`;
  return undefined;
}
