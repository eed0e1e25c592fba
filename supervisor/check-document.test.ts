import { describe, expect, test } from "bun:test";
import { CLOUD_INIT_MERGED } from "../config/driver.ts";
import { k0sLock, listedK0sVersions } from "../iso/k0s-lock.ts";
import type { Finding } from "../kit/finding.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { checkDocument } from "./check-document.ts";
import { readDocument } from "./obtain-document.ts";

const nowMs = Date.UTC(2027, 0, 1);
const check = (text: string): readonly Finding[] => checkDocument(text, { file: "n.yaml", nowMs }).findings;

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

  test("keys with dots are found", () => {
    const text = "role: single\nk0s:\n  patch:\n    spec:\n      'a.b': 1\n";
    expect(check(text)).toMatchObject([{ path: 'k0s.patch.spec["a.b"]', line: 5, column: 7 }]);
  });
});
