import { describe, expect, test } from "bun:test";

import { refused, type ServiceOutcome } from "../apply/service/model.ts";
import type { Baseline } from "../state/model.ts";
import type { State } from "../state/open.ts";
import { fakeApi, operator } from "../test/support/fake-api.ts";
import type { Caller } from "./caller.ts";
import { documentJsonSchema } from "../config/json-schema.ts";
import { ROUTES } from "./routes/all.ts";

const SINGLE = "role: single\n";

function inService(state: State): Baseline {
  const document = state.documents.add({
    text: SINGLE,
    atMs: 1,
    requester: { kind: "document" },
    origin: "config.yaml",
  });
  const baseline: Baseline = {
    document,
    hostname: "n1",
    machineId: "m",
    addresses: {},
    k0sVersion: "v1.34.1+k0s.0",
    inputHash: "0123456789abcdef0123",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: {},
    atMs: 1,
  };
  state.baseline.set(baseline);
  return baseline;
}

test("the OpenAPI page lists every route with its role and the schema of its body", async () => {
  const { call } = await fakeApi();
  const { json } = await call("GET", "/v1/openapi.json");
  const paths = json["paths"] as Record<string, Record<string, Record<string, unknown>>>;
  for (const { method, path, role } of ROUTES) {
    expect(paths[path.replaceAll(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()]?.["x-corium-role"]).toBe(role);
  }
  expect(JSON.stringify(paths["/v1/config"]?.["post"]?.["requestBody"])).toContain('"acknowledge"');
  expect(paths["/v1/enroll"]?.["post"]?.["security"]).toEqual([]);
});

test("the schema of the document is served, the same that corium schema prints", async () => {
  const { call } = await fakeApi();
  const { status, json } = await call("GET", "/v1/config/schema");
  expect(status).toBe(200);
  expect(json).toEqual(JSON.parse(JSON.stringify(documentJsonSchema())));
});

describe("who may call what", () => {
  const concrete = (path: string): string => path.replace(":id", "nope").replace(":unit", "k0scontroller");

  test("every route refuses the role below its own, and nobody is let in without one", async () => {
    const { call } = await fakeApi();
    for (const route of ROUTES) {
      const lower = { readonly: undefined, operator: "readonly", admin: "operator" } as const;
      const role = lower[route.role];
      if (role !== undefined) {
        const answer = await call(route.method, concrete(route.path), { as: operator(role), json: {} });
        expect([route.path, answer.status, answer.json["reason"]]).toEqual([route.path, 403, "role"]);
      }
      const strangers: readonly (readonly [Caller, number])[] = [
        [{ kind: "unclaimed" }, 409],
        [{ kind: "refused", error: { code: "wrong-ca", message: "no" } }, 401],
        [{ kind: "no-role", name: "bob", fingerprint: "SHA256:b" }, 403],
      ];
      for (const [as, status] of strangers) {
        expect([route.path, (await call(route.method, concrete(route.path), { as, json: {} })).status]).toEqual([
          route.path,
          status,
        ]);
      }
    }
  });

  test("strangers are told what to do, not what there is", async () => {
    const { call } = await fakeApi();
    const unclaimed: Caller = { kind: "unclaimed" };
    expect((await call("GET", "/v1/nothing", { as: unclaimed })).json["error"]).toStartWith("claim first");
    expect((await call("GET", "/v1/enroll", { as: unclaimed })).status).toBe(409);
    const noRole = await call("GET", "/v1/node", { as: { kind: "no-role", name: "bob", fingerprint: "SHA256:b" } });
    expect(noRole.json["error"]).toContain("cctl pki issue");
  });

  test("B153: the matched route is authorised, however the path is spelled", async () => {
    const { call } = await fakeApi();
    for (const path of ["/v1/health/../lifecycle/reboot", "/v1/%6cifecycle/reboot", "/v1/lifecycle/reboot/"]) {
      const { status } = await call("POST", path, { as: operator("readonly"), json: {} });
      expect([403, 404]).toContain(status);
    }
  });
});

describe("every answer", () => {
  test("carries the version, also a refusal", async () => {
    const { call } = await fakeApi();
    expect((await call("GET", "/v1/health")).headers.get("corium-version")).toBe("1.2.3");
    expect((await call("GET", "/v1/nothing")).headers.get("corium-version")).toBe("1.2.3");
  });

  test("404 for what is not there, 405 with Allow for the wrong method", async () => {
    const { call } = await fakeApi();
    expect((await call("GET", "/v1/nothing")).status).toBe(404);
    const wrong = await call("DELETE", "/v1/config");
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET, POST, HEAD"]);
    expect((await call("GET", "/v1/enroll")).headers.get("allow")).toBe("POST");
  });

  test("415, 413, not JSON, unknown keys", async () => {
    const { call } = await fakeApi();
    const post = async (more: object) => (await call("POST", "/v1/config", more)).status;
    expect(await post({ text: "document: x", headers: { "content-type": "text/yaml" } })).toBe(415);
    expect(await post({ json: { document: "x".repeat(1_100_000) } })).toBe(413);
    expect(await post({ text: "{", headers: { "content-type": "application/json; charset=utf-8" } })).toBe(400);
    const unknown = await call("POST", "/v1/config", { json: { document: SINGLE, acknowlege: true } });
    expect([unknown.status, unknown.json["reason"]]).toEqual([400, "invalid-body"]);
  });

  test("a database that fails gives 503, never a wrong answer", async () => {
    const { call, services } = await fakeApi();
    const list = (): never => {
      throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_READ" });
    };
    Object.assign(services.state.operations, { list });
    const failing = await call("GET", "/v1/operations");
    expect([failing.status, failing.json["reason"]]).toEqual([503, "state"]);
    const lost = await fakeApi({ stateProblem: { code: "state-lost", message: "the database is not there" } });
    const refused = await lost.call("GET", "/v1/operations");
    expect([refused.status, refused.json["reason"]]).toEqual([503, "state-lost"]);
    expect((await lost.call("POST", "/v1/lifecycle/reboot")).status).toBe(503);
    expect((await lost.call("GET", "/v1/health")).status).toBe(200);
    const enrolled = await lost.call("POST", "/v1/enroll", { as: { kind: "unclaimed" }, json: {} });
    expect(enrolled.status).toBe(503);
  });

  test("the disk was full, and an apply that was taken back, or done, was told as a database that can't be used", async () => {
    const { call, services, state } = await fakeApi();
    inService(state);
    const add = (): never => {
      throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    };
    Object.assign(services.state.audit, { add });
    const apply = (outcome: ServiceOutcome): void => {
      Object.assign(services.apply, { apply: () => Promise.resolve(outcome) });
    };
    const post = (path: string) => call("POST", path, { as: operator("admin"), json: { document: SINGLE } });
    apply(refused(409, "rolled-back", "the change was taken back: no room", { operation: "op1" }));
    const undone = await post("/v1/config");
    expect([undone.status, undone.json["reason"], undone.json["operation"]]).toEqual([503, "state", "op1"]);
    expect(undone.json["error"]).toStartWith("the change was taken back: no room; it is not in the audit: the disk ");
    expect(undone.json["error"]).toContain("make room in /var/lib/corium");
    const answer = { fields: [], restarted: [], files: [], consequences: [], warnings: [] };
    apply({ kind: "answer", answer: { status: "reconciled", ...answer } });
    expect((await post("/v1/config")).json["error"]).toStartWith("what was asked for was done; it is not in the audit");
    expect((await post("/v1/config?dryRun=true")).json["error"]).toStartWith("nothing was changed; ");
  });

  test("B186: who changed what is in the audit, refusals too, bodies never", async () => {
    const { call, state } = await fakeApi();
    await call("POST", "/v1/config?dryRun=true", { as: operator("admin"), json: { document: "token: s3cret" } });
    await call("POST", "/v1/config", { as: operator("readonly", "bob"), json: { document: SINGLE } });
    await call("GET", "/v1/health", { as: operator("readonly") });
    const audit = state.audit.last();
    expect(audit.map(({ route, status, outcome }) => [route, status, outcome])).toEqual([
      ["POST /v1/config?dryRun", 400, "invalid-document"],
      ["POST /v1/config", 403, "role"],
    ]);
    expect(audit[1]?.requester).toMatchObject({ name: "bob", role: "readonly", address: "192.0.2.1" });
    expect(JSON.stringify(audit)).not.toContain("s3cret");
  });
});

describe("POST /v1/config", () => {
  test("before bootstrap it becomes the node's answer and bootstrap is started", async () => {
    const { call, fake, state, pokes } = await fakeApi();
    const plan = await call("POST", "/v1/config?dryRun", { json: { document: SINGLE } });
    expect([plan.status, plan.json["status"], fake.text("/etc/corium/config.yaml")]).toEqual([
      200,
      "planned",
      undefined,
    ]);
    const { status, json } = await call("POST", "/v1/config", { as: operator("admin"), json: { document: SINGLE } });
    expect([status, json["status"], json["role"]]).toEqual([200, "applied", "single"]);
    expect(fake.text("/etc/corium/config.yaml")).toBe(SINGLE);
    expect(fake.node("/etc/corium/config.yaml")?.mode).toBe(0o600);
    expect(fake.text("/var/lib/corium/etc/corium/config.yaml")).toBe(SINGLE);
    expect(state.documents.latest()).toMatchObject({ origin: "apply", requester: { name: "alice" } });
    expect(pokes.count).toBe(1);
  });

  test("an invalid one changes nothing and names every problem", async () => {
    const { call, fake, pokes } = await fakeApi();
    const { status, json } = await call("POST", "/v1/config", { json: { document: "role: king\nfoo: 1\n" } });
    expect(status).toBe(400);
    expect((json["problems"] as unknown[]).length).toBe(2);
    expect([fake.text("/etc/corium/config.yaml"), pokes.count]).toEqual([undefined, 0]);
  });

  test("while the machine is being changed it is refused", async () => {
    const api = await fakeApi();
    api.bootstrap = "running";
    const { status, json } = await api.call("POST", "/v1/config", { json: { document: SINGLE } });
    expect([status, json["reason"], api.fake.text("/etc/corium/config.yaml")]).toEqual([409, "busy", undefined]);
  });

  test("If-Match with the node's own ETag was refused before bootstrap; of fifty at once one is taken", async () => {
    const api = await fakeApi();
    await api.call("POST", "/v1/config", { json: { document: SINGLE } });
    const etag = (await api.call("GET", "/v1/config")).headers.get("etag") ?? "";
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        api.call("POST", "/v1/config", {
          json: { document: `role: single\ncluster: {name: c${at}}\n` },
          headers: { "if-match": etag },
        }),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 412)).toHaveLength(49);
    const { json } = await api.call("GET", "/v1/config", { as: operator("admin") });
    expect(String(json["document"])).toBe(api.fake.text("/etc/corium/config.yaml") ?? "");
  });

  test("in service it goes through the gate, with If-Match", async () => {
    const api = await fakeApi();
    inService(api.state);
    const refused = await api.call("POST", "/v1/config", { as: operator("admin"), json: { document: SINGLE } });
    expect([refused.status, refused.json["reason"]]).toEqual([409, "immutable"]);
    expect(api.applied[0]).toMatchObject({ isDryRun: false, acknowledge: false, requester: { name: "alice" } });
    const { headers } = await api.call("GET", "/v1/config");
    const etag = headers.get("etag") ?? "";
    api.outcome = {
      kind: "answer",
      answer: { status: "unchanged", fields: [], restarted: [], files: [], consequences: [], warnings: [] },
    };
    const json = { document: SINGLE };
    const unchanged = await api.call("POST", "/v1/config", { json, headers: { "if-match": etag } });
    expect([unchanged.status, unchanged.json["status"], unchanged.json["etag"]]).toEqual([200, "unchanged", etag]);
    inService(api.state);
    expect((await api.call("POST", "/v1/config", { json, headers: { "if-match": etag } })).status).toBe(412);
    expect((await api.call("POST", "/v1/config?dryRun=maybe", { json })).status).toBe(400);
  });

  test("If-Match as a list was stale, and one that is no ETag was said to be somebody's apply", async () => {
    const api = await fakeApi();
    inService(api.state);
    const json = { document: SINGLE };
    const etag = (await api.call("GET", "/v1/config")).headers.get("etag") ?? "";
    const answer = async (ifMatch: string): Promise<unknown> => {
      const headers = { "if-match": ifMatch };
      const { status, json: body } = await api.call("POST", "/v1/config?dryRun=true", { json, headers });
      return [status, body["reason"]];
    };
    // It comes to the gate, which refuses what this test gives it.
    for (const good of [etag, `"other", ${etag}`, `${etag},"other"`, "*", ` ${etag} `]) {
      expect([good, await answer(good)]).toEqual([good, [409, "immutable"]]);
    }
    for (const stale of ['"other"', `W/${etag}`, '"a", "b"', '""']) {
      expect([stale, await answer(stale)]).toEqual([stale, [412, "changed-in-between"]]);
    }
    for (const none of [etag.replaceAll('"', ""), '"', "a, b"]) {
      expect([none, await answer(none)]).toEqual([none, [400, "invalid-header"]]);
    }
  });
});

