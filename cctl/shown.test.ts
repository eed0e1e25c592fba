/** What nodes send is shown, never obeyed: whatever it is, and however it is printed. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ApplyAnswer } from "../api/contract.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { runCctl } from "../test/support/run-cctl.ts";
import { type Received, type Scripted, type ScriptedNode, scriptedNode } from "../test/support/scripted-node.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

let node: ScriptedNode | undefined;
afterEach(() => node?.close());

describe("what a node sends is shown, and was obeyed by the terminal", () => {
  const EVIL = "\u001b]0;owned\u0007\u009b2J\u202e";
  const evil: ApplyAnswer = {
    status: "planned",
    warnings: [],
    fields: [{ path: `p${EVIL}`, class: `safe${EVIL}` as "safe", new: `v${EVIL}` }],
    restarted: [`k0s${EVIL}`],
    consequences: [`c${EVIL}`],
    files: [{ path: `f${EVIL}`, diff: `@@ ${EVIL}\n+a${EVIL}\n` }],
  };
  const id = `op${EVIL}`;
  const asked = {
    id,
    kind: "apply",
    phase: "awaiting-confirmation",
    steps: [{ id: "a", title: EVIL, state: "running" }],
    requester: { kind: "operator", name: EVIL },
    message: EVIL,
    version: EVIL,
    createdAtMs: 0,
  };
  const answer = ({ path, method }: Received): Scripted => {
    if (path === "/v1/health" && method === "GET") return { body: { status: "ok" } };
    if (path === "/v1/config?dryRun=true") return { body: evil };
    if (path === "/v1/operations") return { body: { operations: [asked] } };
    if (path === "/v1/config") return { body: { ...evil, status: "reconciled" } };
    if (path.endsWith("/confirm")) return { body: { ...evil, status: "reconciled" } };
    if (path.endsWith("/cancel")) return { body: { cancelled: id } };
    if (path.startsWith("/v1/disks/replace")) return { body: { steps: [{ id: "a", title: EVIL }], warnings: [] } };
    return {
      body: { hostname: EVIL, operation: undefined, erase: [], kept: [], left: [], skipped: [], steps: [EVIL] },
    };
  };
  const apply = ["apply", "node1", "--file", "/n.yaml"];
  const replace = ["disk", "replace", "node1", "data", "--old", "B", "--new", "C"];
  test.each([
    apply,
    [...apply, "--output", "json"],
    [...apply, "--output", "yaml"],
    [...apply, "--dry-run"],
    ["diff", "node1", "--file", "/n.yaml"],
    ["confirm", "node1"],
    ["cancel", "node1"],
    ["cancel", "node1", "--output", "json"],
    replace,
    [...replace, "--output", "json"],
    [...replace, "--output", "json", "--dry-run"],
    ["cordon", "node1", "--output", "json"],
    ["reboot", "node1", "--output", "json"],
    ["operations", "node1"],
    ["operations", "node1", "--output", "json"],
  ])("%s %s %s %s %s %s %s", async (...argv) => {
    node = await scriptedNode(answer);
    const host = fakeHost({ nowMs: Date.now() });
    await runCctl(host, ["pki", "init"]);
    const known = `nodes:\n  ${node.address}:\n    fingerprint: ${node.fingerprint}\n    name: node1\n`;
    host.put("/home/ann/.corium/config.yaml", known);
    host.put("/n.yaml", "role: single\n");
    const ran = await runCctl(host, argv, { answers: ["y", "y"] });
    expect(ran.all).not.toBe("");
    // What this program itself writes in front of a line that replaces itself.
    const shown = ran.all.replaceAll("\r\u001b[K", "");
    // oxlint-disable-next-line no-control-regex
    expect(shown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
  });
});
