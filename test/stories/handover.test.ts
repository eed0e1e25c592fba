/** The CNI goes from the bootstrap manifest to GitOps: by cctl, on one controller and on three. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { NodeAnswer } from "../../api/contract.ts";
import { ok } from "../../kit/result.ts";
import { type FakeHost, fakeHost } from "../support/fake-host.ts";
import { type Ran, type RunOptions, runCctl } from "../support/run-cctl.ts";
import { type StoryNode, startStoryNode } from "./story-node.ts";

const text = (name: string, role: string, mode = "manual"): string => `role: ${role}
node: { name: ${name} }
cluster: { name: shop, endpoint: api.example.com }
network:
  cni: custom
  handover: { mode: ${mode}, stack: cni }
manifests:
  - name: cni
    files: [{ name: a.yaml, content: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}" }]
`;
const FILE = "/var/lib/k0s/manifests/cni/a.yaml";
const KEPT = "/var/lib/k0s/handed-over/cni/a.yaml";

// Nodes with TLS each, perhaps beside virtual machines.
setDefaultTimeout(60_000);

let nodes: readonly StoryNode[];
let operator: FakeHost;
let leader: string;
/** In the order in which k0s was started again. */
let started: string[];

const cctl = (line: string, options: RunOptions = {}): Promise<Ran> => runCctl(operator, line.split(" "), options);
const isOut = (): boolean[] =>
  nodes.map(({ machine }) => machine.text(FILE) === undefined && machine.text(KEPT) !== undefined);
const phases = (): (string | undefined)[] => nodes.map(({ state }) => state.operations.list()[0]?.phase);

async function startNodes(names: readonly string[], role: string, mode?: string): Promise<void> {
  nodes = await Promise.all(names.map(() => startStoryNode()));
  for (const [index, name] of names.entries()) {
    const node = nodes[index];
    if (node === undefined) throw new Error("no node");
    await cctl(`enroll ${node.address} --code ${node.code()} --fingerprint ${node.fingerprint} --name ${name}`);
    node.bootstrap(text(name, role, mode));
    Object.defineProperty(node.k0s, "controlPlane", { get: () => ({ members: names, leader }) });
    const unit = node.machine.unitTable.get("k0scontroller.service");
    if (unit !== undefined) {
      unit.onStart = () => {
        started.push(name);
        return ok(undefined);
      };
    }
  }
}

beforeEach(async () => {
  operator = fakeHost({ nowMs: Date.now() });
  leader = "n2";
  started = [];
  await cctl("pki init");
});
afterEach(() => Promise.all(nodes.map((node) => node.close())));

describe("one controller", () => {
  test("a dry run changes nothing; asked and agreed, it goes; a second time there is nothing to do", async () => {
    await startNodes(["n1"], "single");
    const dry = await cctl("handover n1 --dry-run");
    expect([dry.status, isOut()]).toEqual([0, [false]]);
    expect(dry.out).toContain("k0scontroller stops, the files of cni move to /var/lib/k0s/handed-over/cni");

    expect((await cctl("handover n1")).status).toBe(1);
    expect((await cctl("handover n1", { answers: ["n"] })).status).toBe(1);
    expect([isOut(), nodes[0]?.state.operations.list()]).toEqual([[false], []]);

    const ran = await cctl("handover n1", { answers: ["y"] });
    expect([ran.status, isOut(), phases()]).toEqual([0, [true], ["succeeded"]]);
    expect(ran.out).toContain("handed over\n");

    const again = await cctl("handover n1 --yes");
    expect([again.status, started]).toEqual([0, ["n1"]]);
    expect(again.out).toContain("cni was handed over before; kept in /var/lib/k0s/handed-over/cni");
    expect((await cctl("diff n1")).out).toBe("in-sync\n");
    const status = JSON.parse((await cctl("status n1 --output json")).out) as NodeAnswer;
    expect(status.handover).toMatchObject({
      status: "True",
      reason: "HandedOver",
      stack: "cni",
      keptAt: "/var/lib/k0s/handed-over/cni",
    });
    expect(status.handover?.warning).toBeUndefined();
  });

  test("disabled: refused, and the way is named", async () => {
    await startNodes(["n1"], "single", "disabled");
    const ran = await cctl("handover n1 --yes");
    expect(ran.status).toBe(1);
    expect(ran.err).toContain("network.handover.mode is disabled; apply a document with manual or automatic first");
  });
});

describe("three controllers", () => {
  const NAMES = ["n1", "n2", "n3"] as const;

  test("one at a time, the leader last, each with its k0s up before the next", async () => {
    await startNodes(NAMES, "controller");
    const ran = await cctl("handover n1 n2 n3", { answers: ["y"] });
    expect(ran.err).toContain("Hand the CNI over on n1, then n3, then n2? [y/N] y\n");
    expect([ran.status, started, isOut()]).toEqual([0, ["n1", "n3", "n2"], [true, true, true]]);
    expect(phases()).toEqual(["succeeded", "succeeded", "succeeded"]);
  });

  test("one that is not named is, and nothing is stopped", async () => {
    await startNodes(NAMES, "controller");
    const ran = await cctl("handover n1 n2 --yes");
    expect([ran.status, started]).toEqual([1, []]);
    expect(ran.err).toContain("n3 of this cluster's controllers is not named");
    expect((await cctl("handover n1 --yes")).status).toBe(1);
    expect(started).toEqual([]);
  });

  test("the leader moved meanwhile: the new one is last", async () => {
    await startNodes(NAMES, "controller");
    leader = "n3";
    const unit = nodes[0]?.machine.unitTable.get("k0scontroller.service");
    if (unit === undefined) throw new Error("no unit");
    unit.onStart = () => {
      started.push("n1");
      leader = "n2";
      return ok(undefined);
    };
    expect((await cctl("handover n1 n2 n3 --yes")).status).toBe(0);
    expect(started).toEqual(["n1", "n3", "n2"]);
  });

  test("one that does not come back is put back, the rest is not touched, and it is told of each; then again", async () => {
    await startNodes(NAMES, "controller");
    const failing = nodes[2];
    if (failing === undefined) throw new Error("no node");
    failing.k0s.slowness = Number.POSITIVE_INFINITY;
    const ran = await cctl("handover n1 n2 n3 --yes");
    expect([ran.status, isOut()]).toEqual([1, [true, false, false]]);
    expect(ran.err).toMatch(/n1 .*: handed over[\s\S]*n3 .*failed and was undone[\s\S]*n2 .*: as before/);
    failing.k0s.slowness = 0;
    expect((await cctl("handover n1 n2 n3 --yes")).status).toBe(0);
    expect(isOut()).toEqual([true, true, true]);
    expect(started.filter((name) => name === "n1")).toHaveLength(1);
  });
});
