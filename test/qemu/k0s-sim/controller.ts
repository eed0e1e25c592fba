/** `k0s controller`: runs until it is told to stop. */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { answerApi, bootstrapToken, identify, publicAnswer, refusal } from "./api-server.ts";
import { at, loadConfig, numberAt, textAt } from "./config.ts";
import { callApi, forward } from "./api-client.ts";
import { issue } from "./certificates.ts";
import { aloneCluster, startCluster } from "./cluster.ts";
import { COMPONENTS, CONTROLLER } from "./flag-sets.ts";
import { parseFlags, type Parsed } from "./flags.ts";
import { announceMember } from "./etcd-member.ts";
import { startHelm } from "./helm.ts";
import { joinControlPlane, serveJoinApi } from "./join.ts";
import { startLeases } from "./leases.ts";
import { startDeployer } from "./manifests.ts";
import { memberName } from "./members.ts";
import { startKeepalived } from "./keepalived.ts";
import { preparePki } from "./pki.ts";
import { preFlight } from "./sysinfo.ts";
import { adminConfig, dropRuntime, isAlive, readRuntime, writeRuntime } from "./runtime.ts";
import { BANNER, fault, log, rooted, SIM_VERSION, SimError } from "./stand-in.ts";
import { isRunning, serveStatus, type Status } from "./status.ts";
import { pathOf, resourceOf, type KubeObject } from "./resources.ts";
import { answerSigning } from "./signing.ts";
import { openStore, type Store } from "./store.ts";
import { decodeToken } from "./token.ts";
import { listenTls } from "./tls-server.ts";
import { nodeController, startWorkload, type Workload } from "./workload.ts";

export async function runController(argv: readonly string[]): Promise<void> {
  const parsed = parseFlags(CONTROLLER, argv);
  const token = joinToken(parsed);
  for (const name of parsed.list("disable-components"))
    if (!COMPONENTS.has(name)) throw new SimError(`unknown component ${name}`);
  log("info", `${BANNER} (${SIM_VERSION})`);
  await guardStart(parsed);
  const isSingle = parsed.isSet("single");
  const config = await loadConfig({
    path: parsed.text("config"),
    isSingle,
    featureGates: parsed.text("feature-gates"),
  });
  if (isSingle && at(config, "spec", "network", "controlPlaneLoadBalancing", "enabled") === true)
    throw new SimError("control plane load balancing cannot be used in a single-node cluster");
  const hasWorkload = isSingle || parsed.isSet("enable-worker");
  preFlight({ isController: true, isWorker: hasWorkload, isIgnored: parsed.isSet("ignore-pre-flight-checks") });
  const dataDir = rooted(resolve(parsed.text("data-dir")));
  prepareDataDir(dataDir);
  const runtime = {
    dataDir: resolve(parsed.text("data-dir")),
    configPath: resolve(parsed.text("config")),
    pid: process.pid,
  };
  writeRuntime(runtime);

  if (token !== undefined && !existsSync(join(dataDir, "etcd/member")))
    await joinControlPlane(decodeToken(token), dataDir, config);
  const pki = await preparePki(dataDir, config, hostname());
  const isEtcd = textAt(config, "spec", "storage", "type") === "etcd";
  const store = openStore(join(dataDir, isEtcd ? "etcd/member/snap/db" : "db/state.db"));
  ensureNamespaces(store);
  if (parsed.isSet("init-only")) return;
  const cluster = isEtcd ? await startCluster({ dataDir, config, store }) : aloneCluster;

  const slow = Number(fault("slow-start") ?? "0");
  if (slow > 0) await Bun.sleep(slow);
  while (fault("never-ready") !== undefined) await Bun.sleep(200);
  const host = textAt(config, "spec", "api", "address");
  const only = at(config, "spec", "api", "onlyBindToAddress") === true;
  const port = numberAt(config, 6443, "spec", "api", "port");
  const keep = async (object: KubeObject): Promise<void> => {
    const server = cluster.leader()?.api;
    const resource = resourceOf(store.resources(), object);
    if (server === undefined || resource === undefined) {
      store.put(object);
      return;
    }
    const to = { ...adminConfig(runtime.dataDir), server };
    const { status } = await callApi(to, "POST", pathOf(resource, undefined), object);
    if (status >= 300) throw new Error(`the leader keeps no ${object.kind}: ${status}`);
  };
  const api = await listenTls({ port, ...(only ? { host } : {}), pair: pki.server, ca: pki.ca.cert }, async (call) => {
    const open = publicAnswer(call.path, () => cluster.leader() !== undefined);
    if (open !== undefined) return open;
    const leader = cluster.leader();
    if (leader === undefined) return { status: 500, json: { message: "etcdserver: no leader" } };
    if (call.path === "/k0s-sim/kubelet-certificate" && call.method === "POST") {
      const isWorker = call.bearer !== undefined && bootstrapToken(store, call.bearer) === "worker";
      if (!isWorker) return { status: 401, json: { message: "Unauthorized" } };
      const pair = await issue(pki.ca, { commonName: `system:node:${call.body}`, organization: "system:nodes" });
      return { status: 201, json: pair };
    }
    const signed = await answerSigning({ ca: pki.ca, store, keep }, call);
    if (signed !== undefined) return signed;
    const identity = identify(store, call);
    if (leader.api === undefined || identity === undefined) return answerApi(store, call, identity);
    // Written where the leader is, and read there: what was written is seen by whoever asks next, as of etcd. Who may do
    // it was decided here.
    const refused = refusal(store, call, identity);
    return refused ?? (await forward({ ...adminConfig(runtime.dataDir), server: leader.api }, call));
  });
  log("info", `listening on port ${port}`, "kube-apiserver");
  const join9443 = await serveJoinApi({
    port: numberAt(config, 9443, "spec", "api", "k0sApiPort"),
    dataDir,
    pki,
    store,
    ...(only ? { host } : {}),
  });
  const keepalived = startKeepalived(config);
  const helm = startHelm(store, config, () => cluster.isLeader());
  const deployer = startDeployer(store, join(dataDir, "manifests"), () => cluster.isLeader());
  // A single node elects nobody.
  const leases = isSingle
    ? undefined
    : startLeases({ name: memberName(config), store, cluster, admin: adminConfig(runtime.dataDir) });
  const peerAddress = textAt(config, "spec", "storage", "etcd", "peerAddress");
  const announced = isEtcd
    ? announceMember({ name: memberName(config), peerAddress, store, cluster, admin: adminConfig(runtime.dataDir) })
    : undefined;
  const markLost = nodeController(store);
  const lost = setInterval(() => {
    if (cluster.isLeader()) markLost();
  }, 5000);

  let workload: Workload | undefined;
  if (hasWorkload)
    workload = await startWorkload({
      dataDir,
      parsed,
      kubeConfig: adminConfig(runtime.dataDir),
      isController: true,
      isTainted: !isSingle && !parsed.isSet("no-taints"),
      provider: textAt(config, "spec", "network", "provider"),
    });
  const status = serveStatus(parsed.text("status-socket"), async (): Promise<Status> => {
    if (workload !== undefined) await workload.ready;
    return {
      Version: SIM_VERSION,
      Pid: process.pid,
      PPid: 0,
      Role: "controller",
      SysInit: "",
      StubFile: "",
      Output: "",
      Workloads: hasWorkload,
      SingleNode: isSingle,
      Args: [process.env["K0S_SIM_EXE"] ?? "k0s", "controller", ...argv],
      WorkerToAPIConnectionStatus: { Message: "", Success: workload !== undefined },
      ClusterConfig: config,
      K0sVars: {
        DataDir: runtime.dataDir,
        StatusSocketPath: parsed.text("status-socket"),
        StartupConfigPath: runtime.configPath,
      },
    };
  });
  log("info", "control plane is up");
  await untilTold();
  log("info", "shutting down");
  clearInterval(lost);
  for (const part of [leases, announced, status, workload, deployer, helm, keepalived, join9443, api]) part?.stop();
  await cluster.stop();
  store.close();
  dropRuntime();
}