test("GET /v1/config hides secrets below admin, and is 404 while there is nothing", async () => {
  const { call, state } = await fakeApi();
  expect((await call("GET", "/v1/config")).status).toBe(404);
  inService(state);
  expect((await call("GET", "/v1/config", { as: operator("operator") })).json["document"]).toBe("(redacted)");
  expect((await call("GET", "/v1/config", { as: operator("admin") })).json["document"]).toBe(SINGLE);
});

describe("operations", () => {
  test("one is followed to its end", async () => {
    const { call, state } = await fakeApi();
    const begun = state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
    if (!begun.ok) throw new Error("busy");
    const following = call("GET", `/v1/operations/${begun.value.id}?follow=true`, { as: operator("readonly") });
    await Bun.sleep(20);
    state.operations.message(begun.value.id, "waiting", 2);
    await Bun.sleep(20);
    state.operations.end(begun.value.id, { phase: "succeeded" }, 3);
    const lines = (await following).text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { phase: string });
    expect(lines.at(0)?.phase).toBe("running");
    expect(lines.at(-1)?.phase).toBe("succeeded");
    expect((await call("GET", "/v1/operations/none?follow")).status).toBe(404);
  });

  test("only a failed bootstrap is retried", async () => {
    const { call, state, pokes } = await fakeApi();
    const run = (kind: "apply" | "bootstrap") => {
      const begun = state.operations.begin({ kind, requester: { kind: "document" }, version: "1", atMs: 1 });
      if (!begun.ok) throw new Error("busy");
      return begun.value.id;
    };
    const id = run("bootstrap");
    expect((await call("POST", `/v1/operations/${id}/retry`)).json["reason"]).toBe("busy");
    state.operations.end(id, { phase: "failed", failureReason: "x" }, 2);
    expect((await call("POST", `/v1/operations/${id}/retry`)).status).toBe(200);
    expect(pokes.count).toBe(1);
    const apply = run("apply");
    state.operations.end(apply, { phase: "failed", failureReason: "x" }, 2);
    expect((await call("POST", `/v1/operations/${apply}/retry`)).json["reason"]).toBe("not-retryable");
    expect((await call("POST", "/v1/operations/none/retry")).status).toBe(404);
  });
});

