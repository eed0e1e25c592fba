import { realRandom } from "../host/random.ts";
import { mintAuthority } from "../pki/driver.ts";
import { afterEach, describe, expect, test } from "bun:test";
import { parse } from "yaml";
import { parseDocument } from "../config/load.ts";
import { type FakeHost, fakeHost } from "../test/support/fake-host.ts";
import { joinToken } from "../test/support/first-boot.ts";
import { type Ran, runCctl } from "../test/support/run-cctl.ts";
import { type Received, type Scripted, type ScriptedNode, scriptedNode } from "../test/support/scripted-node.ts";

const { certificate } = await mintAuthority({ commonName: "kubernetes", nowMs: Date.now(), random: realRandom });
const TOKEN = joinToken("kubelet-bootstrap", certificate);
const CONFIG = "apiVersion: v1\nkind: Config\nusers: []\n";

let node: ScriptedNode | undefined;
afterEach(() => node?.close());

const controller =
  (document: string) =>
  (request: Received): Scripted => {
    if (request.path === "/v1/health") return { body: { status: "ok" } };
    if (request.path === "/v1/config") return { body: { document, sha256: "", at: "", etag: "" } };
    if (request.path.startsWith("/v1/kubeconfig")) {
      const warnings = request.path.includes("server=") ? ["the certificate does not name it"] : [];
      return { body: { kubeconfig: CONFIG, server: "https://192.0.2.10:6443", warnings } };
    }
    const { role } = JSON.parse(request.body) as { readonly role: string };
    return {
      body: { token: TOKEN, id: "ab12cd", role, server: "https://192.0.2.10:6443", expiresAt: "2026-01-31T12:00:00Z" },
    };
  };

const usual = "role: controller\ncluster: {name: shop, endpoint: 192.0.2.10, subjectAltNames: [a.example.com]}\n";

async function enrolled(document = usual): Promise<{ host: FakeHost; cctl: (line: string) => Promise<Ran> }> {
  node = await scriptedNode(controller(document));
  const host = fakeHost({ nowMs: Date.now() });
  await runCctl(host, ["pki", "init"]);
  const { address, fingerprint } = node;
  host.put("/home/ann/.corium/config.yaml", `nodes:\n  ${address}:\n    fingerprint: ${fingerprint}\n    name: n1\n`);
  return { host, cctl: (line) => runCctl(host, line.split(" ")) };
}

const asked = (): string[] =>
  (node?.requests ?? [])
    .map(({ method, path, body }) => `${method} ${path} ${body}`.trim())
    .filter((line) => !line.includes("health"));

describe("standard output holds nothing but", () => {
  test("the kubeconfig", async () => {
    const { cctl } = await enrolled();
    expect(await cctl("kubeconfig n1")).toMatchObject({ status: 0, out: CONFIG, err: "" });
  });

  test("the token; until when it is good stands on stderr", async () => {
    const { cctl } = await enrolled();
    const ran = await cctl("join-token n1 --role controller --expiry 30m");
    expect(ran).toMatchObject({ status: 0, out: `${TOKEN}\n` });
    expect(ran.err).toBe("token ab12cd lets a controller in until 2026-01-31T12:00:00Z\n");
    expect(asked()).toEqual(['POST /v1/join-token {"role":"controller","expiry":"30m"}']);
  });

  test("the node's answer, as json", async () => {
    const { cctl } = await enrolled();
    expect(JSON.parse((await cctl("join-token n1 -o json")).out)).toMatchObject({ id: "ab12cd", token: TOKEN });
  });
});

test("a warning about the certificate is one: the kubeconfig is given all the same", async () => {
  const { cctl } = await enrolled();
  const ran = await cctl("kubeconfig n1 --server 163.0.0.1:6443");
  expect([ran.status, ran.out, ran.err]).toEqual([0, CONFIG, "cctl: warning: the certificate does not name it\n"]);
  expect(asked()).toEqual(["GET /v1/kubeconfig?server=163.0.0.1%3A6443"]);
});

test("into a file that only its owner may read; never over another, and then nothing is minted", async () => {
  const { host, cctl } = await enrolled();
  for (const command of ["kubeconfig", "join-token", "worker-config"]) {
    const file = `/home/ann/${command}`;
    const ran = await cctl(`${command} n1 --output-file ${file}`);
    expect([ran.status, ran.out, host.node(file)?.mode]).toEqual([0, "", 0o600]);
    const count = asked().length;
    const again = await cctl(`${command} n1 --output-file ${file}`);
    expect([again.status, again.err, asked().length]).toEqual([
      1,
      `cctl: ${file} is there already\n  hint: --force writes over it\n`,
      count,
    ]);
    expect((await cctl(`${command} n1 --to ${file} --force`)).status).toBe(0);
  }
  expect(host.text("/home/ann/kubeconfig")).toBe(CONFIG);
  expect(host.text("/home/ann/join-token")).toBe(`${TOKEN}\n`);
});

describe("worker-config", () => {
  test("is a document that joins, valid by the node's own code, with nothing of the controller's in it", async () => {
    const { cctl } = await enrolled(
      `${usual}node: {name: n1, labels: {a: b}}\naddons: [{name: x, chart: "oci://r.example.com/x"}]\nha: {enabled: true, virtualIP: 192.0.2.10/24, interface: eth0, authPass: hunter2}\n`,
    );
    const ran = await cctl("worker-config n1 --name w1 --label rack=a,zone=");
    expect([ran.status, ran.err]).toEqual([0, ""]);
    expect(parse(ran.out)).toEqual({
      role: "worker",
      cluster: { name: "shop", endpoint: "192.0.2.10" },
      node: { name: "w1", labels: { rack: "a", zone: "" } },
      join: { token: TOKEN },
    });
    expect(parseDocument(ran.out, { nowMs: Date.now() }).document?.role).toBe("worker");
    expect(ran.out).not.toContain("hunter2");
  });

  test("says the ranges where they are not the usual ones", async () => {
    const { cctl } = await enrolled(`${usual}network: {podCIDR: 10.200.0.0/16, cni: calico}\n`);
    const { network } = parse((await cctl("worker-config n1")).out) as { readonly network: unknown };
    expect(network).toEqual({ podCIDR: "10.200.0.0/16", cni: "calico" });
  });

  test("a name or a label that is none prints no document, and no token was made that would let others in", async () => {
    const { cctl } = await enrolled();
    const named = await cctl("worker-config n1 --name under_score");
    expect([named.status, named.out]).toEqual([1, ""]);
    expect(named.err).toContain("node.name");
    expect(named.err).not.toContain(TOKEN);
    expect(asked()).toEqual(["GET /v1/config"]);
    expect((await cctl("worker-config n1 --label rack")).status).toBe(2);
  });
});

test("a role that no token has is a mistake of usage", async () => {
  const { cctl } = await enrolled();
  expect((await cctl("join-token n1 --role admin")).status).toBe(2);
  expect(asked()).toEqual([]);
});