/** Positional, `--token-file` or K0S_TOKEN: more than one is an error. Read lazily by who needs it. */
export function joinToken(parsed: Parsed): string | undefined {
  const file = parsed.text("token-file");
  const sources = [parsed.positional[0], file, process.env["K0S_TOKEN"]].filter(
    (each) => each !== undefined && each !== "",
  );
  if (sources.length > 1)
    throw new SimError(
      "you can only pass one token source: token argument, --token-file or the K0S_TOKEN environment variable",
    );
  if (file === "") return sources[0];
  if (!existsSync(rooted(file))) throw new SimError(`token file "${file}" does not exist`);
  return readFileSync(rooted(file), "utf8").trim();
}

/** Faults of the start, and the lock against a second instance. */
export async function guardStart(parsed: Parsed): Promise<void> {
  if (fault("restart-loop") !== undefined) {
    await Bun.sleep(500);
    throw new SimError("failed to start: the test wants it so");
  }
  const running = readRuntime();
  if (running.pid !== process.pid && isAlive(running.pid) && (await isRunning(parsed.text("status-socket"))))
    throw new SimError("failed to initialize runtime config: another instance of k0s is already running");
}

export function untilTold(): Promise<void> {
  const { promise, resolve: done } = Promise.withResolvers<undefined>();
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.once(signal, () => {
      done(undefined);
    });
  return promise;
}

/** k0s unpacks its programs and runs them there: a noexec mount can't work. */
export function prepareDataDir(dataDir: string): void {
  for (const name of ["bin", "pki/etcd", "manifests", "images", "containerd", "kubelet", "helmhome", "etcd"])
    mkdirSync(join(dataDir, name), { recursive: true, mode: name === "etcd" ? 0o700 : 0o755 });
  for (const name of ["kubelet", "containerd", "runc", "kube-apiserver", "etcd", "xtables-nft-multi"]) {
    const path = join(dataDir, "bin", name);
    writeFileSync(path, `#!/bin/sh\n# ${BANNER}\nexit 0\n`);
    chmodSync(path, 0o755);
  }
  const probe = Bun.spawnSync([join(dataDir, "bin/kubelet")], { stdout: "ignore", stderr: "ignore" });
  if (probe.exitCode !== 0) throw new SimError(`fork/exec ${join(dataDir, "bin/kubelet")}: permission denied`);
}

function ensureNamespaces(store: Store): void {
  const resource = store.resources().find((each) => each.kind === "Namespace");
  for (const name of ["default", "kube-system", "kube-public", "kube-node-lease", "k0s-autopilot"])
    if (resource !== undefined && store.get(resource, undefined, name) === undefined)
      store.put({ apiVersion: "v1", kind: "Namespace", metadata: { name }, status: { phase: "Active" } });
}
