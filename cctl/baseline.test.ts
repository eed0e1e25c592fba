import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { type FakeHost, fakeHost } from "../test/support/fake-host.ts";
import { runCctl } from "../test/support/run-cctl.ts";
import { type Received, type Scripted, type ScriptedNode, scriptedNode } from "../test/support/scripted-node.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

let node: ScriptedNode | undefined;
afterEach(() => node?.close());

async function enrolled(answer: (request: Received) => Scripted): Promise<{ host: FakeHost; node: ScriptedNode }> {
  node = await scriptedNode(answer);
  const host = fakeHost({ nowMs: Date.now(), files: { "node.yaml": "role: single\n" } });
  await runCctl(host, ["pki", "init"]);
  const pin = `nodes:\n  ${node.address}:\n    fingerprint: ${node.fingerprint}\n    name: node1\n`;
  host.put("/home/ann/.corium/config.yaml", pin);
  return { host, node };
}

const adopt = ["baseline", "adopt", "node1", "--file", "node.yaml"] as const;

test("the document goes as it is; a dry run only compares", async () => {
  const { host, node: at } = await enrolled(({ path }) => ({
    body: path.includes("dryRun") ? { status: "planned", warnings: [] } : { status: "adopted", warnings: [] },
  }));
  expect((await runCctl(host, [...adopt, "--dry-run"])).out).toBe("the node runs this document\n");
  const done = await runCctl(host, adopt);
  expect([done.status, done.out]).toEqual([0, "recorded: the node runs this document\n"]);
  const asked = at.requests.filter(({ method }) => method === "POST");
  expect(asked.map(({ path, body }) => [path, JSON.parse(body)])).toEqual([
    ["/v1/baseline?dryRun=true", { document: "role: single\n" }],
    ["/v1/baseline", { document: "role: single\n" }],
  ]);
  expect((await runCctl(host, adopt.slice(0, 3))).status).toBe(2);
});

test("a refusal shows each difference with its diff, and nothing that the node says reaches the terminal raw", async () => {
  const differences = [
    { code: "file-changed", path: "/etc/hosts", message: "/etc/hosts differs", diff: "-a\u001b[2J\n+b\n" },
    { code: "unit-changed", path: "k0s", message: "k0scontroller.service runs another command" },
  ];
  const { host } = await enrolled(({ method }) =>
    method === "POST" ? { status: 409, body: { error: "not that one", reason: "differs", differences } } : {},
  );
  const ran = await runCctl(host, adopt);
  expect(ran.status).toBe(1);
  for (const text of ["not that one", "/etc/hosts differs", "    -a", "    +b", "runs another command"]) {
    expect(ran.err).toContain(text);
  }
  expect(ran.all).not.toContain("\u001b");
});

test("diff without a file: what is pending says what it would take, what drifted shows its diff, printable", async () => {
  const reasons = [
    { code: "document-edited", class: "restarts-k0s", message: "edited", path: "/etc/corium/config.yaml" },
    {
      code: "file-changed",
      message: "/etc/hosts was changed",
      path: "/etc/hosts",
      diff: "--- a\n+++ b\n+x\u001b[2J\n",
    },
  ];
  const { host } = await enrolled(() => ({ body: { state: "pending", reasons } }));
  const ran = await runCctl(host, ["diff", "node1"]);
  expect(ran.status).toBe(5);
  expect(ran.out.split("\n").slice(0, 5)).toEqual([
    "pending",
    "  document-edited (restarts-k0s): edited",
    "  file-changed: /etc/hosts was changed",
    "    --- a",
    "    +++ b",
  ]);
  expect(ran.out).not.toContain("\u001b");
});
