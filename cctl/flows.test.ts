/** What cctl says to nodes and makes of their answers; test/stories runs it against the real API. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ApplyAnswer } from "../api/contract.ts";
import type { Operation } from "../state/model.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { runCctl } from "../test/support/run-cctl.ts";
import { applying, type Enrolled, enrollScripted, operation, paths, plan } from "../test/support/scripted-apply.ts";
import { type Received, type Scripted, type ScriptedNode, scriptedNode } from "../test/support/scripted-node.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

let node: ScriptedNode | undefined;
afterEach(() => node?.close());

async function enrolled(answer: (request: Received) => Scripted): Promise<Enrolled> {
  const made = await enrollScripted(answer, () => headers);
  node = made.node;
  return made;
}

let headers: Record<string, string> = {};
afterEach(() => void (headers = {}));

describe("disk replace", () => {
  const steps = [{ id: "raid:data:replace:1:add", title: "add disk /dev/vdd (serial C) to array data" }];
  const replacing = ({ path }: Received): Scripted => {
    if (path === "/v1/disks/replace?dryRun=true") return { body: { status: "planned", steps, warnings: [] } };
    if (path === "/v1/disks/replace")
      return { status: 202, body: { status: "replacing", steps, warnings: [], operation: "op1" } };
    return { body: `${JSON.stringify(operation("succeeded", { kind: "disk-replace" }))}\n` };
  };
  const argv = ["disk", "replace", "node1", "data", "--old", "B", "--new", "C"];

  test("shows the plan, asks, and follows to the end", async () => {
    const { host, node: peer } = await enrolled(replacing);
    const ran = await runCctl(host, [...argv, "--wipe"], { answers: ["y"] });
    expect(ran.out).toBe("- add disk /dev/vdd (serial C) to array data\ndone\n");
    const sent = peer.requests.filter(({ path }) => path.startsWith("/v1/disks/replace"));
    expect(sent.map(({ path }) => path)).toEqual(["/v1/disks/replace?dryRun=true", "/v1/disks/replace"]);
    for (const { body } of sent) expect(JSON.parse(body)).toEqual({ array: "data", old: "B", new: "C", wipe: true });
  });

  test("without agreement, as a dry run, or with a disk missing in the command, nothing is replaced", async () => {
    const { host, node: peer } = await enrolled(replacing);
    expect((await runCctl(host, argv, { answers: ["n"] })).status).toBe(1);
    expect((await runCctl(host, [...argv, "--dry-run", "--yes"])).status).toBe(0);
    expect((await runCctl(host, argv.slice(0, -2))).status).toBe(2);
    expect(paths(peer)).not.toContain("POST /v1/disks/replace");
  });
});

const unchanged =
  (operations: readonly Operation[]) =>
  ({ path }: Received): Scripted => ({
    body: path === "/v1/operations" ? { operations } : { ...plan, status: "unchanged" },
  });

describe("apply", () => {
  test("shows the plan, asks, applies against what was planned, and follows to the end", async () => {
    const { host, node: peer } = await enrolled(applying([operation("running"), operation("succeeded")]));
    const ran = await runCctl(host, ["apply", "node1", "--file", "/n.yaml"], { answers: ["y"] });
    expect(ran.out).toBe(`plan for node1 (${peer.address})
  + addons[metallb] (safe)

  /etc/k0s/k0s.yaml
    @@ -1 +1 @@
    -a
    +b

  restarts k0scontroller
  pods keep running while k0s restarts
applied: restarted k0scontroller
`);
    expect(ran.status).toBe(0);
    expect(paths(peer).filter((line) => line !== "GET /v1/health" && line !== "GET /v1/operations")).toEqual([
      "POST /v1/config?dryRun=true",
      "POST /v1/config",
      "GET /v1/operations/op1?follow=true",
    ]);
    const sent = peer.requests.find(({ path }) => path === "/v1/config");
    expect(sent?.headers.get("if-match")).toBe('"e1"');
    expect(JSON.parse(sent?.body ?? "")).toEqual({ document: "role: single\n" });
  });

  test.each([
    ["3-ab", '"3-ab"'],
    ['"3-ab"', '"3-ab"'],
    ["*", "*"],
  ])("--if-match %s: a shell that had taken the quotes away made every ETag stale", async (given, sent) => {
    const { host, node: peer } = await enrolled(applying([operation("succeeded")]));
    await runCctl(host, ["apply", "node1", "--file", "/n.yaml", "--yes", "--if-match", given]);
    expect(peer.requests.find(({ path }) => path === "/v1/config")?.headers.get("if-match")).toBe(sent);
  });

  test.each([[["n"]], [[""]], [undefined]])("without agreement (%j) nothing is applied", async (answers) => {
    const { host, node: peer } = await enrolled(applying([]));
    const ran = await runCctl(host, ["apply", "node1", "--file", "/n.yaml"], answers === undefined ? {} : { answers });
    expect(ran.status).toBe(1);
    expect(ran.err).toContain("nothing was changed");
    expect(paths(peer)).not.toContain("POST /v1/config");
  });

  test("--dry-run stops at the plan, unchanged at its word", async () => {
    const { host, node: peer } = await enrolled(applying([]));
    expect((await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--dry-run", "--yes"])).status).toBe(0);
    expect(paths(peer)).not.toContain("POST /v1/config");
    peer.close();
    const same = await enrolled(unchanged([operation("succeeded")]));
    const ran = await runCctl(same.host, ["apply", "node1", "-f", "-", "--yes"], { stdin: "role: single\n" });
    expect(ran.out).toContain("unchanged, nothing to do");
    expect(paths(same.node)).not.toContain("POST /v1/config");
  });

  test("the old document was called unchanged while the node ran a change that waits to be confirmed", async () => {
    const { host, node: peer } = await enrolled(unchanged([operation("awaiting-confirmation")]));
    const ran = await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes"]);
    expect([ran.status, ran.out]).toEqual([1, ""]);
    expect(ran.err).toContain("a change that waits to be confirmed, operation op1");
    expect(ran.err).toContain("cctl cancel ADDR op1");
    expect(paths(peer)).not.toContain("POST /v1/config");
    // A plan is against what is recorded, and disturbs nothing.
    expect((await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--dry-run"])).status).toBe(0);
  });

  test("an operation that was undone fails, with the node's reason", async () => {
    const end = operation("rolled-back", { failureReason: "k0s did not answer in time" });
    const { host } = await enrolled(applying([end]));
    const ran = await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes"]);
    expect(ran.err).toBe("cctl: apply op1 failed and was undone: k0s did not answer in time\n");
    expect(ran.status).toBe(1);
  });

  test("a stream that breaks off is taken up again", async () => {
    let calls = 0;
    const { host } = await enrolled((request) => {
      if (!request.path.startsWith("/v1/operations/")) return applying([])(request);
      calls += 1;
      if (calls === 1) return { body: `${JSON.stringify(operation("running"))}\n`, breaksOff: true };
      return { body: `${JSON.stringify(operation(calls === 2 ? "running" : "succeeded"))}\n` };
    });
    expect((await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes"])).status).toBe(0);
    expect(calls).toBe(3);
  });

  test("whoever gives up while the node applies is told that it goes on, and where", async () => {
    const given = new AbortController();
    const { host } = await enrolled((request) => {
      if (request.path === "/v1/config") given.abort();
      return applying([])(request);
    });
    const ran = await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes"], { signal: given.signal });
    expect(ran.status).toBe(1);
    expect(ran.err).toMatch(/^cctl: no longer watching; if node1 \S+ has begun the apply it goes on\n/);
    expect(ran.err).toContain("cctl operations ADDR ID --follow");
  });

  test("B077: an invalid document is refused here; the node hears nothing", async () => {
    const { host, node: peer } = await enrolled(applying([]));
    host.put("/bad.yaml", "role: singel\n");
    const ran = await runCctl(host, ["apply", "node1", "-f", "/bad.yaml", "--yes"]);
    expect(ran.err).toStartWith("cctl: /bad.yaml is not valid; nothing was sent\n  /bad.yaml:1:7: error: role: ");
    expect(ran.status).toBe(1);
    expect(peer.requests).toEqual([]);
  });

  test("a refusal names everything at once", async () => {
    const { host } = await enrolled(() => ({
      status: 409,
      body: {
        error: "identity can't change",
        reason: "immutable",
        refused: {
          fields: [{ path: "node.name", class: "immutable", old: "a", new: "b" }],
          removed: [{ path: "addons[metallb]", name: "metallb", hint: "kubectl delete chart" }],
        },
      },
    }));
    const ran = await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes"]);
    expect(ran.err).toEndWith(`answers 409: identity can't change
  node.name: "a" → "b" (immutable)
  addons[metallb]: is gone
    hint: kubectl delete chart
`);
    expect(ran.status).toBe(1);
  });

  test("json is the node's answer verbatim, of a refusal too", async () => {
    const refusal = '{"error":"no",  "reason":"busy"}';
    const { host } = await enrolled(() => ({ status: 409, body: refusal }));
    const ran = await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes", "-o", "json"]);
    expect(ran.out).toBe(`${refusal}\n`);
    expect(ran.status).toBe(1);
  });
});

describe("apply --confirm-within", () => {
  const argv = ["apply", "node1", "-f", "/n.yaml", "--confirm-within", "2m"];
  const made: ApplyAnswer = { ...plan, status: "awaiting-confirmation", operation: "op1" };
  const waiting = (request: Received): Scripted =>
    request.path === "/v1/config"
      ? { body: made }
      : request.path.endsWith("/confirm")
        ? { body: plan }
        : applying([])(request);
  const sent = (peer: ScriptedNode): string[] => paths(peer).filter((line) => line.startsWith("POST"));

  test("a person who agrees twice keeps it, over a connection of its own", async () => {
    const { host, node: peer } = await enrolled(waiting);
    expect((await runCctl(host, argv, { answers: ["y", "y"] })).out).toContain("kept: restarted k0scontroller");
    expect(JSON.parse(peer.requests.find(({ path }) => path === "/v1/config")?.body ?? "")).toMatchObject({
      confirmWithin: "2m",
    });
    expect(sent(peer)).toEqual(["POST /v1/config?dryRun=true", "POST /v1/config", "POST /v1/operations/op1/confirm"]);
  });

  test("a script gets the command, and nothing is confirmed for it", async () => {
    const { host, node: peer } = await enrolled(waiting);
    const ran = await runCctl(host, [...argv, "--yes"]);
    expect([ran.status, ran.out.includes("cctl confirm node1 op1")]).toEqual([0, true]);
    expect(sent(peer).at(-1)).toBe("POST /v1/config");
    const json = await runCctl(host, [...argv, "--yes", "-o", "json"]);
    expect(JSON.parse(json.out)).toMatchObject({ status: "awaiting-confirmation", operation: "op1" });
    expect(json.err).toContain("cctl confirm node1 op1");
  });

  test("B166: a node that lets nobody in any more over a new connection is said to undo it, and nobody is asked", async () => {
    let isCut = false;
    node = await scriptedNode((request) => {
      if (isCut) return { status: 401, body: { error: "not you" } };
      isCut = request.path === "/v1/config";
      return request.path === "/v1/health" ? { body: { status: "ok" } } : waiting(request);
    });
    const host = fakeHost({ nowMs: Date.now() });
    await runCctl(host, ["pki", "init"]);
    host.put(
      "/home/ann/.corium/config.yaml",
      `nodes:\n  ${node.address}:\n    fingerprint: ${node.fingerprint}\n    name: node1\n`,
    );
    host.put("/n.yaml", "role: single\n");
    const ran = await runCctl(host, argv, { answers: ["y", "y"] });
    expect([ran.status, ran.err.includes("taken back by the node itself")]).toEqual([4, true]);
    expect(sent(node).at(-1)).toBe("POST /v1/config");
  });

  test("a change of api without it ends here, and says how", async () => {
    const fields = [{ path: "api.enabled", class: "guarded", new: false }] as const;
    const { host, node: peer } = await enrolled((request) =>
      request.path === "/v1/config?dryRun=true" ? { body: { ...plan, fields } } : waiting(request),
    );
    const ran = await runCctl(host, ["apply", "node1", "-f", "/n.yaml", "--yes"]);
    expect([ran.status, ran.err.includes("--confirm-within 2m")]).toEqual([1, true]);
    expect(sent(peer)).toEqual(["POST /v1/config?dryRun=true"]);
    const several = await runCctl(host, ["apply", "node1", "node2", ...argv.slice(2)]);
    expect(several.status).toBe(2);
  });

  test("confirm and cancel without an id take the operation that waits", async () => {
    const { host, node: peer } = await enrolled((request) =>
      request.path === "/v1/operations"
        ? { body: { operations: [operation("awaiting-confirmation")] } }
        : waiting(request),
    );
    expect((await runCctl(host, ["confirm", "node1"])).status).toBe(0);
    expect((await runCctl(host, ["cancel", "node1"], { answers: ["n"] })).status).toBe(1);
    await runCctl(host, ["cancel", "node1", "--yes"]);
    expect(sent(peer)).toEqual(["POST /v1/operations/op1/confirm", "POST /v1/operations/op1/cancel"]);
  });
});

describe("answers", () => {
  test("a node can't drive the terminal with what it says", async () => {
    const { host } = await enrolled(() => ({ status: 500, body: { error: "\u001b[2J\nhint: run this" } }));
    const ran = await runCctl(host, ["status", "node1"], { isTerminal: true });
    expect(ran.err).toContain("answers 500: \\x1b[2J\n  hint: run this\n");
    const logs = `${JSON.stringify({ at: "t", unit: "u", message: "\u001b]0;x\u0007\n" })}\n{"not json\n`;
    const streamed = await enrolled(() => ({ body: logs }));
    const shown = await runCctl(streamed.host, ["logs", "node1", "--unit", "u", "--lines", "5"], { isTerminal: true });
    expect(shown.out).toBe('t  u  \\x1b]0;x\\x07\\n\n{"not json\n');
    expect(streamed.node.requests.map(({ path }) => path)).toEqual(["/v1/logs?unit=u&lines=5"]);
  });

  test.each([
    [401, 4],
    [403, 4],
    [409, 1],
    [429, 1],
    [503, 1],
  ])("a %i exits %i", async (status, exit) => {
    const { host } = await enrolled(() => ({ status, body: { error: "no" } }));
    expect((await runCctl(host, ["status", "node1"])).status).toBe(exit);
  });

  test("diff says by its exit status whether the node is as wished", async () => {
    for (const [state, exit] of [
      ["in-sync", 0],
      ["drifted", 5],
      ["pending", 5],
    ] as const) {
      const { host } = await enrolled(() => ({ body: { state, reasons: [{ code: "c", message: "m" }] } }));
      const ran = await runCctl(host, ["diff", "node1"]);
      expect([ran.out, ran.status]).toEqual([`${state}\n  c: m\n`, exit]);
    }
    const { host } = await enrolled(applying([]));
    expect((await runCctl(host, ["diff", "node1", "--file", "/n.yaml"])).status).toBe(5);
  });
});

describe("the previous document", () => {
  test("is fetched from the node, planned, and applied against that plan", async () => {
    const { host, node: peer } = await enrolled((request) =>
      request.path === "/v1/config/previous"
        ? { body: { document: "role: single # before\n", sha256: "a", at: "t", by: "ann" } }
        : applying([operation("succeeded")])(request),
    );
    const ran = await runCctl(host, ["apply", "node1", "--previous", "--yes"]);
    expect([ran.status, ran.err]).toEqual([0, ""]);
    const bodies = peer.requests.filter(({ method }) => method === "POST").map(({ body }) => body);
    expect(bodies.map((body) => JSON.parse(String(body)) as unknown)).toEqual(
      [1, 2].map(() => ({ document: "role: single # before\n" })),
    );
    const both = await runCctl(host, ["apply", "node1", "--previous", "--file", "/n.yaml"]);
    expect(both.status).toBe(2);
  });
});

describe("enroll", () => {
  const answer = ({ path, body }: Received): Scripted => {
    if (path !== "/v1/enroll") return { status: 404, body: { error: "no" } };
    const { acknowledge } = JSON.parse(body) as { acknowledge?: boolean };
    if (acknowledge !== true) {
      return { status: 409, body: { error: "it would become node9 of cluster x", reason: "would-bootstrap" } };
    }
    return { body: { enrolled: true, operatorCA: "SHA256:x", operation: "op1" } };
  };

  test("a person compares, gives the code, and agrees to what the node's own document makes of it", async () => {
    const { host, node: peer } = await enrolled(answer);
    host.drop("/home/ann/.corium/config.yaml");
    const ran = await runCctl(host, ["enroll", peer.address, "--name", "node9"], {
      answers: ["y", "ABCD-EFGH", "yes"],
    });
    expect(ran.err).toContain(`shows the fingerprint\n\n  ${peer.fingerprint}\n\n`);
    expect(ran.err).toContain("it would become node9 of cluster x");
    expect(ran.out).toBe(
      `${peer.address} is yours; it is known by ${peer.fingerprint}\nNext: cctl operations node9 op1 --follow\n`,
    );
    expect(ran.status).toBe(0);
    expect(host.text("/home/ann/.corium/config.yaml")).toContain("name: node9");
    expect(peer.requests.map(({ body }) => JSON.parse(body).code)).toEqual(["ABCD-EFGH", "ABCD-EFGH"]);
  });

  test("a fingerprint that is not confirmed gets nothing: no code, no CA, no request", async () => {
    const { host, node: peer } = await enrolled(answer);
    const ran = await runCctl(host, ["enroll", peer.address, "--code", "ABCD-EFGH"], { answers: ["n"] });
    expect(ran.err).toContain("the fingerprint was not confirmed, so nothing was sent");
    const other = `SHA256:${"A".repeat(43)}`;
    const scripted = await runCctl(host, ["enroll", peer.address, "--code", "x", "--fingerprint", other, "--yes"]);
    expect(scripted.err).toContain("shows another fingerprint; nothing was sent to it");
    expect(peer.requests).toEqual([]);
  });

  test("--wipe-own is typed by whoever is there; nobody there and no --yes: nothing is sent", async () => {
    const { host, node: peer } = await enrolled(answer);
    const argv = [
      "enroll",
      peer.address,
      "--code",
      "x",
      "--fingerprint",
      peer.fingerprint,
      "--wipe-own",
      "--own-patch",
    ];
    expect((await runCctl(host, argv, { answers: ["yes"] })).err).toContain("nothing was sent");
    expect((await runCctl(host, argv)).err).toContain("nobody is here to agree to --wipe-own");
    expect(peer.requests).toEqual([]);
    expect((await runCctl(host, argv, { answers: ["wipe-own"] })).status).toBe(0);
    expect((await runCctl(host, [...argv, "--yes"])).status).toBe(0);
    expect(peer.requests.map(({ body }) => JSON.parse(body).wipeOwn)).toEqual([true, true]);
    await runCctl(host, argv.toSpliced(6, 1));
    expect(JSON.parse(peer.requests.at(-1)?.body ?? "{}").wipeOwn).toBeUndefined();
  });

  test("a refused claim pins nothing", async () => {
    const { host, node: peer } = await enrolled(() => ({ status: 401, body: { error: "wrong code" } }));
    host.drop("/home/ann/.corium/config.yaml");
    const argv = ["enroll", peer.address, "--code", "x", "--fingerprint", peer.fingerprint];
    expect((await runCctl(host, argv)).status).toBe(4);
    expect(host.text("/home/ann/.corium/config.yaml")).toBeUndefined();
  });
});

test("a store that was made before a node was claimed could never know it", async () => {
  const { host, node: peer } = await enrolled(applying([]));
  host.put("/home/ann/.corium/config.yaml", "nodes: {}\n");
  const lost = await runCctl(host, ["health", peer.address]);
  expect(lost.err).toContain(`cctl trust ${peer.address}`);
  const argv = ["trust", peer.address, "--fingerprint", peer.fingerprint, "--name", "n1"];
  expect(await runCctl(host, argv)).toMatchObject({ status: 0 });
  expect(await runCctl(host, ["health", "n1"])).toMatchObject({ status: 0 });
  const other = peer.fingerprint.replace(/:./, ":-");
  expect(await runCctl(host, ["trust", peer.address, "--fingerprint", other])).toMatchObject({ status: 2 });
});
