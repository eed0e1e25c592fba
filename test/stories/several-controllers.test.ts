/** Three controllers of one cluster, and what is theirs together. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { ok } from "../../kit/result.ts";
import { CLUSTER_KEY } from "../../supervisor/cluster-digest.ts";
import { type FakeHost, fakeHost } from "../support/fake-host.ts";
import { type Ran, type RunOptions, runCctl } from "../support/run-cctl.ts";
import { type StoryNode, startStoryNode } from "./story-node.ts";

const NAMES = ["n1", "n2", "n3"] as const;
const text = (name: string, more = ""): string => `role: controller
node: { name: ${name} }
cluster: { name: shop, endpoint: api.example.com }
${more}`;
const ADDON = `addons:
  - name: ingress
    chart: oci://r.example.com/ingress
`;

// Three nodes with TLS each, perhaps beside virtual machines.
setDefaultTimeout(60_000);

let nodes: readonly StoryNode[];
let operator: FakeHost;
/** Restarts of k0s, in order, and whether every node had the new files by then. */
let restarts: { readonly name: string; readonly isWrittenEverywhere: boolean }[];
let leader: string;

const cctl = (line: string, options: RunOptions = {}): Promise<Ran> => runCctl(operator, line.split(" "), options);
const config = (node: StoryNode): string => node.machine.text("/etc/k0s/k0s.yaml") ?? "";
const hasIngress = (): boolean[] => nodes.map((node) => config(node).includes("ingress"));
const phases = (): (string | undefined)[] => nodes.map(({ state }) => state.operations.list()[0]?.phase);

function at(index: number): StoryNode {
  const node = nodes[index];
  if (node === undefined) throw new Error(`no node ${index}`);
  return node;
}

beforeEach(async () => {
  operator = fakeHost({ nowMs: Date.now() });
  restarts = [];
  leader = "n2";
  await cctl("pki init");
  nodes = await Promise.all(NAMES.map(() => startStoryNode()));
  for (const [index, name] of NAMES.entries()) {
    const node = at(index);
    await cctl(`enroll ${node.address} --code ${node.code()} --fingerprint ${node.fingerprint} --name ${name}`);
    node.bootstrap(text(name));
    node.machine.put(CLUSTER_KEY, "the key of their CA");
    Object.defineProperty(node.k0s, "controlPlane", { get: () => ({ members: NAMES, leader }) });
    const unit = node.machine.unitTable.get("k0scontroller.service");
    if (unit === undefined) throw new Error("no unit");
    unit.onStart = () => {
      restarts.push({ name, isWrittenEverywhere: hasIngress().every(Boolean) });
      return ok(undefined);
    };
  }
  operator.put("site.yaml", text("n1", ADDON));
});

afterEach(async () => {
  for (const { state, machine } of nodes) {
    expect(state.operations.running()).toBeUndefined();
    expect(machine.text("/etc/corium/config.yaml")).toBe(state.baseline.get()?.document.text ?? "");
  }
  await Promise.all(nodes.map((node) => node.close()));
});

