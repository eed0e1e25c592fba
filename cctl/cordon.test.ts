import { afterEach, describe, expect, test } from "bun:test";
import { fakeHost } from "../test/support/fake-host.ts";
import { type Ran, type RunOptions, runCctl } from "../test/support/run-cctl.ts";
import { type Scripted, type ScriptedNode, scriptedNode } from "../test/support/scripted-node.ts";

let node: ScriptedNode | undefined;
afterEach(() => node?.close());

type Cctl = (line: string, options?: RunOptions) => Promise<Ran>;

async function enrolled(answer: (path: string) => Scripted): Promise<Cctl> {
  node = await scriptedNode(({ path }) => (path === "/v1/health" ? { body: { status: "ok" } } : answer(path)));
  const host = fakeHost({ nowMs: Date.now() });
  await runCctl(host, ["pki", "init"]);
  const { address, fingerprint } = node;
  host.put("/home/ann/.corium/config.yaml", `nodes:\n  ${address}:\n    fingerprint: ${fingerprint}\n    name: n1\n`);
  return (line, options) => runCctl(host, line.split(" "), options);
}

const asked = (): string[] =>
  (node?.requests ?? []).flatMap(({ method, path, body }) => (method === "POST" ? [`${path} ${body}`] : []));

describe("cctl cordon, uncordon, drain", () => {
  test("ask the controller for its own node, or for the one that is named", async () => {
    const cctl = await enrolled((path) => ({
      body: { node: "w1", cordoned: !path.includes("undo"), changed: !path.includes("undo") },
    }));
    expect((await cctl("cordon n1 --node w1")).out).toBe("w1 is cordoned\n");
    expect((await cctl("uncordon n1")).out).toBe("w1 is open to new pods, as it was\n");
    await cctl("cordon n1 --undo");
    expect(asked()).toEqual([
      '/v1/lifecycle/cordon {"node":"w1"}',
      "/v1/lifecycle/cordon?undo=true {}",
      "/v1/lifecycle/cordon?undo=true {}",
    ]);
  });

  const operation = { id: "op1", kind: "drain", steps: [], requester: { kind: "local" }, version: "1", createdAtMs: 0 };

  test("a drain is asked about, and followed to its end", async () => {
    const cctl = await enrolled((path) =>
      path.startsWith("/v1/lifecycle/")
        ? { status: 202, body: { draining: "w1", operation: "op1" } }
        : { body: `${JSON.stringify({ ...operation, phase: "succeeded" })}\n` },
    );
    expect((await cctl("drain n1 --node w1", { answers: ["n"] })).status).toBe(1);
    expect(asked()).toEqual([]);
    const ran = await cctl("drain n1 --node w1", { answers: ["y"] });
    expect([ran.status, ran.out, asked()]).toEqual([0, "done\n", ['/v1/lifecycle/drain {"node":"w1"}']]);
  });

  test("one that failed says what kept the pods", async () => {
    const failureReason = "w1 still has pods after 10 min\n  pod shop/web-1 is kept by budget shop/web";
    const cctl = await enrolled((path) =>
      path.startsWith("/v1/lifecycle/")
        ? { status: 202, body: { draining: "w1", operation: "op1" } }
        : { body: `${JSON.stringify({ ...operation, phase: "failed", failureReason })}\n` },
    );
    const ran = await cctl("drain n1 --node w1 --yes");
    expect([ran.status, ran.err]).toEqual([1, `cctl: drain op1 failed: ${failureReason}\n`]);
  });
});
