// budget: 420 s
/** Day two over a k0s that runs: the gate's removals and the hand-over, and what becomes of the cluster's objects. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout } from "bun:test";
import { stringify } from "yaml";
import { beginHandover } from "../../apply/handover/driver.ts";
import { lookAtHandover, planHandover } from "../../apply/handover/look/driver.ts";
import { freePort } from "../qemu/harness/vm.ts";
import { testNeeding } from "../runner/needs.ts";
import { APPLICATION_KIND, applicationObject } from "../support/argo-cd.ts";
import { type ContractNode, openNode } from "./node.ts";
import { until } from "../support/until.ts";
import { openProgram, type Program } from "./program.ts";

// Starts of k0s, beside whatever else this machine does.
setDefaultTimeout(180_000);

let k0s: Program;
let node: ContractNode;
let ports: object;

const NEEDS = ["the stand-in"];
const configMap = (name: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, namespace: default}\ndata: {a: b}\n`;
const addon = (name: string): object => ({ name, chart: `oci://r.example.com/${name}`, version: "1.0.0" });

/** Ports of this test's own, through the patch that any operator has. */
const text = (more: object = {}, spec: object = {}): string =>
  stringify({ role: "single", node: { name: "n1" }, k0s: { patch: { spec: { api: ports, ...spec } } }, ...more });

const kubectl = (...argv: readonly string[]): ReturnType<Program["run"]> => k0s.run(["kubectl", ...argv]);
const isThere = async (kind: string, name: string, namespace = "default"): Promise<boolean> =>
  (await kubectl("get", kind, name, "-n", namespace)).exitCode === 0;
const put = async (yaml: string): Promise<void> => {
  const ran = await k0s.run(["kubectl", "apply", "-f", "-"], { stdin: yaml });
  if (ran.exitCode !== 0) throw new Error(ran.stderr);
};

async function begin(document: string): Promise<void> {
  node = await openNode(k0s, document, ["--single", "--ignore-pre-flight-checks"]);
  await until("k0s answers", async () => (await kubectl("get", "--raw", "/readyz")).exitCode === 0);
}

beforeEach(async () => {
  k0s = await openProgram();
  ports = { port: await freePort(), k0sApiPort: await freePort() };
});
afterEach(async () => {
  await node.close();
  await k0s.dispose();
});

describe("B111: an add-on leaves the document once it is uninstalled, and no sooner", () => {
  testNeeding(
    NEEDS,
    "is refused while it is there; once it is uninstalled it goes, and nothing comes back",
    async () => {
      await begin(text({ addons: [addon("web"), addon("db")] }));
      await until(
        "both releases",
        async () => (await isThere("configmap", "web-release")) && isThere("configmap", "db-release"),
      );
      const without = text({ addons: [addon("db")] });
      expect(await node.apply(without)).toMatchObject({ status: 409, body: { reason: "immutable" } });

      expect((await kubectl("delete", "chart", "-n", "kube-system", "k0s-addon-chart-web")).exitCode).toBe(0);
      expect(await node.apply(without, { isDryRun: true })).toMatchObject({ answer: { status: "planned" } });
      expect(await node.apply(without)).toMatchObject({
        answer: { status: "reconciled", restarted: ["k0scontroller"] },
      });
      expect(await isThere("chart", "k0s-addon-chart-web", "kube-system")).toBe(false);
      expect(await isThere("configmap", "db-release")).toBe(true);
    },
  );

  testNeeding(NEEDS, "counts as there when k0s is down", async () => {
    await begin(text({ addons: [addon("web")] }));
    await until("the release", () => isThere("configmap", "web-release"));
    await node.host.systemd.stop("k0scontroller.service");
    const refused = await node.apply(text());
    expect(refused).toMatchObject({ status: 409 });
    expect(JSON.stringify(refused)).toContain("whether it is uninstalled is not known");
  });

  testNeeding(NEEDS, "charts that a patch puts others in the place of are refused, each by its name", async () => {
    await begin(text({ addons: [addon("web"), addon("db")] }));
    await until(
      "both releases",
      async () => (await isThere("configmap", "web-release")) && isThere("configmap", "db-release"),
    );
    const charts = [{ name: "own", chartname: "oci://r.example.com/own", namespace: "default" }];
    const replaced = text({ addons: [addon("web"), addon("db")] }, { extensions: { helm: { charts } } });
    const refused = await node.apply(replaced, { acknowledge: true });
    expect(refused).toMatchObject({
      status: 409,
      body: {
        refused: {
          removed: [
            { path: "k0s.patch", name: "db" },
            { path: "k0s.patch", name: "web" },
          ],
        },
      },
    });
    for (const name of ["web", "db"]) await kubectl("delete", "chart", "-n", "kube-system", `k0s-addon-chart-${name}`);
    expect(await node.apply(replaced, { isDryRun: true })).toMatchObject({ answer: { status: "planned" } });
  });
});

