/** Documents that were made to do harm, or that a slip made harmful. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { formatFinding } from "../kit/finding.ts";
import { gzipSync } from "node:zlib";
import { parseDocument } from "./load.ts";
import { readJoinToken } from "./token.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const findings = (text: string) => parseDocument(text, { file: "n.yaml", nowMs: Date.UTC(2027, 0, 1) }).findings;
const paths = (text: string): readonly string[] =>
  findings(text)
    .filter(({ severity }) => severity === "error")
    .map(({ path }) => path);

describe("what a finding shows", () => {
  const evil = "x\\u001bc\\u009b2J\\u007f\\u202e\\n0:0: error: forged";
  test.each([
    `role: single\n"${evil}": 1\n`,
    `role: single\ncluster: {name: "${evil}"}\n`,
    `role: single\nupgrades: {automatic: apply, schedule: "${evil}"}\n`,
    `role: single\nnode: {labels: {"${evil}": "${evil}"}}\n`,
    `role: single\napi: {enabled: "${evil}"}\n`,
  ])("a key or value cleared the terminal of the one who validated it: %j", (text) => {
    const shown = findings(text).map(formatFinding);
    expect(shown.length).toBeGreaterThan(0);
    for (const line of shown.flatMap((finding) => finding.split("\n"))) {
      // oxlint-disable-next-line no-control-regex -- none of these may be left
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
      expect(line).not.toStartWith("0:0");
    }
  });

  test.each([
    ["of one kind of letters", Buffer.alloc(32, 1).toString("base64")],
    ["of one letter", Buffer.alloc(32).toString("base64")],
    ["in hexadecimal", "0123456789abcdef".repeat(4)],
    ["with everything in it", "7hDUcKsaepawVY5NXmcH92omo1dQvB2Kj1v7LE4IcGc="],
  ])("a WireGuard key %s, pasted into the wrong field, was printed", (_, key) => {
    for (const field of ["name", "address", "listenPort", "mtu", "nodeAddress", "peers"]) {
      const fields = { name: "wg0", address: "10.9.0.1/24", generateKey: true, [field]: key };
      const shown = findings(JSON.stringify({ role: "single", wireguard: [fields] })).map(formatFinding);
      expect([field, shown.length > 0, shown.join().includes(key.slice(0, 12))]).toEqual([field, true, false]);
    }
    for (const field of ["publicKey", "endpoint", "allowedIPs", "persistentKeepalive"]) {
      for (const value of [key, [key]]) {
        const peer = { publicKey: Buffer.alloc(32, 9).toString("base64"), allowedIPs: ["10.9.0.2/32"], [field]: value };
        const overlay = { name: "wg0", address: "10.9.0.1/24", generateKey: true, peers: [peer] };
        const shown = findings(JSON.stringify({ role: "single", wireguard: [overlay] })).map(formatFinding);
        expect([field, shown.join().includes(key.slice(0, 12))]).toEqual([field, false]);
      }
    }
    const labels = findings(JSON.stringify({ role: "single", node: { labels: { [`a/${key}`]: "x", [key]: key } } }));
    expect(labels.length).toBeGreaterThan(0);
    expect(labels.map(formatFinding).join()).not.toContain(key.slice(0, 12));
  });

  test("the VRRP password, pasted into another field too, was printed", () => {
    const text = `role: controller\ncluster: {name: "hunter22\\nx", endpoint: 192.0.2.9}
ha: {enabled: true, virtualIP: 192.0.2.9/24, authPass: hunter22}\n`;
    const [finding] = parseDocument(text, { nowMs: 0 }).findings;
    expect(finding).toMatchObject({ path: "cluster.name", message: '"…" is not a lower-case name' });
    const [part] = parseDocument(text.replace("hunter22\\nx", "x unter2 y"), { nowMs: 0 }).findings;
    expect(part).toMatchObject({ path: "cluster.name", message: '"x … y" is not a lower-case name' });
  });

  test("a key written beside generateKey, a passphrase beside unlock were printed", () => {
    const key = "7hDUcKsaepawVY5NXmcH92omo1dQvB2Kj1v7LE4IcGc=";
    const text = `role: single
wireguard: [{name: wg0, address: 10.9.0.1/24, generateKey: "${key}"}]
luks: [{name: a, device: /dev/disk/by-id/a, mountPoint: /srv/a, unlock: correct-horse-battery}]
`;
    expect(paths(text)).toEqual(["wireguard[0].generateKey", "luks[0].unlock"]);
    const shown = findings(text).map(formatFinding).join("\n");
    expect(shown).not.toContain(key.slice(0, 8));
    expect(shown).not.toContain("horse");
  });
});

test("a whole number beyond 2^53 in values or a patch reached its chart as another number", () => {
  const text = `role: single
addons: [{name: a, chart: "oci://a/b", values: {ok: 9007199254740991, list: [{id: 9007199254740993}]}}]
k0s: {patch: {spec: {id: 18446744073709551615, quoted: "18446744073709551615", part: 0.1}}}
`;
  expect(paths(text)).toEqual(["addons[0].values.list[0].id", "k0s.patch.spec.id"]);
});

test("a mount point too long for its unit failed on the node, after its disk was wiped", () => {
  const disk = (mountPoint: string): string =>
    `role: single\ndisks: [{name: d, device: /dev/disk/by-id/a, mountPoint: ${mountPoint}}]\n`;
  expect(paths(disk(`/srv/${"a".repeat(244)}`))).toEqual([]);
  expect(paths(disk(`/srv/${"a".repeat(246)}`))).toEqual(["disks[0].mountPoint"]);
  expect(paths(disk(`/srv/${"a-".repeat(60)}`))).toEqual(["disks[0].mountPoint"]);
});

test.each(["lo", "all", "default"])("an overlay called %s can't come up on any node", (name) => {
  expect(paths(`role: single\nwireguard: [{name: ${name}, address: 10.9.0.1/24, generateKey: true}]\n`)).toEqual([
    "wireguard[0].name",
  ]);
});

describe("a secret that lost its place", () => {
  test("a password after a comma instead of a colon was shown as an unknown key", () => {
    const text = "role: controller\nha: {authPass, vrrpPw77, vrrpPw77, 12345678}\njoin: {correct-horse: yes}\n";
    const shown = findings(text).map(formatFinding).join("\n");
    for (const part of ["rpPw77", "234567", "horse"]) expect(shown).not.toContain(part);
    expect(paths(text).filter((path) => path.startsWith("ha.…"))).toHaveLength(3);
    expect(shown).toContain("known here: enabled, virtualIP");
  });

  test("a password as a key below its own field was shown as one given twice", () => {
    const text = "role: controller\nha: {authPass: {vrrpPw77: a, vrrpPw77: b}}\n";
    expect(findings(text).map(formatFinding).join("\n")).not.toContain("rpPw77");
  });

  test("words that are no field are named all the same", () => {
    const text = "role: single\nfrobnicate: 1\n__proto__: 1\nnetwork: {ha: {}, podCidr: 1}\nha: {foo: 1}\n";
    expect(paths(text)).toEqual(["frobnicate", "__proto__", "network.ha", "network.podCidr", "ha.foo"]);
  });
});

/** Each of these took minutes, or all the stack; a test that hangs is ended and fails. */
describe("documents that took for ever", () => {
  const many = (count: number, make: (index: number) => string): string => Array.from({ length: count }, (_, index) => make(index)).join(","); // prettier-ignore

  test("a value of a key and 100,000 blanks", () => {
    expect(paths(`role: single\ncluster: {name: "key${" ".repeat(100_000)}"}\n`)).toEqual(["cluster.name"]);
  });

  test("a key of half a mebibyte over many values", () => {
    const text = `role: single\nk0s:\n  patch:\n    ? ${"a".repeat(500_000)}\n    : [${"0,".repeat(20_000)}]\n`;
    expect(findings(text).map(({ message }) => message)).toEqual(["a key is longer than 1024 characters"]);
  });

  test("a manifest with 40,000 keys", () => {
    const content = `{apiVersion: v1, kind: ConfigMap, data: {${many(40_000, (index) => `k${index}: v`)}}}`;
    expect(paths(`role: single\nmanifests: [{name: a, files: [{name: a.yaml, content: "${content}"}]}]\n`)).toEqual([]);
  });

  test("a CA that begins 30,000 times and never ends", () => {
    const pem = "-----BEGIN CERTIFICATE-----".repeat(30_000);
    expect(paths(`role: single\napi: {enabled: true, operatorCA: "${pem}"}\n`)).toEqual(["api.operatorCA"]);
  });

  test("ten thousand devices that are all wrong", () => {
    const text = `role: single\nraid: [{name: a, level: 0, devices: [${many(10_000, () => "x")}]}]\n`;
    // A hundred, and one that says how many more.
    expect(paths(text)).toHaveLength(101);
    expect(parseDocument(text, { nowMs: 0 }).omitted).toBe(9_900);
  });

  test("a mebibyte of brackets, also in a manifest", () => {
    const deep = "[".repeat(500_000);
    expect(findings(`role: single\nk0s: {patch: {a: ${deep}`).map(({ message }) => message)).toEqual([
      "values are nested more than 100 deep",
    ]);
    const text = `role: single\nmanifests: [{name: a, files: [{name: a.yaml, content: '${deep}'}]}]\n`;
    expect(findings(text).map(({ path, message }) => [path, message])).toEqual([
      ["manifests[0].files[0].content", "values are nested more than 100 deep"],
    ]);
  });
});

test("a key given twice in a manifest is still refused, with its line", () => {
  const text = `role: single
manifests:
  - name: a
    files:
      - name: a.yaml
        content: |
          apiVersion: v1
          kind: A
          kind: B
`;
  expect(findings(text).map(({ message }) => message)).toEqual(["line 3 of it is not valid YAML"]);
});

test("a join token of a user called constructor had a function for its role", () => {
  const kubeconfig = {
    clusters: [{ cluster: { server: "https://192.0.2.10:6443" } }],
    users: [{ name: "constructor", user: { token: "abcdef.0123456789abcdef" } }],
  };
  expect(readJoinToken(gzipSync(JSON.stringify(kubeconfig)).toString("base64"))).toBeUndefined();
});

test("a line with a secret that a block above swallowed was shown with that block's value", () => {
  const text = `role: single
disks:
  - name: d
    device: /dev/disk/by-id/a
    mountPoint: |-
      /srv//a
      hunter2-correct-horse
`;
  expect(paths(text)).toEqual(["disks[0].mountPoint"]);
  expect(findings(text).map(formatFinding).join("\n")).not.toContain("horse");
});
