/** What a worker does on a node: registers it, writes the CNI's and the kubelet's files, keeps it Ready. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { callApi, kubeConfigYaml, type KubeConfig } from "./api-client.ts";
import { at, firstPublicAddress } from "./config.ts";
import type { Parsed } from "./flags.ts";
import { findResource, pathOf, type KubeObject, type Resource } from "./resources.ts";
import { isRecord } from "./schema.ts";
import { BANNER, log, rooted } from "./stand-in.ts";
import type { Store } from "./store.ts";

const NODES: Resource = { group: "", version: "v1", kind: "Node", plural: "nodes", isNamespaced: false };
const HEARTBEAT_MS = 5000;
const LOST_MS = 40_000;

export interface Workload {
  /** When the kubelet's kubeconfig is there and the node is registered. */
  readonly ready: Promise<void>;
  stop(): void;
}

export interface WorkloadOptions {
  readonly dataDir: string;
  readonly parsed: Parsed;
  readonly kubeConfig: KubeConfig;
  readonly isController: boolean;
  readonly isTainted: boolean;
  /** `custom`: the node is Ready once somebody else put a CNI configuration there. */
  readonly provider: string;
}

/** `--node-ip` and `--hostname-override` inside `--kubelet-extra-args`; split on spaces, the last one wins. */
export function kubeletArgument(parsed: Parsed, name: string): string | undefined {
  const words = parsed.text("kubelet-extra-args").split(" ");
  return words.findLast((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3);
}

function nodeObject(options: WorkloadOptions, name: string): KubeObject {
  const { parsed } = options;
  const labels: Record<string, string> = { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" };
  if (options.isController) {
    labels["node.k0sproject.io/role"] = "control-plane";
    labels["node-role.kubernetes.io/control-plane"] = "true";
  }
  for (const pair of parsed.list("labels")) {
    const [key = "", value = ""] = pair.split("=");
    labels[key] = value;
  }
  const taints = parsed.list("taints").map((taint) => {
    const [, key = "", value, effect] = /^([^=:]+)(?:=([^:]*))?:(\w+)$/.exec(taint) ?? [];
    return { key, ...(value === undefined ? {} : { value }), effect };
  });
  if (options.isController && options.isTainted)
    taints.push({ key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" });
  return { apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec: taints.length === 0 ? {} : { taints } };
}

function status(options: WorkloadOptions, name: string): unknown {
  const nodeIp = kubeletArgument(options.parsed, "node-ip")?.split(",")[0] ?? firstPublicAddress() ?? "127.0.0.1";
  const problem = networkProblem(options.provider);
  const now = new Date().toISOString();
  return {
    addresses: [
      { type: "InternalIP", address: nodeIp },
      { type: "Hostname", address: name },
    ],
    nodeInfo: { kubeletVersion: "v1.36.4+k0s-sim", osImage: BANNER, machineID: machineId(), architecture: "amd64" },
    conditions: [
      problem === undefined
        ? {
            type: "Ready",
            status: "True",
            reason: "KubeletReady",
            message: "kubelet is posting ready status",
            lastHeartbeatTime: now,
          }
        : { type: "Ready", status: "False", reason: "KubeletNotReady", message: problem, lastHeartbeatTime: now },
    ],
  };
}

function machineId(): string {
  const path = rooted("/etc/machine-id");
  return existsSync(path) ? readFileSync(path, "utf8").trim() : "";
}

/** The provider's pod writes programs and a configuration on the host: a read-only folder shows here. */
function networkProblem(provider: string): string | undefined {
  const configuration = rooted("/etc/cni/net.d");
  if (provider === "custom")
    return existsSync(join(configuration)) && [...new Bun.Glob("*.{conf,conflist}").scanSync(configuration)].length > 0
      ? undefined
      : "container runtime network not ready: cni plugin not initialized";
  try {
    const programs =
      provider === "calico" ? ["calico", "calico-ipam"] : ["bridge", "host-local", "loopback", "portmap"];
    for (const [folder, names] of [
      [rooted("/opt/cni/bin"), programs],
      [rooted("/usr/libexec/k0s/kubelet-plugins/volume/exec"), ["k0s-sim"]],
    ] as const) {
      mkdirSync(folder, { recursive: true });
      for (const name of names)
        if (!existsSync(join(folder, name))) writeFileSync(join(folder, name), `# ${BANNER}\n`, { mode: 0o755 });
    }
    mkdirSync(configuration, { recursive: true });
    const file = provider === "calico" ? "10-calico.conflist" : "10-kuberouter.conflist";
    if (!existsSync(join(configuration, file)))
      writeFileSync(
        join(configuration, file),
        `${JSON.stringify({ cniVersion: "1.0.0", name: "k0s-sim", plugins: [] })}\n`,
      );
    return undefined;
  } catch (error) {
    return `container runtime network not ready: ${error instanceof Error ? error.message : String(error)}`;
  }
}

export function startWorkload(options: WorkloadOptions): Promise<Workload> {
  const name = (kubeletArgument(options.parsed, "hostname-override") ?? hostname()).toLowerCase();
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  let isWanted = true;
  async function run(): Promise<void> {
    const kubelet = join(options.dataDir, "kubelet.conf");
    let config = options.kubeConfig;
    let isRegistered = false;
    while (isWanted) {
      try {
        if (config.token !== undefined) config = await bootstrap(config, name);
        if (!existsSync(kubelet)) writeFileSync(kubelet, kubeConfigYaml(config, "default-context"), { mode: 0o600 });
        if (!isRegistered) isRegistered = await register(config, options, name);
        const reply = await callApi(config, "PATCH", pathOf(NODES, undefined, name), { status: status(options, name) });
        // As a kubelet, which registers when it starts and never again.
        if (reply.status === 404)
          log("error", `Error getting the current node from lister: node "${name}" not found`, "kubelet");
        else if (reply.status === 200) resolve();
        else throw new Error(`node status: ${reply.status}`);
      } catch (error) {
        log("warning", `node ${name}: ${error instanceof Error ? error.message : String(error)}`, "kubelet");
      }
      await Bun.sleep(isRegistered ? HEARTBEAT_MS : 1000);
    }
  }
  void run();
  return Promise.resolve({
    ready,
    stop: () => {
      isWanted = false;
    },
  });
}

/** TLS bootstrap: the token becomes a certificate of this node. */
async function bootstrap(config: KubeConfig, name: string): Promise<KubeConfig> {
  const response = await fetch(`${config.server}/k0s-sim/kubelet-certificate`, {
    method: "POST",
    headers: { authorization: `Bearer ${config.token ?? ""}` },
    body: name,
    tls: { ca: config.ca },
    signal: AbortSignal.timeout(10_000),
  });
  if (response.status !== 201) throw new Error(`bootstrap with the join token: ${response.status} Unauthorized`);
  const pair = (await response.json()) as { readonly cert: string; readonly key: string };
  return { server: config.server, ca: config.ca, user: `system:node:${name}`, ...pair };
}

/** Labels and taints act only here: an object that exists is left as it is. */
async function register(config: KubeConfig, options: WorkloadOptions, name: string): Promise<boolean> {
  const reply = await callApi(config, "POST", pathOf(NODES, undefined), nodeObject(options, name));
  if (reply.status !== 201 && reply.status !== 409) throw new Error(`node registration: ${reply.status}`);
  if (reply.status === 201) log("info", `registered node ${name}`, "kubelet");
  return true;
}

/**
 * The node controller, which looks whenever what it returns is called: a node whose heartbeat did not change for 40 s is
 * no longer Ready. As in Kubernetes by its own clock: a heartbeat's time is of another machine's, and only compared
 * with the one before.
 */
export function nodeController(store: Store, nowMs: () => number = () => performance.now()): () => void {
  const seen = new Map<string, { readonly heartbeat: string; readonly sinceMs: number }>();
  return () => {
    const nodes = findResource(store.resources(), "nodes");
    if (nodes === undefined) return;
    for (const node of store.list(nodes)) {
      const conditions = at(node, "status", "conditions");
      const condition: unknown = Array.isArray(conditions) ? conditions[0] : undefined;
      if (!isRecord(condition) || condition["status"] === "Unknown") continue;
      const heartbeat = String(condition["lastHeartbeatTime"]);
      const known = seen.get(node.metadata.name);
      if (known?.heartbeat !== heartbeat) seen.set(node.metadata.name, { heartbeat, sinceMs: nowMs() });
      else if (nowMs() - known.sinceMs >= LOST_MS) {
        const lost = {
          ...condition,
          status: "Unknown",
          reason: "NodeStatusUnknown",
          message: "Kubelet stopped posting node status.",
        };
        store.put({ ...node, status: { ...(node["status"] as object), conditions: [lost] } });
      }
    }
  };
}
