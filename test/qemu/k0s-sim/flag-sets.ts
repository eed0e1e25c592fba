/** Which flags each command takes. */
import type { FlagSpec } from "./flags.ts";

const flag = (name: string, type: FlagSpec["type"], help: string, more: Partial<FlagSpec> = {}): FlagSpec => ({
  name,
  type,
  help,
  ...more,
});

export const DATA_DIR = flag("data-dir", "string", "data directory", { fallback: "/var/lib/k0s" });
export const CONFIG = flag("config", "string", "config file, use '-' to read the config from stdin", {
  short: "c",
  fallback: "/etc/k0s/k0s.yaml",
});
export const STATUS_SOCKET = flag("status-socket", "string", "full path to the status socket", {
  fallback: "/run/k0s/status.sock",
});
const KUBELET_ROOT = flag("kubelet-root-dir", "string", "kubelet root directory");
const CRI_SOCKET = flag("cri-socket", "string", "container runtime socket to use");
export const FEATURE_GATES = flag("feature-gates", "string", "feature gates, k=v separated by commas");

export const DEBUG: readonly FlagSpec[] = [
  flag("debug", "bool", "debug logging", { short: "d", fallback: "false" }),
  flag("verbose", "bool", "verbose logging", { short: "v", fallback: "false" }),
  flag("debugListenOn", "string", "pprof address with debug", { fallback: ":6060" }),
];

const NODE: readonly FlagSpec[] = [
  DATA_DIR,
  KUBELET_ROOT,
  STATUS_SOCKET,
  CRI_SOCKET,
  flag("token-file", "string", "path to the file containing join-token"),
  flag("profile", "string", "worker profile to use on the node", { fallback: "default" }),
  flag("labels", "list", "node labels, k=v"),
  flag("taints", "list", "node taints, k=v:effect"),
  flag("kubelet-extra-args", "string", "extra args for kubelet"),
  flag("iptables-mode", "string", "iptables mode: nft, legacy or auto"),
  flag("enable-cloud-provider", "bool", "external cloud provider", { fallback: "false" }),
  flag("ignore-pre-flight-checks", "bool", "continue even if pre-flight checks fail", { fallback: "false" }),
  flag("logging", "list", "logging levels", { short: "l" }),
];

export const WORKER: readonly FlagSpec[] = [...NODE, ...DEBUG];

export const CONTROLLER: readonly FlagSpec[] = [
  ...NODE,
  ...DEBUG,
  CONFIG,
  FEATURE_GATES,
  flag("single", "bool", "a single node, not joinable", { fallback: "false" }),
  flag("enable-worker", "bool", "run a worker too", { fallback: "false" }),
  flag("no-taints", "bool", "no taints on a controller that is a worker", { fallback: "false" }),
  flag("kube-controller-manager-extra-args", "string", "extra args for kube-controller-manager"),
  flag("enable-dynamic-config", "bool", "cluster-wide configuration in the API", { fallback: "false" }),
  flag("enable-metrics-scraper", "bool", "scrape controller metrics", { fallback: "false" }),
  flag("enable-k0s-cloud-provider", "bool", "the k0s cloud provider", { fallback: "false" }),
  flag("k0s-cloud-provider-port", "int", "its port", { fallback: "10258" }),
  flag("k0s-cloud-provider-update-frequency", "duration", "its frequency", { fallback: "2m" }),
  flag("disable-components", "list", "components to disable"),
  flag("init-only", "bool", "only initialize, then exit", { fallback: "false" }),
  flag("api-server-stop-timeout", "duration", "how long the API server may take to stop"),
];

export const INSTALL: readonly FlagSpec[] = [
  flag("env", "list", "environment of the service, K=V", { short: "e" }),
  flag("force", "bool", "force init script creation", { fallback: "false" }),
  flag("start", "bool", "start the service after it was installed", { fallback: "false" }),
];

export const COMPONENTS = new Set(
  (
    "applier-manager autopilot control-api coredns csr-approver endpoint-reconciler helm konnectivity-server " +
    "kube-controller-manager kube-proxy kube-scheduler metrics-server network-provider node-role system-rbac " +
    "update-prober windows-node worker-config"
  ).split(" "),
);
