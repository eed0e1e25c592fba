import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLOUD_INIT_MERGED } from "../config/driver.ts";
import { k0sLock, listedK0sVersions } from "../iso/k0s-lock.ts";
import type { Finding } from "../kit/finding.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { checkDocument } from "./check-document.ts";
import { readDocument } from "./obtain-document.ts";
import { validateCommand } from "./offline.main.ts";
import { renderCommand } from "./render.main.ts";

const folder = mkdtempSync(join(tmpdir(), "corium-check-"));
afterAll(() => rmSync(folder, { recursive: true }));

const nowMs = Date.UTC(2027, 0, 1);
const check = (text: string): readonly Finding[] => checkDocument(text, { file: "n.yaml", nowMs }).findings;

test("a warning about a map that is not there at all has a place too: where the document begins", () => {
  const joining = "role: controller\njoin: { tokenFrom: { url: 'https://x' } }\n";
  expect(check(joining)).toMatchObject([{ code: "no-balancer", path: "cluster.endpoint", line: 1, column: 1 }]);
});

describe("a version that the release's lock does not list", () => {
  const text = "role: single\nkubernetes:\n  version: v1.2.3+k0s.0\n";

  test("is a warning on a workstation, a listed one is none", () => {
    expect(check(text)).toMatchObject([
      { severity: "warning", code: "unlisted-version", path: "kubernetes.version", line: 3, column: 12 },
    ]);
    expect(listedK0sVersions).toContain(k0sLock.default);
    expect(check(`role: single\nkubernetes: {version: ${k0sLock.default}}\n`)).toEqual([]);
  });

  const onNode = (origin: string): readonly string[] => {
    const said: string[] = [];
    const reporter = { say: () => {}, warn: (message: string) => said.push(message), flush: () => Promise.resolve() };
    const found = { kind: "found", origin, sha256: "", pinned: false, notes: [] } as const;
    const read = readDocument(
      { host: fakeHost({ nowMs }), reporter },
      { ...found, text: `users: [{name: ops}]\ncorium:\n  ${text.replaceAll("\n", "\n  ").trimEnd()}\n` },
    );
    expect(read.ok).toBe(true);
    return said.map((line) => line.split(": ").slice(0, 3).join(" "));
  };

  test("is the same warning on the node, and so are keys that only cloud-init would carry out", () => {
    expect(onNode("/x/user-data")).toEqual([
      "/x/user-data:1:1 warning beside corium",
      "/x/user-data:5:14 warning kubernetes.version",
    ]);
    expect(onNode(CLOUD_INIT_MERGED)).toEqual([`${CLOUD_INIT_MERGED}:5:14 warning kubernetes.version`]);
  });
});

describe("a patch that k0s would drop or refuse", () => {
  test("a misspelt key is a warning where it stands, with the nearest one", () => {
    const text = "role: single\nk0s:\n  patch:\n    spec:\n      telemetry: {enabld: true}\n      apu: {port: 7000}\n";
    expect(check(text)).toMatchObject([
      {
        code: "k0s-unknown-key",
        path: "k0s.patch.spec.telemetry.enabld",
        line: 5,
        column: 19,
        hint: "did you mean enabled?",
      },
      { code: "k0s-unknown-key", path: "k0s.patch.spec.apu", line: 6, column: 7, hint: "did you mean api?" },
    ]);
  });

  test("what is missing is said at its map; the address that only the node knows is not missing", () => {
    const ha = "ha: {enabled: true, virtualIP: 192.0.2.9/24, authPass: abc, unicastPeers: [192.0.2.3]}\n";
    expect(check(`role: controller\ncluster: {endpoint: 192.0.2.9}\n${ha}`)).toEqual([]);
    const text = "role: single\nk0s: {patch: {spec: {extensions: {helm: {charts: [{name: a}]}}}}}\n";
    const findings = check(text);
    expect(findings.length).toBeGreaterThan(0);
    expect(findings.map(({ line }) => line)).toEqual(findings.map(() => 2));
  });

  /** Each way to look at a document says the same of it, as `LINE:COLUMN: PATH`. */
  async function bothSay(text: string): Promise<readonly string[]> {
    const file = join(folder, "n.yaml");
    writeFileSync(file, text);
    const said = { validate: "", render: "" };
    const io = {
      readStdin: async () => "",
      env: {},
      isTerminal: false,
      columns: 80,
      signal: AbortSignal.timeout(60_000),
    };
    await validateCommand([file], { ...io, out: (text) => void (said.validate += text), err: () => {} });
    await renderCommand([file], { ...io, out: () => {}, err: (text) => void (said.render += text) });
    const warnings = said.validate
      .split("\n")
      .filter((line) => !line.includes(": valid: "))
      .join("\n");
    expect(said.render).toBe(warnings);
    return [...warnings.matchAll(/:(\d+:\d+): warning: (\S+):/g)].map(([, at, path]) => `${at}: ${path}`);
  }

  test.each([
    [
      "a port of load balancing that nobody wrote",
      "role: single\nk0s: {patch: {spec: {network: {nodeLocalLoadBalancing: {enabled: true}}}}}\n",
      ["2:32: k0s.patch.spec.network.nodeLocalLoadBalancing"],
    ],
    [
      "the endpoint that load balancing does not go with",
      "role: single\ncluster: {endpoint: a.b}\nk0s: {patch: {spec: {network: {nodeLocalLoadBalancing: {enabled: true, envoyProxy: {apiServerBindPort: 7444}}}}}}\n",
      ["2:11: cluster.endpoint"],
    ],
    ["an endpoint that is no address", "role: single\ncluster: {endpoint: 0.0.0.0}\n", ["2:11: cluster.endpoint"]],
    ["the same in IPv6", 'role: single\ncluster: {endpoint: "::"}\n', ["2:11: cluster.endpoint"]],
    ["a patch before there is a role", "k0s: {patch: {spec: {apu: 1}}}\n", ["1:22: k0s.patch.spec.apu"]],
    [
      "an address that only the node knows",
      "role: controller\ncluster: {endpoint: 192.0.2.9}\nha: {enabled: true, virtualIP: 192.0.2.9/24, authPass: abc, unicastPeers: [192.0.2.3]}\n",
      [],
    ],
    [
      "the same where the patch writes the list itself",
      "role: single\nk0s: {patch: {spec: {network: {controlPlaneLoadBalancing: {enabled: true, type: Keepalived, keepalived: {vrrpInstances: [{virtualIPs: [192.0.2.9/24], authPass: a, unicastPeers: [192.0.2.3]}]}}}}}}\n",
      ["2:122: k0s.patch.spec.network.controlPlaneLoadBalancing.keepalived.vrrpInstances[0].unicastSourceIP"],
    ],
  ])("%s: only one of validate and render said it", async (_, text, said) => expect(await bothSay(text)).toEqual(said));

  test("what is wrong is said in words, not as a combination", () => {
    const [finding] = check("role: single\ncluster: {endpoint: 0.0.0.0}\n");
    expect(finding?.message).toBe('is "0.0.0.0", which is no address to be reached at: k0s will refuse it');
  });

  test("keys with dots are found", () => {
    const text = "role: single\nk0s:\n  patch:\n    spec:\n      'a.b': 1\n";
    expect(check(text)).toMatchObject([{ path: 'k0s.patch.spec["a.b"]', line: 5, column: 7 }]);
  });
});
