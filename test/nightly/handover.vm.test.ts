// budget: 2400 s
/**
 * The CNI goes over to GitOps on a machine: while Argo CD is not there, when its Application is Synced and Healthy, and
 * when power goes in the middle. One machine; each test goes on with what the one before left.
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { NodeAnswer } from "../../api/contract.ts";
import {
  HANDED_OVER_FOLDER as KEPT,
  HANDOVER_BLOCKS as handover,
  HELLO_ADDON,
  K0S_UNIT,
  STACK_FOLDER as FOLDER,
} from "../qemu/harness/documents.ts";
import { testImage } from "../qemu/harness/image.ts";
import { setFault, unitRun } from "../qemu/harness/inside.ts";
import { openOneNode } from "../qemu/harness/one-node.ts";
import type { Operation } from "../../state/model.ts";
import { APPLICATION_KIND, applicationObject } from "../support/argo-cd.ts";

const base = `role: single
cluster: { name: demo }
node: { name: node1 }
api: { enabled: true }
`;

const node = await openOneNode(await testImage(), { name: "handover" });
const { operator, file, switchOn, until } = node;
afterAll(() => node.close());

type Standing = NonNullable<NodeAnswer["handover"]>;
const untilReason = (reason: Standing["reason"]): Promise<Standing> =>
  until(`the hand-over is ${reason}`, async () => {
    const standing = (await operator.status("node1"))?.handover;
    return standing?.reason === reason && standing;
  });

const put = (object: string): Promise<string> => node.shell.must(`printf %s '${object}' | k0s kubectl apply -f -`);
const owner = (): Promise<string> =>
  node.shell.must("k0s kubectl get configmap site-cni -n default -o 'jsonpath={.data.owner}'");
const isFolder = async (path: string): Promise<boolean> => (await node.shell.run(`test -d ${path}`)).exitCode === 0;

const handovers = async (): Promise<readonly Operation[]> =>
  (await node.operations()).filter(({ kind }) => kind === "handover");

describe("a node with a CNI of its own", () => {
  test("waits for Argo CD, then for its Application, and says that one will never be synced", async () => {
    await switchOn(`${base}${handover}${HELLO_ADDON}`);
    await until("the bootstrap manifest is applied", async () => (await owner().catch(() => "")) === "bootstrap");
    const waiting = await untilReason("WaitingForArgoCD");
    expect(waiting.warning).toContain("each start of k0s applies the bootstrap manifest site-cni");
    await put(APPLICATION_KIND);
    await put(applicationObject("site-cni", { sync: "OutOfSync", health: "Missing", isAutomated: false }));
    await untilReason("WillNeverSync");
    expect([await handovers(), await isFolder(FOLDER)]).toEqual([[], true]);
  }, 2_000_000);

  test("power goes while k0s is stopped for it: it is handed over or as before, and then it is handed over", async () => {
    // So that the cut falls between the move and the record.
    await setFault(node.shell, "slow-start", "30000");
    await put(applicationObject("site-cni", { sync: "Synced", health: "Healthy" }));
    await until("k0s is started without the stack", async () => {
      const [operation] = await handovers();
      return operation?.steps.some(({ id, state }) => id === "handover:start" && state === "running");
    });
    await node.cut();
    await switchOn();
    await untilReason("HandedOver");
    expect([await isFolder(FOLDER), await isFolder(KEPT)]).toEqual([false, true]);
    const [operation] = await handovers();
    expect(operation).toMatchObject({ phase: "succeeded", requester: { kind: "document" } });
    await until("k0s runs", async () => (await unitRun(node.shell, K0S_UNIT)).activeState === "active");
    await until("the object is still there", async () => (await owner().catch(() => "")) !== "");
  }, 2_000_000);

  test("what GitOps made of it stays over starts of k0s and applies; the stack takes no edit", async () => {
    const { shell } = node;
    await shell.must("rm -f /etc/k0s/sim-faults/slow-start");
    await put(
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"site-cni","namespace":"default"},"data":{"owner":"gitops"}}',
    );
    await operator.must(["restart", "node1", "k0scontroller", "--yes"], 300_000);
    await until("it is still GitOps's", async () => (await owner().catch(() => "")) === "gitops");
    const edited = file(
      "edited.yaml",
      `${base}${handover.replace("owner: bootstrap", "owner: document")}${HELLO_ADDON}`,
    );
    const refused = await operator.cctl(["apply", "node1", "--file", edited, "--yes"]);
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain("manifests[site-cni] was handed over to GitOps");
    expect((await operator.cctl(["diff", "node1"])).stdout).toBe("in-sync\n");
  }, 900_000);

  test("the stack and an uninstalled add-on leave the document, and nothing of the cluster goes", async () => {
    const without = file("without.yaml", `${base}network: { cni: custom }\n`);
    const refused = await operator.cctl(["apply", "node1", "--file", without, "--yes"]);
    expect(refused.stderr).toContain("kubectl delete chart -n kube-system k0s-addon-chart-hello");
    await node.shell.must("k0s kubectl delete chart -n kube-system k0s-addon-chart-hello", 120_000);
    await operator.must(["apply", "node1", "--file", without, "--yes"], 600_000);
    await until("it is still GitOps's", async () => (await owner().catch(() => "")) === "gitops");
    expect((await operator.cctl(["diff", "node1"])).stdout).toBe("in-sync\n");
  }, 900_000);
});