describe("cctl apply N1 N2 N3", () => {
  test("one plan and one question; written on all before the first restart, and the leader is last", async () => {
    const ran = await cctl("apply n1 n2 n3 --file site.yaml", { answers: ["y"] });
    expect(ran.status).toBe(0);
    expect(ran.out.match(/^plan for /gm)).toHaveLength(1);
    expect(ran.out).toContain("written on all, then one at a time: n1, n3, n2 (leads)\n");
    expect(ran.err).toContain("Apply this to n1, n3, n2? [y/N] y\n");
    expect(restarts).toEqual([
      { name: "n1", isWrittenEverywhere: true },
      { name: "n3", isWrittenEverywhere: true },
      { name: "n2", isWrittenEverywhere: true },
    ]);
    expect(phases()).toEqual(["succeeded", "succeeded", "succeeded"]);
    // Each has kept its own name, and got the add-on.
    expect(nodes.map(({ state }) => state.baseline.get()?.document.text)).toEqual(
      NAMES.map((name) => text(name, ADDON)),
    );

    const again = await cctl("apply n1 n2 n3 --file site.yaml --yes");
    expect([again.status, restarts.length]).toEqual([0, 3]);
    expect(again.out).toContain("unchanged, nothing to do");
    expect((await cctl("status n1 n2 n3 --check")).status).toBe(0);
  });

  test("an election in the middle: who leads now is last", async () => {
    const unit = at(0).machine.unitTable.get("k0scontroller.service");
    const before = unit?.onStart;
    if (unit === undefined || before === undefined) throw new Error("no unit");
    unit.onStart = (fake) => {
      leader = "n3";
      return before(fake);
    };
    await cctl("apply n1 n2 n3 --file site.yaml --yes");
    expect(restarts.map(({ name }) => name)).toEqual(["n1", "n2", "n3"]);
  });

  test("a refusal by one changes none", async () => {
    at(2).bootstrap(text("n3", "addons: [{name: own, chart: 'oci://r.example.com/own'}]\n"));
    const ran = await cctl("apply n1 n2 n3 --file site.yaml --yes");
    expect([ran.status, hasIngress(), restarts]).toEqual([1, [false, false, false], []]);
    expect(ran.err).toContain("refused by n3");
    expect(ran.err).toContain("nothing was changed on any node");
    expect(ran.err).toContain("own");
    expect(phases().map((phase) => phase === undefined)).toEqual([true, true, true]);
  });

  test("without agreement, and as a dry run, nothing is changed", async () => {
    expect((await cctl("apply n1 n2 n3 --file site.yaml", { answers: ["n"] })).status).toBe(1);
    expect((await cctl("apply n1 n2 n3 --file site.yaml --dry-run")).status).toBe(0);
    expect((await cctl("apply n1 n2 n3 --previous --yes")).status).toBe(2);
    expect([hasIngress(), phases()]).toEqual([
      [false, false, false],
      [undefined, undefined, undefined],
    ]);
  });

  test("on one node alone it is 409, with this way named", async () => {
    const ran = await cctl("apply n1 --file site.yaml --yes");
    expect([ran.status, hasIngress()]).toEqual([1, [false, false, false]]);
    expect(ran.err).toContain("one of the controllers n1, n2, n3");
    expect(ran.err).toContain("cctl apply N1 N2 N3 --file FILE");
  });

  test("a controller that is not named is named by cctl, and nothing is changed", async () => {
    const ran = await cctl("apply n1 n2 --file site.yaml --yes");
    expect([ran.status, hasIngress()]).toEqual([1, [false, false, false]]);
    expect(ran.err).toContain("n3 of this cluster's controllers is not named");
  });

  test("a file of another cluster is none for these", async () => {
    operator.put("other.yaml", text("n1", ADDON).replace("shop", "ship"));
    const ran = await cctl("apply n1 n2 n3 --file other.yaml --yes");
    expect([ran.status, ran.err]).toEqual([1, "cctl: the file is of cluster ship, the nodes are of shop\n"]);
  });

  test("one fails in the middle: it stops there, says what each of them has, and how to go on", async () => {
    at(2).k0s.poison = "ingress";
    const ran = await cctl("apply n1 n2 n3 --file site.yaml --yes");
    expect(ran.status).toBe(1);
    expect(hasIngress()).toEqual([true, false, false]);
    // The leader was never restarted; the one that failed was, with its old files.
    expect(restarts.map(({ name }) => name)).toEqual(["n1", "n3", "n3"]);
    expect(ran.err).toContain(
      "n3 did not come back with it; the others were not restarted".replace("n3", "n3 (" + at(2).address + ")"),
    );
    const line = (index: number, became: string): string => `  ${NAMES[index]} (${at(index).address}): ${became}\n`;
    expect(ran.err).toContain(line(0, "has it"));
    expect(ran.err).toContain(line(2, "failed, and has its old files again"));
    expect(ran.err).toContain(line(1, "as before, k0s was not restarted"));
    expect(ran.err).toContain("correct the file and apply it to all again");
    expect(phases()).toEqual(["succeeded", "cancelled", "rolled-back"]);

    const status = await cctl("status n1 n2 n3 --check");
    expect(status.status).toBe(5);
    expect(status.out).toContain("do not say the same of it (alike: n1; n2, n3)");

    delete at(2).k0s.poison;
    restarts = [];
    expect((await cctl("apply n1 n2 n3 --file site.yaml --yes")).status).toBe(0);
    expect(restarts.map(({ name }) => name)).toEqual(["n3", "n2"]);
    expect((await cctl("status n1 n2 n3 --check")).status).toBe(0);
  });

  test("one can't write: no k0s is restarted, and who had written is as before", async () => {
    const busy = at(1).state.operations.begin({ kind: "reboot", requester: { kind: "local" }, version: "1", atMs: 1 });
    if (!busy.ok) throw new Error("busy");
    const ran = await cctl("apply n1 n2 n3 --file site.yaml --yes");
    expect([ran.status, hasIngress(), restarts]).toEqual([1, [false, false, false], []]);
    expect(ran.err).toContain(`n2 (${at(1).address}) could not write it, so no k0s was restarted`);
    expect(phases()).toEqual(["cancelled", "running", "cancelled"]);
    at(1).state.operations.end(busy.value.id, { phase: "succeeded" }, 2);
  });

  test("cctl dies after it was written: `cctl cancel` puts a node's files back", async () => {
    const json = { blocks: ADDON, coordinated: true };
    expect((await cctl("cancel n1 --yes")).status).toBe(1);
    const client = await heldBy(json);
    expect(client).toBe("written");
    expect(hasIngress()).toEqual([true, false, false]);
    const blocked = await cctl("apply n1 n2 n3 --file site.yaml --yes");
    expect(blocked.err).toContain("confirm or cancel it first");
    expect((await cctl("cancel n1 --yes")).status).toBe(0);
    expect([hasIngress(), restarts, phases()[0]]).toEqual([[false, false, false], [], "cancelled"]);
  });
});

/** What a cctl that died right after it would have asked of n1. */
async function heldBy(body: { readonly blocks: string; readonly coordinated: boolean }): Promise<string> {
  const { services } = at(0);
  const document = `${text("n1")}${body.blocks}`;
  const requester = {
    kind: "operator",
    name: "ann",
    role: "admin",
    fingerprint: "SHA256:a",
    address: "192.0.2.1",
  } as const;
  const outcome = await services.apply.apply({
    document,
    acknowledge: false,
    isDryRun: false,
    isCoordinated: true,
    requester,
  });
  return outcome.kind === "answer" ? outcome.answer.status : outcome.body.error;
}
