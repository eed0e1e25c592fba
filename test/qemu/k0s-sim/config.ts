/** Reading, defaulting and checking a ClusterConfig. */
import { existsSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { parseDocument, stringify } from "yaml";
import { check, clusterConfigSchema, decode, isRecord } from "./schema.ts";
import { rooted, SimError } from "./stand-in.ts";

export type Json = Record<string, unknown>;

export interface Chart {
  readonly name: string;
  readonly chartname: string;
  readonly namespace: string;
  readonly version?: string;
  readonly values?: string;
}

export interface ClusterConfig {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: Json;
}

export const at = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((each, key) => (isRecord(each) ? each[key] : undefined), value);

export const textAt = (value: unknown, ...path: readonly string[]): string => {
  const found = at(value, ...path);
  return typeof found === "string" ? found : "";
};

export const numberAt = (value: unknown, fallback: number, ...path: readonly string[]): number => {
  const found = at(value, ...path);
  return typeof found === "number" ? found : fallback;
};

export const listAt = (value: unknown, ...path: readonly string[]): readonly unknown[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
};

/** First IPv4 that is neither loopback nor of the interfaces k0s skips; docker0 and virbr0 are not skipped. */
export function firstPublicAddress(): string | undefined {
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    if (/^(?:vxlan\.calico|kube-bridge|dummyvip0|veth|cali)/.test(name)) continue;
    const found = addresses?.find((address) => address.family === "IPv4" && !address.internal);
    if (found !== undefined) return found.address;
  }
  return undefined;
}

export interface LoadOptions {
  readonly path: string;
  /** The built-in configuration, no file at all. */
  readonly isDefaults?: boolean;
  readonly isSingle?: boolean;
  readonly dataDir?: string;
  readonly featureGates?: string;
}

/** A missing default file means the built-in configuration; a missing named one is an error. */
export async function readConfigText(path: string): Promise<string | undefined> {
  if (path === "-") return await Bun.stdin.text();
  if (existsSync(rooted(path))) return readFileSync(rooted(path), "utf8");
  if (path === "/etc/k0s/k0s.yaml") return undefined;
  throw new SimError(`failed to load config: failed to open config file: open ${path}: no such file or directory`);
}

export async function loadConfig(options: LoadOptions): Promise<ClusterConfig> {
  const text = options.isDefaults === true ? "" : await readConfigText(options.path);
  const { config, problems } = parseConfig(text ?? "", options);
  if (problems.length > 0) throw new SimError(problems.join("\n"));
  return config;
}

/** sigs.k8s.io/yaml reads YAML 1.1: yes, no, on and off are booleans; a key given twice is an error. */
function parseYaml(text: string): unknown {
  const document = parseDocument(text, { version: "1.1", uniqueKeys: true, merge: true });
  const error = document.errors[0];
  if (error !== undefined)
    throw new SimError(`error converting YAML to JSON: yaml: ${error.message.split("\n")[0] ?? ""}`);
  return document.toJS({ maxAliasCount: 100 });
}

export function parseConfig(
  text: string,
  options: Omit<LoadOptions, "path">,
): { readonly config: ClusterConfig; readonly problems: readonly string[] } {
  const raw = parseYaml(text);
  const problems: string[] = [];
  if (raw !== null && raw !== undefined && !isRecord(raw))
    throw new SimError(
      "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal into Go value of type ClusterConfig",
    );
  const given = (decode(raw ?? {}, clusterConfigSchema, "", problems) ?? {}) as Json;
  // The decoder stops k0s before anything is validated.
  const config = withDefaults(given, options);
  if (problems.length > 0) return { config, problems };
  return { config, problems: validate(config, given, options.featureGates ?? "") };
}

function merge(base: unknown, over: unknown): unknown {
  if (!isRecord(base) || !isRecord(over)) return over === undefined ? base : over;
  const result: Json = { ...base };
  for (const [key, value] of Object.entries(over)) result[key] = merge(base[key], value);
  return result;
}

