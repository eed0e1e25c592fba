import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { realRandom } from "../host/random.ts";
import { mintServer } from "../pki/driver.ts";
import type { FakeProgram } from "../test/support/fake-host.ts";
import type { FakeApi } from "../test/support/fake-api.ts";
import { fakeApi, operator } from "../test/support/fake-api.ts";

const CONTROLLER = "role: controller\nnode: {name: n1}\ncluster: {name: shop, endpoint: api.example.com}\n";
const SECRET = "abcdefghijklmnop";

const kubeconfig = (server: string, user = "admin", token = SECRET): string => `apiVersion: v1
kind: Config
clusters: [{name: k0s, cluster: {server: ${server}, certificate-authority-data: eA==}}]
contexts: [{name: k0s, context: {cluster: k0s, user: ${user}}}]
current-context: k0s
users: [{name: ${user}, user: {token: ${token}}}]
`;

interface Asked {
  argv: readonly string[];
  answer: ReturnType<FakeProgram> | undefined;
}

/** k0s as facts sections 2.4 and 2.5 have it. */
function k0s(asked: Asked): FakeProgram {
  return ({ argv }) => {
    asked.argv = argv;
    if (asked.answer !== undefined) return asked.answer;
    if (argv[1] === "kubeconfig") return kubeconfig("https://10.0.0.4:6443");
    const user = argv.includes("worker") ? "kubelet-bootstrap" : "controller-bootstrap";
    const plain = kubeconfig("https://api.example.com:6443", user, `ab12cd.${SECRET}`);
    return `${gzipSync(plain).toString("base64")}\n`;
  };
}

async function node(text: string | undefined = CONTROLLER, addresses = {}): Promise<{ api: FakeApi; asked: Asked }> {
  const asked: Asked = { argv: [], answer: undefined };
  const api = await fakeApi({ programs: { k0s: k0s(asked) } });
  if (text === "") return { api, asked };
  const document = api.state.documents.add({ text, atMs: 1, requester: { kind: "document" }, origin: "apply" });
  api.state.baseline.set({
    document,
    hostname: "n1",
    machineId: "m",
    addresses,
    k0sVersion: "v1.36.3+k0s.2",
    inputHash: "x",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: {},
    atMs: 1,
  });
  return { api, asked };
}

/** Wherever somebody could read it later. */
const told = (api: FakeApi): string =>
  JSON.stringify([api.state.audit.last(), api.state.events.last(), api.fake.calls]);