describe("events and audit", () => {
  test("as NDJSON, from a sequence number on, followed until the client goes", async () => {
    const { call, state } = await fakeApi();
    state.events.add({ atMs: 1, kind: "a", severity: "info", message: "one" });
    state.events.add({ atMs: 2, kind: "b", severity: "info", message: "two" });
    expect((await call("GET", "/v1/events?since=1")).text).toContain("two");
    expect((await call("GET", "/v1/events?since=1")).text).not.toContain("one");
    expect((await call("GET", "/v1/events?since=1970-01-01T00:00:00.002Z")).text).not.toContain("one");
    expect((await call("GET", "/v1/events?since=15m")).text).toBe("");
    expect((await call("GET", "/v1/events?since=x")).status).toBe(400);
    const gone = new AbortController();
    const following = call("GET", "/v1/events?follow=true", { signal: gone.signal });
    await Bun.sleep(20);
    state.events.add({ atMs: 3, kind: "c", severity: "info", message: "three" });
    await Bun.sleep(20);
    gone.abort();
    expect((await following).text.trim().split("\n")).toHaveLength(3);
  });
});

describe("services", () => {
  const units = { "k0scontroller.service": { activeState: "active" }, "corium-apid.service": {} };

  test("the fixed list, without what is not installed", async () => {
    const { call } = await fakeApi({ units });
    const { json } = await call("GET", "/v1/services");
    const names = (json["services"] as { unit: string }[]).map(({ unit }) => unit);
    expect(names).toEqual(["k0scontroller.service", "corium-apid.service", "corium-bootstrap.service"]);
  });

  test("k0s is restarted; others are 403, unknown ones 404, and not while an operation runs", async () => {
    const { call, fake, state } = await fakeApi({ units });
    const restart = (unit: string) => call("POST", `/v1/services/${unit}/restart`, { as: operator("operator") });
    expect((await restart("k0scontroller")).status).toBe(200);
    expect(fake.calls).toContain("systemd.restart k0scontroller.service");
    expect((await restart("corium-apid.service")).status).toBe(403);
    expect((await restart("sshd")).status).toBe(404);
    expect((await restart("k0sworker")).status).toBe(404);
    state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
    expect((await restart("k0scontroller")).json["reason"]).toBe("busy");
  });
});