function withDefaults(given: Json, options: Omit<LoadOptions, "path">): ClusterConfig {
  const address = firstPublicAddress() ?? "127.0.0.1";
  const isKine = options.isSingle === true && at(given, "spec", "storage") === undefined;
  const type = textAt(given, "spec", "storage", "type") || (isKine ? "kine" : "etcd");
  const storage =
    type === "kine"
      ? // Not the --data-dir given: upstream spells the default folder out.
        { type, kine: { dataSource: "sqlite:///var/lib/k0s/db/state.db?mode=rwc&_journal=WAL" } }
      : { type, etcd: { peerAddress: address } };
  const defaults: Json = {
    apiVersion: "k0s.k0sproject.io/v1beta1",
    kind: "ClusterConfig",
    metadata: { name: "k0s", namespace: "kube-system" },
    spec: {
      api: {
        address,
        ca: { certificatesExpireAfter: "8760h0m0s", expiresAfter: "87600h0m0s" },
        k0sApiPort: 9443,
        port: 6443,
        sans: [],
      },
      controllerManager: {},
      extensions: { helm: { concurrencyLevel: 5 } },
      installConfig: {
        users: {
          etcdUser: "etcd",
          kineUser: "kube-apiserver",
          konnectivityUser: "konnectivity-server",
          kubeAPIserverUser: "kube-apiserver",
          kubeSchedulerUser: "kube-scheduler",
        },
      },
      konnectivity: { adminPort: 8133, agentPort: 8132 },
      network: {
        clusterDomain: "cluster.local",
        dualStack: { enabled: false },
        kubeProxy: { metricsBindAddress: "0.0.0.0:10249", mode: "iptables" },
        kuberouter: { autoMTU: true, hairpin: "Enabled", metricsPort: 8080 },
        nodeLocalLoadBalancing: { enabled: false, type: "EnvoyProxy" },
        podCIDR: "10.244.0.0/16",
        provider: "kuberouter",
        serviceCIDR: "10.96.0.0/12",
      },
      scheduler: {},
      storage,
      telemetry: { enabled: false },
    },
  };
  return merge(defaults, given) as ClusterConfig;
}

function validate(config: ClusterConfig, given: Json, featureGates: string): string[] {
  const found = check(given, clusterConfigSchema, "");
  const network = at(config, "spec", "network");
  const family = (cidr: string): number => (cidr.includes(":") ? 6 : 4);
  const podCidr = textAt(network, "podCIDR");
  const serviceCidr = textAt(network, "serviceCIDR");
  if (family(podCidr) !== family(serviceCidr))
    found.push("spec: network: podCIDR and serviceCIDR must be of the same address family");
  if (family(serviceCidr) === 6 && Number(serviceCidr.split("/")[1]) > 108)
    found.push(`spec: network: serviceCIDR: Invalid value: "${serviceCidr}": must be at most /108`);
  if (family(podCidr) === 6 && !/(?:^|,)IPv6SingleStack=true/.test(featureGates))
    found.push("spec: network: feature gate IPv6SingleStack must be explicitly enabled to use IPv6 single stack");
  for (const [index, chart] of listAt(config, "spec", "extensions", "helm", "charts").entries()) {
    const where = `spec: extensions: helm: charts[${index}]`;
    const name = textAt(chart, "name");
    if (
      name === "" ||
      name.length > 53 ||
      !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)
    )
      found.push(`${where}: name: Invalid value: "${name}"`);
    for (const key of ["chartname", "namespace"])
      if (textAt(chart, key) === "") found.push(`${where}: ${key}: Required value`);
  }
  found.push(...validateLoadBalancing(at(network, "controlPlaneLoadBalancing")));
  return [...new Set(found)].toSorted();
}

function validateLoadBalancing(cplb: unknown): string[] {
  const found: string[] = [];
  for (const instance of listAt(cplb, "keepalived", "vrrpInstances")) {
    const name = textAt(instance, "interface");
    const where = "spec: network: controlPlaneLoadBalancing: keepalived: vrrpInstances";
    // A name is not looked up; a MAC and the default route's card are.
    if (name === "" && defaultRouteCard() === undefined)
      found.push(`${where}: failed to get default network interface: no default route found`);
    if (/^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(name) && cardByMac(name) === undefined)
      found.push(`${where}: interface with MAC address ${name} not found`);
    const source = textAt(instance, "unicastSourceIP");
    const peers = listAt(instance, "unicastPeers");
    if (peers.length > 0 && source === "") found.push(`${where}: unicastPeers require a valid unicastSourceIP`);
    if (peers.includes(source) && source !== "") found.push(`${where}: unicastPeers must not contain unicastSourceIP`);
  }
  return found;
}

export function defaultRouteCard(): string | undefined {
  if (!existsSync("/proc/net/route")) return undefined;
  const rows = readFileSync("/proc/net/route", "utf8").split("\n").slice(1);
  return rows.map((row) => row.split("\t")).find((row) => row[1] === "00000000")?.[0];
}

export const cardByMac = (mac: string): string | undefined =>
  Object.entries(networkInterfaces()).find(([, rows]) => rows?.some((row) => row.mac === mac.toLowerCase()))?.[0];

export const configYaml = (config: unknown): string => stringify(config, { sortMapEntries: true, lineWidth: 0 });

export const chartsOf = (config: ClusterConfig): readonly Chart[] =>
  listAt(config, "spec", "extensions", "helm", "charts") as readonly Chart[];
