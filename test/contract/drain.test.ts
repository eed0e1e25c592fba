// budget: 120 s
/** Cordoning and draining as kubectl does it: what Corium reads of its texts and of the objects. */
import { afterEach, describe, expect } from "bun:test";
import { parse, stringify } from "yaml";
import { parseBudgets, parseDrain, parseNodes } from "../../k0s/nodes/parse.ts";
import { freePort } from "../qemu/harness/vm.ts";
import { testNeeding } from "../runner/needs.ts";
import { until } from "../support/until.ts";
import { openProgram, type Program, type Ran } from "./program.ts";

const CONFIG = "/etc/k0s/k0s.yaml";
let k0s: Program;

afterEach(() => k0s.dispose());

async function start(): Promise<void> {
  k0s = await openProgram();
  const config = parse((await k0s.run(["config", "create"])).stdout) as { readonly spec: { readonly api: object } };
  Object.assign(config.spec.api, { port: await freePort(), k0sApiPort: await freePort() });
  k0s.write(CONFIG, stringify(config));
  k0s.start(["controller", "--config", CONFIG, "--ignore-pre-flight-checks"]);
  await until("k0s status answers", async () => (await k0s.run(["status"])).exitCode === 0);
}

const kubectl = (...argv: readonly string[]): Promise<Ran> => k0s.run(["kubectl", ...argv], { timeoutMs: 60_000 });

async function apply(...objects: readonly object[]): Promise<void> {
  k0s.write("/objects.yaml", objects.map((object) => stringify(object)).join("---\n"));
  const ran = await kubectl("apply", "-f", k0s.host("/objects.yaml"));
  if (ran.exitCode !== 0) throw new Error(ran.stderr);
}

const node = (name: string): object => ({ apiVersion: "v1", kind: "Node", metadata: { name } });
const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } };
const pod = (name: string, owner?: string, volumes: readonly object[] = []): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name,
    namespace: "shop",
    labels: { app: "web" },
    ...(owner === undefined
      ? {}
      : { ownerReferences: [{ kind: owner, name: "web", apiVersion: "apps/v1", uid: "1" }] }),
  },
  spec: { nodeName: "w1", volumes, containers: [{ name: "a", image: "a" }] },
});
const budget = (disruptionsAllowed: number): object => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "web", namespace: "shop" },
  spec: { selector: { matchLabels: { app: "web" } }, minAvailable: 1 },
  status: { disruptionsAllowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
});
const nodes = async (): Promise<ReturnType<typeof parseNodes>> =>
  parseNodes((await kubectl("get", "nodes", "-o", "json")).stdout);
const drain = (): Promise<Ran> =>
  kubectl("drain", "w1", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=6s");

// Pods without a scheduler and a kubelet, and the status of a budget: only the stand-in takes these as they come.
describe("a node of the stand-in", () => {
  testNeeding(
    ["the stand-in"],
    "is cordoned and uncordoned, by kubectl's verb and by a patch with a note",
    async () => {
      await start();
      await apply(node("w1"));
      expect((await kubectl("cordon", "w1")).stdout).toBe("node/w1 cordoned\n");
      expect((await kubectl("cordon", "w1")).stdout).toBe("node/w1 already cordoned\n");
      expect(await nodes()).toMatchObject([{ name: "w1", isCordoned: true, isOurs: false }]);
      expect((await kubectl("uncordon", "w1")).stdout).toBe("node/w1 uncordoned\n");
      const noted = {
        metadata: { annotations: { "corium/cordoned-by": "operator ann" } },
        spec: { unschedulable: true },
      };
      await kubectl("patch", "node", "w1", "--type", "merge", "-p", JSON.stringify(noted));
      expect(await nodes()).toMatchObject([{ isCordoned: true, isOurs: true }]);
      const undone = { metadata: { annotations: { "corium/cordoned-by": null } }, spec: { unschedulable: null } };
      await kubectl("patch", "node", "w1", "--type", "merge", "-p", JSON.stringify(undone));
      expect(await nodes()).toMatchObject([{ isCordoned: false, isOurs: false }]);
      const none = await kubectl("cordon", "w9");
      expect([none.exitCode, none.stderr]).toEqual([1, 'Error from server (NotFound): nodes "w9" not found\n']);
    },
    90_000,
  );

  testNeeding(
    ["the stand-in"],
    "is drained: what a controller owns goes, what a DaemonSet owns stays",
    async () => {
      await start();
      await apply(
        node("w1"),
        namespace,
        pod("web-1", "ReplicaSet", [{ name: "t", emptyDir: {} }]),
        pod("agent", "DaemonSet"),
      );
      const bare = await kubectl("drain", "w1");
      expect([bare.exitCode, parseDrain(bare).kind]).toEqual([1, "refused"]);
      const ran = await drain();
      expect([ran.exitCode, parseDrain(ran)]).toEqual([0, { kind: "drained" }]);
      expect(ran.stdout).toContain("pod/web-1 evicted\nnode/w1 drained\n");
      expect(ran.stderr).toBe("Warning: ignoring DaemonSet-managed Pods: shop/agent\n");
      expect((await kubectl("get", "pods", "-n", "shop", "-o", "name")).stdout).toBe("pod/agent\n");
      expect(await nodes()).toMatchObject([{ isCordoned: true }]);
    },
    90_000,
  );

  testNeeding(
    ["the stand-in"],
    "keeps a pod that a budget holds, and one that nothing owns",
    async () => {
      await start();
      await apply(node("w1"), namespace, pod("web-1", "ReplicaSet"), budget(0));
      const blocked = await drain();
      expect(parseDrain(blocked)).toMatchObject({ kind: "blocked", pods: [{ namespace: "shop", name: "web-1" }] });
      expect(parseBudgets((await kubectl("get", "poddisruptionbudgets", "-A", "-o", "json")).stdout)).toMatchObject([
        { namespace: "shop", name: "web" },
      ]);
      await apply(budget(1), pod("naked"));
      expect(parseDrain(await drain())).toEqual({
        kind: "refused",
        said: "Pods that declare no controller: shop/naked",
      });
      await kubectl("delete", "pod", "naked", "-n", "shop");
      expect(parseDrain(await drain())).toEqual({ kind: "drained" });
    },
    90_000,
  );
});