describe("logs", () => {
  const entry = (cursor: string, message: unknown): string =>
    `${JSON.stringify({ __CURSOR: cursor, _SYSTEMD_UNIT: "k0scontroller.service", __REALTIME_TIMESTAMP: "1780000000000000", MESSAGE: message })}\n`;
  const programs = {
    journalctl: ({ argv }: { argv: readonly string[] }) =>
      argv.some((arg) => arg.startsWith("--after-cursor"))
        ? ""
        : entry("c1", "hello") + entry("c2", [104, 195, 169]) + '{"cut',
  };

  test("lines of one unit, also such as are not UTF-8", async () => {
    const { call, fake } = await fakeApi({ programs });
    const { text } = await call("GET", "/v1/logs?unit=k0scontroller&lines=5&since=15m");
    expect(
      text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      { at: "2026-05-28T20:26:40.000Z", unit: "k0scontroller.service", message: "hello" },
      { at: "2026-05-28T20:26:40.000Z", unit: "k0scontroller.service", message: "hé" },
    ]);
    expect(fake.calls.at(-1)).toContain("--unit=k0scontroller.service --lines=5 --since=@1767224700");
  });

  test("parameters are checked before the 200, and nothing but the list is read", async () => {
    const { call, fake } = await fakeApi({ programs });
    for (const [query, status] of [
      ["unit=sshd", 404],
      ["unit=", 404],
      ["unit=--vacuum-size=1", 404],
      ["unit=k0sworker&lines=0", 400],
      ["unit=k0sworker&lines=10001", 400],
      ["unit=k0sworker&lines=1e3x", 400],
      ["unit=k0sworker&since=yesterday", 400],
    ] as const) {
      expect([query, (await call("GET", `/v1/logs?${query}`)).status]).toEqual([query, status]);
    }
    expect(fake.calls.filter((call_) => call_.includes("journalctl"))).toEqual([]);
    expect((await (await fakeApi()).call("GET", "/v1/logs?unit=k0sworker")).status).toBe(503);
  });
});

