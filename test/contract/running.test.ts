// budget: 300 s
/** A k0s that runs: status, tokens, objects, charts and stacks; see test/contract/program.ts for a real one. */
import { afterEach, beforeEach, describe, expect } from "bun:test";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parse, stringify } from "yaml";
import { freePort } from "../qemu/harness/vm.ts";
import { testNeeding } from "../runner/needs.ts";
import { until } from "../support/until.ts";
import { isReal, openProgram, realNeeds, type Program, type Running } from "./program.ts";

let k0s: Program;
let apiPort: number;
let config: { readonly spec: Record<string, Record<string, unknown>> };

const needs = realNeeds("root");
const CONFIG = "/etc/k0s/k0s.yaml";
/** A build machine may have control groups version 1, which is refused at start. */
const FLAGS = isReal ? [] : ["--ignore-pre-flight-checks"];

beforeEach(async () => {
  k0s = await openProgram();
  apiPort = await freePort();
  config = parse((await k0s.run(["config", "create"])).stdout) as typeof config;
  Object.assign(config.spec["api"] ?? {}, { port: apiPort, k0sApiPort: await freePort() });
  writeConfig();
});
afterEach(() => k0s.dispose());

const writeConfig = (): void => {
  k0s.write(CONFIG, stringify(config));
};
const setCharts = (...names: readonly string[]): void => {
  const charts = names.map((name) => ({
    name,
    chartname: `repo/${name}`,
    namespace: "apps",
    version: "1.2.3",
    values: "a: 1\n",
  }));
  config.spec["extensions"] = { helm: { charts, repositories: [{ name: "repo", url: "https://charts.example.com" }] } };
  writeConfig();
};

async function start(...flags: readonly string[]): Promise<Running> {
  const running = k0s.start(["controller", "--config", CONFIG, ...FLAGS, ...flags]);
  await until("k0s status answers", async () => (await k0s.run(["status"])).exitCode === 0, {
    limitMs: isReal ? 180_000 : 60_000,
  });
  return running;
}

const json = async <T>(argv: readonly string[]): Promise<T> => {
  const ran = await k0s.run(argv);
  if (ran.exitCode !== 0) throw new Error(`${argv.join(" ")}: ${ran.stderr}`);
  return JSON.parse(ran.stdout) as T;
};
const get = (...argv: readonly string[]): ReturnType<Program["run"]> => k0s.run(["kubectl", "get", ...argv]);

