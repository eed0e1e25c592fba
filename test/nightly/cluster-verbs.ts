/** What operators do with a whole cluster; test/nightly/cluster.vm.test.ts has one. */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { parseLeader } from "../../k0s/cluster/parse.ts";
import type { Member } from "../qemu/harness/cluster.ts";
import type { Operator } from "../qemu/harness/node.ts";

/** Emulated machines beside each other: a kubectl may take a minute. */
export const SLOW_MS = 180_000;
export const LONG_MS = 2_400_000;
const POLL_MS = 3_000;

export interface WholeCluster {
  readonly operator: Operator;
  /** By their numbers: three controllers, the founder first, and a worker. */
  readonly controllers: readonly number[];
  readonly worker: number;
  readonly member: (number: number) => Member;
  readonly vip: string;
}

export const KUBE_LEASES = "k0s kubectl get leases -n kube-node-lease -o json";
const CHARTS = `k0s kubectl get charts -n kube-system -o 'jsonpath={.items[*].metadata.uid}'`;

/** Asks again while it throws: a node whose k0s is down, an election. */
export async function eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + LONG_MS / 2;
  for (;;) {
    const found = await look().catch(() => undefined);
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`never came: ${what}`);
    await Bun.sleep(POLL_MS);
  }
}

export function testClusterVerbs(cluster: WholeCluster): void {
  const { operator, controllers, worker, member, vip } = cluster;
  const [first = 0, second = 0, third = 0] = controllers;
  const names = controllers.map((number) => `n${number}`);
  const on = (number: number, script: string): Promise<string> => member(number).vm().shell.must(script, SLOW_MS);
  const file = (name: string): string => join(operator.directory, name);
  const configs = (): Promise<readonly string[]> =>
    Promise.all(controllers.map((number) => on(number, "sha256sum /etc/k0s/k0s.yaml /etc/corium/config.yaml")));
  const leader = (asked: number): Promise<string> =>
    eventually("a leader", async () => parseLeader(await on(asked, KUBE_LEASES)));

  test(
    "the kubeconfig leads to the virtual address, which the certificate names; a worker's document is valid",
    async () => {
      const kubeconfig = await operator.cctl(["kubeconfig", `n${second}`], SLOW_MS);
      expect([kubeconfig.exitCode, kubeconfig.stderr]).toEqual([0, ""]);
      expect(kubeconfig.stdout).toContain(`server: https://${vip}:6443`);
      const elsewhere = await operator.cctl(["kubeconfig", `n${second}`, "--server", "203.0.113.1"], SLOW_MS);
      expect(elsewhere.stderr).toContain("does not name 203.0.113.1");
      await operator.must(["worker-config", `n${first}`, "--name", "n99", "--to", "n99.yaml"], SLOW_MS);
      await operator.must(["validate", "n99.yaml"]);
      const { join: joins } = parse(readFileSync(file("n99.yaml"), "utf8")) as {
        readonly join: { readonly token: string };
      };
      const audit = await operator.must(["audit", `n${first}`, "--output", "json"], SLOW_MS);
      expect(audit).toContain("for a worker, 1h");
      expect(audit).not.toContain(joins.token);
      const refused = await operator.cctl(["join-token", `n${worker}`], SLOW_MS);
      expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining("is a worker")]);
    },
    LONG_MS,
  );

  const withAddon = (): string =>
    `${member(first).document}addons:\n  - { name: web, chart: "oci://registry.example.net/web", namespace: web }\n`;

  test(
    "an add-on on one controller alone is refused with the way named; who can't be asked stops it before any is changed",
    async () => {
      writeFileSync(file("site.yaml"), withAddon());
      const before = await configs();
      const alone = await operator.cctl(["apply", `n${first}`, "--file", "site.yaml", "--yes"], SLOW_MS);
      expect([alone.exitCode, alone.stderr]).toEqual([1, expect.stringContaining("cctl apply N1 N2 N3 --file FILE")]);
      const two = await operator.cctl(["apply", `n${first}`, `n${second}`, "--file", "site.yaml", "--yes"], SLOW_MS);
      expect([two.exitCode, two.stderr]).toEqual([
        1,
        expect.stringContaining(`n${third} of this cluster's controllers is not named`),
      ]);
      await on(third, "systemctl stop corium-apid");
      const silent = await operator.cctl(["apply", ...names, "--file", "site.yaml", "--yes"], SLOW_MS);
      expect([silent.exitCode, silent.stderr]).toEqual([3, expect.stringContaining("nothing was changed on any node")]);
      await on(third, "systemctl start corium-apid");
      expect(await configs()).toEqual(before);
    },
    LONG_MS,
  );

  test(
    "on all of them it is applied, the leader last, and stays after each controller in turn has led",
    async () => {
      const led = await leader(first);
      await eventually("the third node's API", () => operator.status(`n${third}`));
      const ran = await operator.cctl(["apply", ...names, "--file", "site.yaml", "--yes"], LONG_MS);
      expect([ran.exitCode, ran.stderr]).toEqual([0, expect.any(String)]);
      expect(ran.stdout).toContain(`${led} (leads)\n`);
      const digests = await Promise.all(
        names.map(async (name) => (await eventually(name, () => operator.status(name))).config.clusterDigest),
      );
      expect([new Set(digests).size, digests[0]?.length]).toEqual([1, 64]);
      const uid = await eventually("the release", async () => (await on(first, CHARTS)).trim() || undefined);
      const same = await operator.cctl(["apply", ...names, "--file", "site.yaml", "--yes"], SLOW_MS);
      expect(same.stdout).toContain("unchanged, nothing to do");

      const leaders = new Set<string>();
      const stays = async (asked: number): Promise<string> => {
        const now = await leader(asked);
        leaders.add(now);
        await Bun.sleep(5 * POLL_MS);
        expect((await on(asked, CHARTS)).trim()).toBe(uid);
        return now;
      };
      const stop = (number: number): Promise<string> => on(number, "systemctl stop k0scontroller");
      const start = (number: number): Promise<string> => on(number, "systemctl start k0scontroller");
      const numberOf = (name: string): number => Number(name.slice(1));
      const one = numberOf(await stays(first));
      const others = controllers.filter((number) => number !== one);
      await stop(one);
      const two = numberOf(
        await eventually("another leader", async () => {
          const now = parseLeader(await on(others[0] ?? 0, KUBE_LEASES));
          return now === undefined || now === `n${one}` ? undefined : now;
        }),
      );
      await stays(two);
      // Who was away when the second one wrote can't lead: it is the third one's turn.
      const last = others.find((number) => number !== two) ?? 0;
      await stop(two);
      await start(one);
      await eventually("the third leader", async () =>
        parseLeader(await on(last, KUBE_LEASES)) === `n${last}` ? last : undefined,
      );
      await stays(last);
      await start(two);
      for (const number of controllers)
        await eventually(`n${number}'s API`, () => on(number, "k0s kubectl get nodes -o name"));
      expect([...leaders].toSorted()).toEqual(names.toSorted());
    },
    2 * LONG_MS,
  );

  test(
    "a worker is cordoned and drained through a controller; the budget that keeps a pod is named, and nothing is forced",
    async () => {
      const node = `n${worker}`;
      await operator.must(["cordon", `n${first}`, "--node", node], SLOW_MS);
      expect(await on(first, `k0s kubectl get node ${node}`)).toContain("SchedulingDisabled");
      await operator.must(["uncordon", `n${second}`, "--node", node], SLOW_MS);
      expect(await on(first, `k0s kubectl get node ${node}`)).not.toContain("SchedulingDisabled");
      await on(first, `k0s kubectl cordon ${node}`);
      const theirs = await operator.cctl(["uncordon", `n${first}`, "--node", node], SLOW_MS);
      expect([theirs.exitCode, theirs.stderr]).toEqual([1, expect.stringContaining("cordoned by somebody else")]);
      await on(first, `k0s kubectl uncordon ${node}`);

      await on(first, `cat >/run/kept.yaml <<'END'\n${keptPod(node)}END\nk0s kubectl apply -f /run/kept.yaml`);
      const drain = operator.cctl(["drain", `n${first}`, "--node", node, "--yes"], LONG_MS);
      const held = "pod default/kept-1 is kept by budget default/kept";
      await eventually("the budget's name", async () =>
        (await operator.status(`n${first}`))?.operation?.message?.includes(held) === true ? held : undefined,
      );
      await on(first, "k0s kubectl delete pdb kept");
      expect((await drain).exitCode).toBe(0);
      expect(await on(first, "k0s kubectl get pods -o name")).not.toContain("kept-1");
      await operator.must(["uncordon", `n${first}`, "--node", node], SLOW_MS);
    },
    LONG_MS,
  );
}

const keptPod = (node: string): string => `apiVersion: v1
kind: Pod
metadata:
  name: kept-1
  namespace: default
  labels: { app: kept }
  ownerReferences: [{ apiVersion: apps/v1, kind: ReplicaSet, name: kept, uid: "1" }]
spec: { nodeName: ${node}, containers: [{ name: a, image: a }] }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: kept, namespace: default }
spec: { minAvailable: 1, selector: { matchLabels: { app: kept } } }
status: { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 }
`;