describe("GET /v1/kubeconfig", () => {
  test.each([
    ["the endpoint", CONTROLLER, {}, "https://api.example.com:6443"],
    [
      "the recorded address where there is no endpoint",
      "role: controller\n",
      { apiAddress: "192.0.2.5" },
      "https://192.0.2.5:6443",
    ],
    ["an IPv6 address", "role: controller\n", { apiAddress: "2001:db8::5" }, "https://[2001:db8::5]:6443"],
    ["what k0s says where nothing is known", "role: single\n", {}, "https://10.0.0.4:6443"],
  ])("leads to %s", async (_, text, addresses, server) => {
    const { api } = await node(text, addresses);
    const answer = await api.call("GET", "/v1/kubeconfig");
    expect([answer.status, answer.json["server"]]).toEqual([200, server]);
    expect(String(answer.json["kubeconfig"]).replaceAll('"', "")).toContain(`server: ${server},`);
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test.each([
    ["vpn.example.com", "https://vpn.example.com:6443"],
    ["192.0.2.9:7000", "https://192.0.2.9:7000"],
    ["https://192.0.2.9:443", "https://192.0.2.9"],
    ["2001:db8::9", "https://[2001:db8::9]:6443"],
  ])("or where one wants, %s", async (server, shown) => {
    const { api } = await node();
    const answer = await api.call("GET", `/v1/kubeconfig?server=${encodeURIComponent(server)}`);
    expect(answer.json["server"]).toBe(shown);
  });

  test.each(["", "http://a", "a/b", "a b", "user@a", "a:b", "a:99999", "https://a?b", "$(id)"])(
    "%j is nowhere, and k0s is not even asked",
    async (server) => {
      const { api, asked } = await node();
      const answer = await api.call("GET", `/v1/kubeconfig?server=${encodeURIComponent(server)}`);
      expect([answer.status, answer.json["reason"], asked.argv]).toEqual([400, "invalid-query", []]);
    },
  );

  test("B091: an address that the certificate does not name is said, with the field that would have named it", async () => {
    const { api } = await node();
    const { certificate } = await mintServer({ hostname: "api.example.com", nowMs: Date.now(), random: realRandom });
    api.fake.put("/var/lib/k0s/pki/server.crt", certificate);
    const elsewhere = await api.call("GET", "/v1/kubeconfig?server=163.0.0.1");
    expect(String(elsewhere.json["warnings"])).toMatch(/does not name 163\.0\.0\.1.*cluster\.subjectAltNames/);
    const named = await api.call("GET", "/v1/kubeconfig");
    expect(named.json["warnings"]).toEqual([]);
  });

  test("the audit knows who took it; nothing of it is written anywhere", async () => {
    const { api } = await node();
    await api.call("GET", "/v1/kubeconfig", { as: operator("admin") });
    expect(api.state.audit.last().at(-1)).toMatchObject({ route: "GET /v1/kubeconfig", requester: { name: "alice" } });
    expect(told(api)).not.toContain(SECRET);
  });
});

describe("POST /v1/join-token", () => {
  test.each(["worker", "controller"] as const)(
    "a token for a %s, with its id in the audit and never itself",
    async (role) => {
      const { api, asked } = await node();
      const answer = await api.call("POST", "/v1/join-token", { json: { role, expiry: "90m" } });
      expect(answer.json).toMatchObject({ id: "ab12cd", role, server: "https://api.example.com:6443" });
      expect(asked.argv).toEqual(["/usr/bin/k0s", "token", "create", "--role", role, "--expiry", "5400s"]);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(api.state.audit.last().at(-1)).toMatchObject({
        route: "POST /v1/join-token",
        outcome: `token ab12cd for a ${role}, 90m`,
      });
      expect(told(api)).not.toContain(String(answer.json["token"]));
      expect(told(api)).not.toContain(SECRET);
    },
  );

  test.each(["25h", "0s", "59s", "", "1d", "-1h", "24h1s"])(
    "expiry %j is refused before k0s is asked",
    async (expiry) => {
      const { api, asked } = await node();
      const answer = await api.call("POST", "/v1/join-token", { json: { role: "worker", expiry } });
      expect([answer.status, asked.argv]).toEqual([400, []]);
    },
  );

  test("without an expiry it ends in an hour; without a role, or with another, it is refused", async () => {
    const { api, asked } = await node();
    expect((await api.call("POST", "/v1/join-token", { json: {} })).status).toBe(400);
    expect((await api.call("POST", "/v1/join-token", { json: { role: "admin" } })).status).toBe(400);
    await api.call("POST", "/v1/join-token", { json: { role: "worker" } });
    expect(asked.argv.at(-1)).toBe("3600s");
  });

  test("a single-node cluster takes nobody: said so, and k0s's own refusal too", async () => {
    const single = await node("role: single\n");
    const refused = await single.api.call("POST", "/v1/join-token", { json: { role: "worker" } });
    expect([refused.status, refused.json["reason"], single.asked.argv]).toEqual([409, "not-joinable", []]);
    expect(refused.json["error"]).toContain("nothing can join");
    const { api, asked } = await node();
    const stderr = "Error: refusing to create token: cannot join controller into current storage\n";
    asked.answer = { exitCode: 1, stderr };
    const kine = await api.call("POST", "/v1/join-token", { json: { role: "controller" } });
    expect([kine.status, kine.json["reason"]]).toEqual([409, "not-joinable"]);
    expect(kine.json["error"]).toContain("cannot join controller into current storage");
  });

  test("k0s is down, or prints something else: 503, and what it printed stays here", async () => {
    const { api, asked } = await node();
    asked.answer = { exitCode: 1, stderr: 'Error: status: can\'t get "status"\n' };
    expect((await api.call("POST", "/v1/join-token", { json: { role: "worker" } })).status).toBe(503);
    expect((await api.call("GET", "/v1/kubeconfig")).status).toBe(503);
    asked.answer = "not-a-token-but-secret";
    const odd = await api.call("POST", "/v1/join-token", { json: { role: "worker" } });
    expect([odd.status, odd.text.includes("not-a-token-but-secret")]).toEqual([503, false]);
  });
});

describe("both", () => {
  test.each([
    ["a worker", "role: worker", 409, "not-a-controller"],
    ["a node that is nothing yet", "", 409, "not-in-service"],
  ])("are for controllers, not for %s", async (_, text, status, reason) => {
    const { api, asked } = await node(text);
    if (text !== "") {
      const document = { ...api.services.config.parse(CONTROLLER).document, role: "worker" } as never;
      Object.assign(api.services.config, { parse: () => ({ findings: [], document }) });
    }
    for (const answer of [
      await api.call("GET", "/v1/kubeconfig"),
      await api.call("POST", "/v1/join-token", { json: { role: "worker" } }),
    ]) {
      expect([answer.status, answer.json["reason"]]).toEqual([status, reason]);
    }
    expect(asked.argv).toEqual([]);
  });

  test.each(["readonly", "operator"] as const)("are not for %s", async (role) => {
    const { api, asked } = await node();
    const as = operator(role);
    expect((await api.call("GET", "/v1/kubeconfig", { as })).status).toBe(403);
    expect((await api.call("POST", "/v1/join-token", { as, json: { role: "worker" } })).status).toBe(403);
    expect(asked.argv).toEqual([]);
  });
});