function writeStack(stack: string, files: Readonly<Record<string, string>>): string {
  const folder = k0s.host(`/var/lib/k0s/manifests/${stack}`);
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(`${folder}/${name}.tmp`, content);
    renameSync(`${folder}/${name}.tmp`, `${folder}/${name}`);
  }
  return folder;
}
const configMap = (name: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, namespace: default}\ndata: {a: b}\n`;
const exists = async (name: string): Promise<boolean> => (await get("configmap", name, "-n", "default")).exitCode === 0;

describe("status", () => {
  testNeeding(needs, "as JSON has the keys a wrapper reads, and says what the node is", async () => {
    await start("--single");
    const status = await json<Record<string, unknown>>(["status", "-o", "json"]);
    expect(Object.keys(status)).toEqual(
      expect.arrayContaining([
        "Version",
        "Pid",
        "Role",
        "Workloads",
        "SingleNode",
        "Args",
        "WorkerToAPIConnectionStatus",
        "ClusterConfig",
        "K0sVars",
      ]),
    );
    expect(status).toMatchObject({ Role: "controller", Workloads: true, SingleNode: true });
    expect((await k0s.run(["status"])).stdout).toMatch(
      /^Version: .*\nProcess ID: \d+\nRole: controller\nWorkloads: true\nSingleNode: true\nKube-api probing successful: true\n/,
    );
  });
  testNeeding(needs, "a controller without workload shows in no kubectl get nodes", async () => {
    await start();
    expect(await json<object>(["status", "-o", "json"])).toMatchObject({ Workloads: false, SingleNode: false });
    expect((await get("nodes")).stdout).toBe("");
  });
  testNeeding(needs, "a second instance is refused while one runs", async () => {
    await start();
    const second = await k0s.run(["controller", "--config", CONFIG, ...FLAGS]);
    expect(second.exitCode).toBe(1);
    expect((await k0s.run(["reset"])).stderr).toContain(
      "another k0s process is still running, please stop k0s before reset",
    );
  });
});

describe("the API", () => {
  testNeeding(needs, "answers /readyz and /version to anybody, and nothing else", async () => {
    await start();
    const ask = (path: string): Promise<Response> =>
      fetch(`https://127.0.0.1:${apiPort}${path}`, { tls: { rejectUnauthorized: false } });
    expect(await (await ask("/readyz")).text()).toBe("ok");
    expect(((await (await ask("/version")).json()) as { readonly major: string }).major).toBe("1");
    expect(await k0s.run(["kubectl", "get", "--raw", "/readyz"])).toMatchObject({ exitCode: 0, stdout: "ok" });
    expect((await ask("/api/v1/nodes")).status).toBe(isReal ? 403 : 401);
  });
  testNeeding(needs, "registers the node with labels and taints, Ready, once the CNI's files are there", async () => {
    await start("--enable-worker", "--labels", "pool=edge", "--taints", "dedicated=gpu:NoSchedule");
    const nodes = await until("a node", async () => {
      const list = await json<{ readonly items: readonly NodeObject[] }>(["kubectl", "get", "nodes", "-o", "json"]);
      return list.items.length > 0 ? list.items : undefined;
    });
    expect(nodes[0]?.metadata.labels).toMatchObject({ pool: "edge", "node.k0sproject.io/role": "control-plane" });
    expect(nodes[0]?.spec.taints?.map((taint) => `${taint.key}:${taint.effect}`)).toEqual(
      expect.arrayContaining(["dedicated:NoSchedule", "node-role.kubernetes.io/control-plane:NoSchedule"]),
    );
    await until("the node is Ready", async () => / Ready /.test((await get("nodes")).stdout), {
      limitMs: isReal ? 180_000 : 60_000,
    });
    expect(readdirSync(k0s.host("/opt/cni/bin")).length).toBeGreaterThan(0);
  });
  testNeeding(needs, "what is not there is NotFound, what is not a type is said so", async () => {
    await start();
    const missing = await get("configmap", "none");
    expect(missing).toMatchObject({ exitCode: 1, stdout: "" });
    expect(missing.stderr).toContain('Error from server (NotFound): configmaps "none" not found');
    const unknown = await get("applications.argoproj.io", "x", "-n", "argocd");
    expect(unknown.exitCode).toBe(1);
    expect(unknown.stderr).toContain(`error: the server doesn't have a resource type "applications"`);
  });
});

interface NodeObject {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: { readonly taints?: readonly { readonly key: string; readonly effect: string }[] };
}

