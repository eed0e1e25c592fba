import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { Secret } from "../kit/secret.ts";
import { parseDocument } from "./load.ts";
import { redact, redactPlain } from "./redact.ts";
import { checkResolvedSecret, secretFields } from "./secrets.ts";
import { readJoinToken } from "./token.ts";

const nowMs = Date.UTC(2027, 0, 1);
const KEY = "7hDUcKsaepawVY5NXmcH92omo1dQvB2Kj1v7LE4IcGc=";
const text = `role: controller+worker
cluster: {endpoint: 192.0.2.100}
join: {tokenFrom: {file: /run/secrets/token}}
ha: {enabled: true, virtualIP: 192.0.2.100/24, authPass: vrrpPw77}
luks:
  - {name: vault, device: /dev/disk/by-id/a, unlock: passphrase, passphrase: correct-horse}
wireguard:
  - name: wg0
    address: 10.9.0.1/24
    privateKey: ${KEY}
    peers:
      - {publicKey: oaz/T6GntS+g8BFaovEUO64kxo89I2d5WO77wRV9RH4=, allowedIPs: [10.9.0.2/32], presharedKeyFrom: {url: "https://h/psk"}}
  - {name: wg1, address: 10.8.0.1/24, generateKey: true}
k0s: {patch: {spec: {token: in-the-patch}}}
addons: [{name: a, chart: "oci://r.example/a", values: {password: in-the-values}}]
manifests:
  - name: site
    files:
      - {name: s.yaml, content: '{apiVersion: v1, kind: Secret, stringData: {a: in-the-manifest}}'}
      - {name: n.yaml, content: '{apiVersion: v1, kind: Namespace, metadata: {name: n}}'}
`;
const { document, raw } = parseDocument(text, { nowMs });
if (document === undefined) throw new Error("the fixture is not valid");

describe("secretFields", () => {
  test("names every secret by its field, entries of named lists by name", () => {
    expect(secretFields(document).map(({ path, inline, source }) => [path, inline?.reveal() ?? source])).toEqual([
      ["join.tokenFrom", { file: "/run/secrets/token" }],
      ["ha.authPass", "vrrpPw77"],
      ["luks[vault].passphrase", "correct-horse"],
      ["wireguard[wg0].privateKey", KEY],
      ["wireguard[wg0].peers[0].presharedKeyFrom", { url: "https://h/psk" }],
    ]);
  });
});

describe("redact", () => {
  test("leaves placeholders with those very paths and changes nothing else", () => {
    const copy = JSON.stringify(redact(document));
    for (const { inline, path } of secretFields(document)) {
      if (inline === undefined) continue;
      expect(copy).not.toContain(inline.reveal());
      expect(copy).toContain(`<secret:${path}>`);
    }
    expect(redact(document)).toMatchObject({ cluster: document.cluster, k0s: document.k0s, addons: document.addons });
    expect(JSON.stringify(document)).toContain("vrrpPw77");
  });

  test("for readers also values, patches and manifests with a Secret, as whatever mark is asked for", () => {
    const copy = JSON.stringify(redactPlain(raw, { isForReaders: true, mark: (path) => `digest of ${path}` }));
    for (const leak of ["vrrpPw77", KEY, "in-the-patch", "in-the-values", "in-the-manifest"])
      expect(copy).not.toContain(leak);
    expect(copy).toContain("digest of manifests[site].files[s.yaml].content");
    expect(copy).toContain("Namespace");
  });

  test("takes whatever a wrong document holds", () => {
    expect(redactPlain({ join: { token: [1] }, wireguard: "x", ha: null })).toEqual({
      join: { token: "<secret:join.token>" },
      wireguard: "x",
      ha: null,
    });
  });
});

const token = (user: string, more: Record<string, unknown> = {}): string =>
  gzipSync(
    JSON.stringify({
      clusters: [{ cluster: { server: "https://192.0.2.10:6443", "certificate-authority-data": "bm90IGEgY2VydA==" } }],
      contexts: [{ name: "k0s", context: { user } }],
      "current-context": "k0s",
      users: [{ name: user, user: { token: "abcdef.0123456789abcdef" } }],
      ...more,
    }),
  ).toString("base64");

describe("join tokens", () => {
  test("are read for their role and server", () => {
    expect(readJoinToken(token("kubelet-bootstrap"))).toMatchObject({
      role: "worker",
      server: "https://192.0.2.10:6443",
    });
    expect(readJoinToken(`${token("controller-bootstrap")}\n`)?.role).toBe("controller");
  });

  test.each([
    ["no base64", "not a token!"],
    ["no gzip", Buffer.from("hello world!").toString("base64")],
    ["another user", token("admin")],
    ["no token in it", token("kubelet-bootstrap", { users: [] })],
    ["a gzip bomb", gzipSync("a".repeat(20_000_000)).toString("base64")],
  ])("%s is none", (_, given) => expect(readJoinToken(given)).toBeUndefined());
});

describe("checkResolvedSecret", () => {
  const judge = (path: string, value: string): string => {
    const result = checkResolvedSecret(path, new Secret(path, value), { role: "worker", nowMs });
    const shown = result.ok ? "ok" : JSON.stringify(result.error);
    expect(shown).not.toContain("s3cr3t");
    return result.ok ? "ok" : result.error.code;
  };

  test("a password of nine from a file is refused: keepalived would cut it off", () => {
    expect(judge("ha.authPassFrom", "s3cr3t-78")).toBe("secret-form");
    expect(judge("ha.authPassFrom", "s3cr3t78\n")).toBe("ok");
  });

  test("keys and tokens are judged as inline ones are", () => {
    expect(judge("wireguard[wg0].privateKeyFrom", KEY)).toBe("ok");
    expect(judge("wireguard[wg0].peers[0].presharedKeyFrom", "s3cr3t")).toBe("secret-form");
    expect(judge("join.tokenFrom", "s3cr3t")).toBe("secret-form");
    expect(judge("join.tokenFrom", token("controller-bootstrap"))).toBe("secret-role");
    expect(judge("luks[vault].passphraseFrom", " \n")).toBe("secret-empty");
  });
});
