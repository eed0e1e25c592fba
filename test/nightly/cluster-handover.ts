/** The CNI of a whole cluster goes over to GitOps; test/nightly/cluster.vm.test.ts has the cluster. */
import { expect, test } from "bun:test";
import { HANDED_OVER_FOLDER as KEPT, STACK_FOLDER as FOLDER } from "../qemu/harness/documents.ts";
import { APPLICATION_KIND, applicationObject } from "../support/argo-cd.ts";
import { eventually, KUBE_LEASES, LONG_MS, SLOW_MS, type WholeCluster } from "./cluster-verbs.ts";
import { parseLeader } from "../../k0s/cluster/parse.ts";

const OWNER = "k0s kubectl get configmap site-cni -n default -o 'jsonpath={.metadata.uid} {.data.owner}'";

export function testClusterHandover(cluster: WholeCluster): void {
  const { operator, controllers, member } = cluster;
  const [first = 0] = controllers;
  const names = controllers.map((number) => `n${number}`);
  const on = (number: number, script: string): Promise<string> => member(number).vm().shell.must(script, SLOW_MS);
  const put = (object: string): Promise<string> =>
    eventually("kubectl apply", () => on(first, `printf %s '${object}' | k0s kubectl apply -f -`));

  test(
    "the CNI is Synced: each says that it takes the command for all of them, and none does it by itself",
    async () => {
      await put(APPLICATION_KIND);
      await put(applicationObject("site-cni", { sync: "Synced", health: "Healthy" }));
      for (const name of names) {
        const standing = await eventually(`${name} sees it`, async () => {
          const found = (await operator.status(name))?.handover;
          return found?.reason === "Synced" ? found : undefined;
        });
        expect(standing.message).toContain(`\`cctl handover ${names.join(" ")}\``);
        expect(standing.warning).toContain("each start of k0s applies the bootstrap manifest site-cni");
      }
      for (const number of controllers) expect(await on(number, `ls ${FOLDER}`)).toBe("cni.yaml");
      const one = await operator.cctl(["handover", names[0] ?? "", "--yes"], SLOW_MS);
      expect([one.exitCode, one.stderr]).toEqual([1, expect.stringContaining("of this cluster's controllers")]);
    },
    LONG_MS,
  );

  test(
    "the command goes through them one by one, the leader last; what GitOps makes of it stays whoever leads",
    async () => {
      const before = await eventually("the bootstrap object", () => on(first, OWNER));
      expect(before).toMatch(/ bootstrap$/);
      const led = await eventually("a leader", async () => parseLeader(await on(first, KUBE_LEASES)));
      const ran = await operator.cctl(["handover", ...names, "--yes"], LONG_MS);
      expect([ran.exitCode, ran.stderr]).toEqual([0, expect.any(String)]);
      const order = [...ran.stdout.matchAll(/^(n\d+)\b.*: handed over$/gm)].map(([, name]) => String(name));
      expect([order.toSorted((a, b) => a.localeCompare(b)), order.at(-1)]).toEqual([names, led]);
      for (const number of controllers) {
        expect(await on(number, `ls ${KEPT}; test -e ${FOLDER} || echo gone`)).toBe("cni.yaml\ngone");
        const node = await eventually(`n${number}`, () => operator.status(`n${number}`));
        expect([node.handover?.reason, node.config.state]).toEqual(["HandedOver", "in-sync"]);
      }
      expect(await eventually("the object", () => on(first, OWNER))).toBe(before);
      const [uid] = before.split(" ");
      await put(
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"site-cni","namespace":"default"},"data":{"owner":"gitops"}}',
      );
      const leaders = new Set<string>();
      for (const number of [...controllers, ...controllers]) {
        const leader = await eventually("a leader", async () => parseLeader(await on(number, KUBE_LEASES)));
        leaders.add(leader);
        if (leaders.size === controllers.length) break;
        await on(Number(leader.slice(1)), "systemctl restart k0scontroller");
        await eventually("another one leads", async () => {
          const now = parseLeader(await on(Number(leader.slice(1)), KUBE_LEASES));
          return now === undefined || now === leader ? undefined : now;
        });
        expect(await on(Number(leader.slice(1)), OWNER)).toBe(`${uid} gitops`);
      }
      expect(leaders.size).toBeGreaterThan(1);
    },
    2 * LONG_MS,
  );
}