describe("the document before the one that runs", () => {
  const add = (state: State, text: string) =>
    state.documents.add({ text, atMs: 1, requester: { kind: "console" }, origin: "apply" });

  test("is the newest older one that differs and has a role; admins only, and audited", async () => {
    const { call, state } = await fakeApi();
    expect((await call("GET", "/v1/config/previous")).json["reason"]).toBe("no-previous");
    add(state, "role: single\ncluster: {name: a}\n");
    add(state, "install: {disk: {serial: A}}\n");
    add(state, SINGLE);
    inService(state);
    add(state, "role: single\ncluster: {name: later}\n");
    const { status, json } = await call("GET", "/v1/config/previous", { as: operator("admin") });
    expect([status, json["document"], json["by"]]).toEqual([
      200,
      "role: single\ncluster: {name: a}\n",
      "somebody at the console",
    ]);
    expect(state.audit.last(1)).toMatchObject([{ route: "GET /v1/config/previous", requester: { name: "alice" } }]);
    expect((await call("GET", "/v1/config/previous", { as: operator("operator") })).status).toBe(403);
  });
});

describe("reboot", () => {
  test("answers first, then restarts; the operation stays open for the next boot", async () => {
    const programs = { systemctl: () => "" };
    const { call, fake, state } = await fakeApi({ programs });
    const answer = await call("POST", "/v1/lifecycle/reboot", { as: operator("admin") });
    expect(answer.status).toBe(202);
    expect(fake.calls).not.toContain("exec systemctl --no-block reboot");
    await Bun.sleep(20);
    expect(fake.calls).toContain("exec systemctl --no-block reboot");
    expect(state.operations.running()?.kind).toBe("reboot");
    expect((await call("POST", "/v1/lifecycle/reboot")).json["rebooting"]).toBe(true);
  });

  test("not in the middle of an apply or of provisioning", async () => {
    const api = await fakeApi({ programs: { systemctl: () => "" } });
    const begun = api.state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
    expect((await api.call("POST", "/v1/lifecycle/reboot")).json["reason"]).toBe("busy");
    if (begun.ok) api.state.operations.end(begun.value.id, { phase: "failed" }, 2);
    api.state.operations.begin({ kind: "bootstrap", requester: { kind: "document" }, version: "1", atMs: 3 });
    api.bootstrap = "running";
    expect((await api.call("POST", "/v1/lifecycle/reboot")).json["reason"]).toBe("busy");
    api.bootstrap = "waiting";
    expect((await api.call("POST", "/v1/lifecycle/reboot")).status).toBe(202);
  });
});

describe("shutdown", () => {
  test("answers first, then switches the machine off", async () => {
    const { call, state, fake } = await fakeApi({ programs: { systemctl: () => "" } });
    const answer = await call("POST", "/v1/lifecycle/shutdown", { as: operator("admin") });
    expect([answer.status, answer.json["shuttingDown"]]).toEqual([202, true]);
    expect(state.operations.running()?.kind).toBe("shutdown");
    await Bun.sleep(0);
    for (let tries = 0; tries < 100 && !fake.calls.some((each) => each.includes("poweroff")); tries++)
      await Bun.sleep(10);
    expect(fake.calls).toContain("exec systemctl --no-block poweroff");
  });
});
