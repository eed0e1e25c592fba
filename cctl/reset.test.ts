/** `cctl reset` against a scripted node. */
import { afterEach, describe, expect, test } from "bun:test";
import type { ResetAnswer } from "../api/contract.ts";
import type { Operation } from "../state/model.ts";
import { type FakeHost, fakeHost } from "../test/support/fake-host.ts";
import { runCctl } from "../test/support/run-cctl.ts";
import { type Received, type Scripted, type ScriptedNode, scriptedNode } from "../test/support/scripted-node.ts";

let node: ScriptedNode | undefined;
afterEach(() => node?.close());

const plan: ResetAnswer = {
  status: "planned",
  hostname: "shop-1",
  erased: ["k0s with its data"],
  kept: ["array data on serial A"],
  left: ["files below /srv"],
  skipped: ["leaving etcd: a worker is no member"],
  steps: [{ id: "reset:stop", title: "stop k0s and every pod" }],
};
const operation = (more: Partial<Operation>): Operation => ({
  id: "op1",
  kind: "reset",
  phase: "running",
  steps: [],
  requester: { kind: "local" },
  version: "1.0.0",
  createdAtMs: 0,
  ...more,
});

async function enrolled(lines: readonly Operation[]): Promise<{ host: FakeHost; node: ScriptedNode }> {
  const answer = ({ path, method }: Received): Scripted => {
    if (path === "/v1/health" && method === "GET") return { body: { status: "ok" } };
    if (path === "/v1/lifecycle/reset?dryRun=true") return { body: plan };
    if (path === "/v1/lifecycle/reset")
      return { status: 202, body: { ...plan, status: "resetting", operation: "op1" } };
    return { body: lines.map((line) => `${JSON.stringify(line)}\n`).join("") };
  };
  node = await scriptedNode(answer);
  const host = fakeHost({ nowMs: Date.now() });
  await runCctl(host, ["pki", "init"]);
  const pinned = `nodes:\n  ${node.address}:\n    fingerprint: ${node.fingerprint}\n    name: node1\n`;
  host.put("/home/ann/.corium/config.yaml", pinned);
  return { host, node };
}

const forgetting = operation({
  steps: [{ id: "reset:files", title: "remove overlay, units, timers, keys and the document", state: "running" }],
});
const asked = ({ requests }: ScriptedNode): readonly string[] =>
  requests.filter(({ path }) => path === "/v1/lifecycle/reset").map(({ body }) => body);

describe("cctl reset", () => {
  test("says what is lost, has the node's own name typed, and follows until the node forgets", async () => {
    const { host, node: peer } = await enrolled([forgetting]);
    const ran = await runCctl(host, ["reset", "node1", "--wipe-disks", "--destroy-cluster"], { answers: ["shop-1"] });
    expect(ran.out).toBe(`reset of node1 (${peer.address})
  erased:
    - k0s with its data
  kept:
    - array data on serial A
  left as it is:
    - files below /srv
  not done:
    - leaving etcd: a worker is no member
reset: it restarts, unclaimed, with another fingerprint; its console shows the code to claim it with
`);
    expect(ran.status).toBe(0);
    expect(asked(peer).map((body) => JSON.parse(body) as unknown)).toEqual([
      { wipeDisks: true, destroyCluster: true, confirm: "shop-1" },
    ]);
  });

  test("another name, no answer, --yes alone or a dry run resets nothing", async () => {
    const { host, node: peer } = await enrolled([forgetting]);
    expect((await runCctl(host, ["reset", "node1"], { answers: ["node1"] })).status).toBe(1);
    expect((await runCctl(host, ["reset", "node1"], { answers: ["y"] })).status).toBe(1);
    const alone = await runCctl(host, ["reset", "node1"]);
    expect([alone.status, alone.err]).toEqual([1, expect.stringContaining("--confirm HOSTNAME")]);
    const yes = await runCctl(host, ["reset", "node1", "--yes"]);
    expect([yes.status, yes.err]).toEqual([2, expect.stringContaining("--confirm HOSTNAME")]);
    const wrong = await runCctl(host, ["reset", "node1", "--yes", "--confirm", "shop-2"]);
    expect([wrong.status, wrong.err]).toEqual([1, expect.stringContaining("shop-1")]);
    const dry = await runCctl(host, ["reset", "node1", "--dry-run"]);
    expect([dry.status, dry.out]).toEqual([0, expect.stringContaining("k0s with its data")]);
    expect(asked(peer)).toEqual([]);
  });

  test("with --confirm nobody is asked", async () => {
    const { host, node: peer } = await enrolled([forgetting]);
    expect((await runCctl(host, ["reset", "node1", "--yes", "--confirm", "shop-1"])).status).toBe(0);
    expect(asked(peer)).toHaveLength(1);
  });

  test("a reset that failed says why", async () => {
    const { host } = await enrolled([operation({ phase: "failed", failureReason: "/srv/data can't be unmounted" })]);
    const ran = await runCctl(host, ["reset", "node1", "--confirm", "shop-1"]);
    expect([ran.status, ran.err]).toEqual([1, expect.stringContaining("/srv/data can't be unmounted")]);
    expect(ran.out).not.toContain("it restarts");
  });
});
