import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { realRandom } from "../host/random.ts";
import { Secret } from "../kit/secret.ts";
import { mintAuthority } from "../pki/driver.ts";
import { parseDocument } from "./load.ts";
import { redact, redactPlain } from "./redact.ts";
import { checkResolvedSecret, secretFields } from "./secrets.ts";
import { type JoinToken, readJoinToken } from "./token.ts";

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
  test("B088: one that was wrapped at 76 columns, or saved on Windows, is the same token", () => {
    const plain = token("kubelet-bootstrap");
    const wrapped = plain.replace(/.{76}/g, "$&\r\n");
    expect(wrapped).not.toBe(plain);
    expect(readJoinToken(`${wrapped}\r\n`)).toEqual(readJoinToken(plain) as JoinToken);
  });

  test("B088: without its secret or for another role it is refused offline; one of another server is a warning", async () => {
    const { certificate } = await mintAuthority({ commonName: "c", nowMs, random: realRandom });
    const authority = Buffer.from(certificate).toString("base64");
    const clusters = [{ cluster: { server: "https://[fd00::10]:6443", "certificate-authority-data": authority } }];
    const judge = (text: string, endpoint = "fd00:0::10"): readonly string[] => {
      const inline = `role: worker\ncluster: {endpoint: "${endpoint}"}\njoin: {token: ${text}}\n`;
      const { findings } = parseDocument(inline, { nowMs });
      expect(JSON.stringify(findings)).not.toMatch(/0123456789abcdef|H4sI/);
      return findings.map(({ severity, code, path }) => `${severity} ${code} ${path}`);
    };
    expect(judge(token("kubelet-bootstrap", { clusters }))).toEqual([]);
    expect(judge(token("kubelet-bootstrap", { clusters }), "k.example")).toEqual(["warning other-server join.token"]);
    expect(judge(token("controller-bootstrap", { clusters }))).toEqual(["error value join.token"]);
    const users = [{ name: "kubelet-bootstrap", user: { token: "" } }];
    expect(judge(token("kubelet-bootstrap", { clusters, users }))).toEqual(["error value join.token"]);
  });

  test("B088: what is wrong with it is said, of an inline one and of one from a source, and nothing of it", () => {
    const whole = token("kubelet-bootstrap");
    const clusters = [{ cluster: { "certificate-authority-data": "bm90IGEgY2VydA==" } }];
    const users = [{ name: "kubelet-bootstrap", user: { token: "" } }];
    for (const [text, why] of [
      [`"${whole}"`, "it is not base64"],
      [whole.slice(0, -9), "its end is missing"],
      [whole.slice(0, -1), "its end is missing"],
      [Buffer.from("hello world!").toString("base64"), "it does not hold a compressed kubeconfig"],
      [token("admin"), "the kubeconfig in it is for none of kubelet-bootstrap, controller-bootstrap"],
      [token("kubelet-bootstrap", { clusters }), "the kubeconfig in it names no server"],
      [token("kubelet-bootstrap", { users }), "the kubeconfig in it holds no secret of a token"],
      [whole, "it holds no cluster CA"],
    ] as const) {
      const { findings } = parseDocument(`role: worker\njoin: {token: '${text}'}\n`, { nowMs });
      expect(findings.map(({ message }) => message)).toEqual([`this is no k0s join token: ${why}`]);
      const secret = new Secret("join.tokenFrom", text);
      const resolved = checkResolvedSecret("join.tokenFrom", secret, { role: "worker", nowMs });
      expect(!resolved.ok && resolved.error.message).toBe(`join.tokenFrom is no k0s join token: ${why}`);
      expect(JSON.stringify([findings, resolved])).not.toMatch(/0123456789abcdef|H4sI/);
    }
  });

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
    ["a server that is no address", token("kubelet-bootstrap", { clusters: [{ cluster: { server: "https://[" } }] })],
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
    expect(judge("join.tokenFrom", token("kubelet-bootstrap", { users: [] }))).toBe("secret-form");
    expect(judge("luks[vault].passphraseFrom", " \n")).toBe("secret-empty");
  });
});

test("a token or a key that was pasted into another field is not shown; a device and a hash are", () => {
  const messageOf = (value: string): string =>
    parseDocument(`role: single\nnetwork: { cni: ${value} }\n`, { nowMs: 0 }).findings[0]?.message ?? "";
  const key = "cJ8k0Q2ZLrC3m6s1b5QvJ0t3dV9n7xYz4aBcDeFgHi0=";
  for (const secret of ["H4sIAAAAAAAAA3VT0W7iOBT9lzxPOzYhHYG0D9", key])
    expect(messageOf(secret)).toBe('wanted kuberouter, calico or custom, got "…"');
  for (const plain of ["/dev/disk/by-id/ata-Samsung_SSD_870_EVO_S62B", "9e107d9d372bb6826bd81d3542a419d69e107d9d"])
    expect(messageOf(plain)).toContain(plain);
});

test("B050: a VRRP password that keepalived would cut to eight characters is refused, inline and from a source", () => {
  const document = (pass: string): string =>
    `role: controller\ncluster: {endpoint: 192.0.2.9}\nha: {enabled: true, virtualIP: 192.0.2.9/24, authPass: ${pass}}\n`;
  const problems = (pass: string) => parseDocument(document(pass), { nowMs }).findings.map(({ path }) => path);
  expect(problems("secret12")).toEqual([]);
  expect(problems("secret123A")).toEqual(["ha.authPass"]);
  const secret = new Secret("ha.authPassFrom", "secret123A");
  expect(checkResolvedSecret("ha.authPassFrom", secret, { nowMs })).toMatchObject({ error: { code: "secret-form" } });
});