testNeeding(
  NEEDS,
  "a patch of what Corium models is refused unless it is owned, and k0s is not restarted",
  async () => {
    await begin(text());
    const patched = text({}, { storage: { type: "kine", kine: { dataSource: "sqlite:///elsewhere.db" } } });
    const before = await node.host.systemd.status("k0scontroller.service");
    expect(await node.apply(patched)).toMatchObject({ status: 409, body: { reason: "patch-overrides" } });
    expect(await node.apply(patched, { acknowledge: true, isDryRun: true })).toMatchObject({
      answer: { status: "planned" },
    });
    expect(await node.host.systemd.status("k0scontroller.service")).toEqual(before);
    expect(node.state.operations.list()).toEqual([]);
  },
);

describe("the hand-over of the CNI", () => {
  const handover = (mode: string): object => ({
    network: { cni: "custom", handover: { mode, stack: "cni", application: { name: "cni", namespace: "argocd" } } },
    manifests: [
      { name: "cni", files: [{ name: "cni.yaml", content: configMap("cni") }] },
      { name: "site", files: [{ name: "site.yaml", content: configMap("site") }] },
    ],
  });
  const handOver = async (): Promise<void> => {
    const planned = await planHandover(node.dependencies);
    if (planned.kind !== "planned") throw new Error(JSON.stringify(planned));
    const begun = beginHandover(node.dependencies, planned.plan, { kind: "local" });
    if (begun.kind !== "begun") throw new Error(begun.kind);
    await begun.ended;
  };
  const bothThere = async (): Promise<boolean> => (await isThere("configmap", "cni")) && isThere("configmap", "site");

  testNeeding(
    NEEDS,
    "deletes nothing: the objects stay, GitOps's changes stay over starts, and applies write no stack again",
    async () => {
      await begin(text(handover("manual")));
      await until("both stacks", bothThere);
      await handOver();
      expect(node.state.operations.list()[0]).toMatchObject({ kind: "handover", phase: "succeeded" });
      await put(configMap("cni").replace("{a: b}", "{owner: gitops}"));
      const changed = { ...handover("manual"), addons: [addon("web")] };
      expect(await node.apply(text(changed))).toMatchObject({ answer: { status: "reconciled" } });
      // Longer than the deployer takes to prune.
      await Bun.sleep(3000);
      expect(await bothThere()).toBe(true);
      const { stdout } = await kubectl("get", "configmap", "cni", "-n", "default", "-o", "jsonpath={.data.owner}");
      expect(stdout).toBe("gitops");
      expect(await Bun.file(k0s.host("/var/lib/k0s/handed-over/cni/cni.yaml")).text()).toBe(configMap("cni"));
    },
  );

  testNeeding(NEEDS, "for contrast: moved under a k0s that runs, the objects are deleted", async () => {
    await begin(text(handover("manual")));
    await until("both stacks", bothThere);
    await node.host.files.rename("/var/lib/k0s/manifests/cni", "/var/lib/k0s/handed-over/cni");
    await until("the object is pruned", async () => !(await isThere("configmap", "cni")));
    expect(await isThere("configmap", "site")).toBe(true);
  });

  testNeeding(
    NEEDS,
    "waits for Argo CD, its Application, its sync and its health; what never syncs is said to",
    async () => {
      await begin(text(handover("automatic")));
      const reason = async (): Promise<string | undefined> => (await lookAtHandover(node.dependencies))?.reason;
      expect(await reason()).toBe("WaitingForArgoCD");
      await put(APPLICATION_KIND);
      expect(await reason()).toBe("WaitingForArgoCD");
      await put(applicationObject("cni", { sync: "OutOfSync", health: "Missing", isAutomated: false }));
      expect(await reason()).toBe("WillNeverSync");
      await put(applicationObject("cni", { sync: "OutOfSync", health: "Missing" }));
      expect(await reason()).toBe("NotSynced");
      await put(applicationObject("cni", { sync: "Synced", health: "Progressing" }));
      expect(await reason()).toBe("NotHealthy");
      k0s.write("/etc/k0s/sim-faults/slow-kubectl", "600000 applications.argoproj.io");
      expect(await reason()).toBe("NoAnswer");
      k0s.write("/etc/k0s/sim-faults/slow-kubectl", "");
      await put(applicationObject("cni", { sync: "Synced", health: "Healthy" }));
      expect(await reason()).toBe("Synced");
    },
  );
});