describe("tokens", () => {
  testNeeding(needs, "are base64 of a gzipped kubeconfig for their role, and are listed per role", async () => {
    await start();
    for (const role of ["worker", "controller"]) {
      const ran = await k0s.run(["token", "create", "--role", role, "--expiry", "1h"]);
      expect(ran.exitCode).toBe(0);
      expect(ran.stdout.trim().split("\n")).toHaveLength(1);
      const decoded = parse(new TextDecoder().decode(Bun.gunzipSync(Buffer.from(ran.stdout, "base64")))) as TokenConfig;
      const port = role === "worker" ? apiPort : config.spec["api"]?.["k0sApiPort"];
      expect(decoded.clusters[0]?.cluster.server).toEndWith(`:${String(port)}`);
      expect(decoded.users[0]?.name).toBe(role === "worker" ? "kubelet-bootstrap" : "controller-bootstrap");
      const id = decoded.users[0]?.user.token.split(".")[0] ?? "?";
      expect((await k0s.run(["token", "list", "--role", role])).stdout).toContain(id);
      expect((await k0s.run(["token", "invalidate", id])).exitCode).toBe(0);
      expect((await k0s.run(["token", "list", "--role", role])).stdout).not.toContain(id);
    }
    expect((await k0s.run(["token", "invalidate", "nosuch"])).exitCode).toBe(0);
    expect((await k0s.run(["token", "list", "--role", "worker"])).stdout).toContain("No k0s join tokens found");
  });
  testNeeding(needs, "list without a role is refused, whatever help says", async () => {
    await start();
    const ran = await k0s.run(["token", "list"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toContain("unsupported role");
  });
  testNeeding(needs, "of a single node are refused", async () => {
    await start("--single");
    const ran = await k0s.run(["token", "create"]);
    expect(ran).toMatchObject({ exitCode: 1, stdout: "" });
  });
  testNeeding(needs, "a token that was invalidated is 401 of the join API", async () => {
    await start();
    const ran = await k0s.run(["token", "create", "--role", "controller"]);
    const decoded = parse(new TextDecoder().decode(Bun.gunzipSync(Buffer.from(ran.stdout, "base64")))) as TokenConfig;
    const token = decoded.users[0]?.user.token ?? "";
    const ask = (): Promise<Response> =>
      fetch(`https://127.0.0.1:${String(config.spec["api"]?.["k0sApiPort"])}/v1beta1/ca`, {
        headers: { authorization: `Bearer ${token}` },
        tls: { rejectUnauthorized: false },
      });
    expect((await ask()).status).toBe(200);
    await k0s.run(["token", "invalidate", token.split(".")[0] ?? ""]);
    expect((await ask()).status).toBe(401);
  });
});

interface TokenConfig {
  readonly clusters: readonly { readonly cluster: { readonly server: string } }[];
  readonly users: readonly { readonly name: string; readonly user: { readonly token: string } }[];
}

describe("charts", () => {
  const charts = async (): Promise<string> => (await get("charts", "-n", "kube-system", "-o", "name")).stdout;
  testNeeding(
    ["the stand-in"],
    "become Chart objects with a status; one that left the configuration is uninstalled",
    async () => {
      setCharts("web", "db");
      let running = await start();
      await until("both are released", async () => {
        const list = await json<ChartList>([
          "kubectl",
          "get",
          "charts.helm.k0sproject.io",
          "-n",
          "kube-system",
          "-o",
          "json",
        ]);
        return (
          list.items.length === 2 && list.items.every((item) => item.status?.revision === 1 && item.status.error === "")
        );
      });
      expect(await charts()).toBe(
        "chart.helm.k0sproject.io/k0s-addon-chart-db\nchart.helm.k0sproject.io/k0s-addon-chart-web\n",
      );
      expect((await get("configmap", "web-release", "-n", "apps")).exitCode).toBe(0);
      setCharts("db");
      // The file alone changes nothing: the configuration is read at the start.
      await Bun.sleep(1500);
      expect(await charts()).toContain("addon-chart-web");
      await running.stop();
      running = await start();
      await until("web is uninstalled", async () => !(await charts()).includes("addon-chart-web"));
      expect((await get("configmap", "web-release", "-n", "apps")).exitCode).toBe(1);
      expect((await get("configmap", "db-release", "-n", "apps")).exitCode).toBe(0);
    },
  );
  testNeeding(["the stand-in"], "that fail keep k0s running and carry the error", async () => {
    setCharts("web");
    k0s.write("/etc/k0s/sim-faults/chart-fails", "web\n");
    await start();
    const path = "jsonpath={.status.error}";
    await until(
      "the error",
      async () => (await get("chart", "k0s-addon-chart-web", "-n", "kube-system", "-o", path)).stdout !== "",
    );
    expect((await k0s.run(["status"])).exitCode).toBe(0);
  });
  testNeeding(["the stand-in"], "kubectl delete chart uninstalls, and waits until it is gone", async () => {
    setCharts("web");
    await start();
    await until("web", async () => (await get("configmap", "web-release", "-n", "apps")).exitCode === 0);
    const ran = await k0s.run(["kubectl", "delete", "chart", "-n", "kube-system", "k0s-addon-chart-web"]);
    expect(ran.stdout).toBe('chart.helm.k0sproject.io "k0s-addon-chart-web" deleted\n');
    expect((await get("chart", "k0s-addon-chart-web", "-n", "kube-system")).stderr).toContain("NotFound");
    expect((await get("configmap", "web-release", "-n", "apps")).exitCode).toBe(1);
  });
});

interface ChartList {
  readonly items: readonly { readonly status?: { readonly revision: number; readonly error: string } }[];
}

describe("stacks of manifests", () => {
  testNeeding(needs, "are applied, labelled, and pruned when a file goes while k0s runs", async () => {
    await start();
    const folder = writeStack("site", { "a.yaml": configMap("a"), "b.yaml": configMap("b"), "c.yml": configMap("c") });
    await until("a and b", async () => (await exists("a")) && (await exists("b")));
    expect(await exists("c")).toBe(false);
    const label = await get(
      "configmap",
      "a",
      "-n",
      "default",
      "-o",
      "jsonpath={.metadata.labels.k0s\\.k0sproject\\.io/stack}",
    );
    expect(label.stdout).toBe("site");
    rmSync(`${folder}/b.yaml`);
    await until("b is pruned", async () => !(await exists("b")));
    expect(await exists("a")).toBe(true);
  });
  testNeeding(needs, "whose folder goes while k0s is stopped leave their objects behind", async () => {
    const running = await start();
    const folder = writeStack("site", { "a.yaml": configMap("a") });
    await until("a", () => exists("a"));
    await running.stop();
    rmSync(folder, { recursive: true });
    await start();
    await Bun.sleep(2500);
    expect(await exists("a")).toBe(true);
  });
  testNeeding(needs, "whose folder goes while k0s runs lose them", async () => {
    await start();
    const folder = writeStack("site", { "a.yaml": configMap("a") });
    await until("a", () => exists("a"));
    rmSync(folder, { recursive: true });
    await until("a is gone", async () => !(await exists("a")));
  });
  testNeeding(needs, "with a broken file fail alone, and prune nothing", async () => {
    await start();
    writeStack("site", { "a.yaml": configMap("a") });
    await until("a", () => exists("a"));
    rmSync(k0s.host("/var/lib/k0s/manifests/site/a.yaml"));
    writeStack("site", { "b.yaml": "a: [\n" });
    writeStack("other", { "d.yaml": configMap("d") });
    await until("the other stack", () => exists("d"));
    await Bun.sleep(1500);
    expect(await exists("a")).toBe(true);
  });
  testNeeding(needs, "of reserved names are ignored, and say so in a file", async () => {
    await start();
    const folder = writeStack("helm", { "a.yaml": configMap("reserved") });
    await until("ignored.txt", () => Promise.resolve(existsSync(`${folder}/ignored.txt`)));
    expect(await exists("reserved")).toBe(false);
  });
  testNeeding(needs, "do not put back what was deleted by hand", async () => {
    await start();
    writeStack("site", { "a.yaml": configMap("a") });
    await until("a", () => exists("a"));
    await k0s.run(["kubectl", "delete", "configmap", "a", "-n", "default"]);
    await Bun.sleep(2500);
    expect(await exists("a")).toBe(false);
  });
});

describe("faults that tests switch on in the stand-in", () => {
  testNeeding(["the stand-in"], "restart-loop: each start exits 1", async () => {
    k0s.write("/etc/k0s/sim-faults/restart-loop", "");
    const running = k0s.start(["controller", "--config", CONFIG, ...FLAGS]);
    expect(await running.exited).toBe(1);
    expect(await running.log()).toContain("Error: failed to start");
  });
  testNeeding(["the stand-in"], "hang-status: the caller's timeout decides", async () => {
    await start();
    k0s.write("/etc/k0s/sim-faults/hang-status", "");
    expect((await k0s.run(["status"], { timeoutMs: 1500 })).exitCode).not.toBe(0);
  });
  testNeeding(["the stand-in"], "not-ready: /readyz is 500", async () => {
    await start();
    k0s.write("/etc/k0s/sim-faults/not-ready", "");
    const answer = await fetch(`https://127.0.0.1:${apiPort}/readyz`, { tls: { rejectUnauthorized: false } });
    expect(answer.status).toBe(500);
  });
  testNeeding(["the stand-in"], "every call is recorded, for tests that count them", async () => {
    await k0s.run(["version"]);
    expect(await Bun.file(`${dirname(k0s.host(CONFIG))}/sim-faults/calls.log`).text()).toContain('["version"]\n');
  });
});

describe("reset", () => {
  testNeeding(needs, "takes data, unit and run folder away and leaves /etc/k0s", async () => {
    const running = await start();
    await running.stop();
    const ran = await k0s.run(["reset"]);
    expect(ran.exitCode).toBe(0);
    expect(existsSync(k0s.host("/var/lib/k0s"))).toBe(false);
    expect(existsSync(k0s.host(CONFIG))).toBe(true);
  });
  testNeeding(needs, "B130: one that failed has deleted its data, and fails again for what it left", async () => {
    k0s.write("/etc/k0s/sim-faults/reset-busy", "");
    k0s.write("/run/k0s/containerd/left", "");
    k0s.write("/var/lib/k0s/left", "");
    for (const time of ["first", "second"]) {
      const ran = await k0s.run(["reset"]);
      expect([time, ran.exitCode]).toEqual([time, 1]);
      expect(ran.stderr).toContain("/run/k0s/containerd: device or resource busy");
      expect(existsSync(k0s.host("/var/lib/k0s"))).toBe(false);
      expect(existsSync(k0s.host("/run/k0s/containerd/left"))).toBe(true);
    }
  });
  testNeeding(needs, "stops at a configuration that can't be read", async () => {
    k0s.write(CONFIG, "spec: [\n");
    expect((await k0s.run(["reset"])).exitCode).toBe(1);
  });
});
