import { describe, expect, test } from "bun:test";
import type { Finding } from "../kit/finding.ts";
import { parseDocument, type ParsedDocument } from "./load.ts";

const nowMs = Date.UTC(2027, 0, 1);
const parse = (text: string | Uint8Array): ParsedDocument => parseDocument(text, { file: "n.yaml", nowMs });
const errors = (text: string): readonly Finding[] =>
  parse(text).findings.filter(({ severity }) => severity === "error");
const warnings = (text: string): readonly Finding[] =>
  parse(text).findings.filter(({ severity }) => severity === "warning");
const only = (list: readonly Finding[]): Finding => {
  expect(list).toHaveLength(1);
  return list[0] as Finding;
};

describe("decoding", () => {
  test("B067: the same key twice is an error with both line numbers, never the last one wins", () => {
    const finding = only(errors("role: single\nnode: {name: a}\nnode: {name: b}\n"));
    expect(finding).toMatchObject({ code: "duplicate-key", path: "node", line: 3, column: 1 });
    expect(finding.message).toContain("line 2");
    expect(only(errors("corium:\n  role: single\ncorium:\n  role: worker\n"))).toMatchObject({ path: "", line: 3 });
  });

  test("B068: a merge key is refused, not kept as a key named <<", () => {
    const finding = only(errors("role: single\nnode: {<<: {name: a}}\n"));
    expect(finding).toMatchObject({ code: "unknown-key", path: "node.<<" });
    expect(finding.hint).toContain("1.1");
    expect(errors("x: &b {name: a}\ncorium:\n  role: single\n  node: {<<: *b, <<: *b}\n").length).toBe(2);
    const free = `role: single
addons: [{name: a, chart: "oci://r.example/a", values: {webhook: &base {port: 1}, admission: {<<: *base}}}]
k0s: {patch: {spec: {api: {<<: {port: 1}}}}}
`;
    expect(errors(free).map(({ path, code }) => `${code} ${path}`)).toEqual([
      "unknown-key addons[0].values.admission.<<",
      "unknown-key k0s.patch.spec.api.<<",
    ]);
  });

  test("B069: a blank line with a tab harms nobody, a tab as indentation is named as such with its line", () => {
    expect(errors("role: single\n\t\nnode: {name: a}\n")).toEqual([]);
    const finding = only(errors("role: single\nnode:\n\tname: a\n"));
    expect(finding).toMatchObject({ path: "", line: 3 });
    expect(finding.message).toContain("tab");
  });

  test("B070: CRLF and a byte order mark are read, UTF-16 is refused with a hint", () => {
    const { document } = parse("\ufeff#cloud-config\r\ncorium:\r\n  role: single\r\n  node:\r\n    name: a\r\n");
    expect(document?.node.name).toBe("a");
    const utf16 = new Uint8Array([0xff, 0xfe, ...Buffer.from("role: single\n", "utf16le")]);
    expect(only(parse(utf16).findings).hint).toContain("UTF-8");
    expect(only(parse(Buffer.from("role: single\n", "utf16le")).findings).hint).toContain("UTF-8");
  });

  test("B072: a cloud-config without our block says what it looked for", () => {
    const finding = only(errors("users: [{name: ops}]\n"));
    expect(finding).toMatchObject({ code: "no-configuration", path: "" });
    expect(finding.hint).toContain("corium:");
  });

  test("users, write_files and runcmd of a cloud-config are never carried out, and nobody said so", () => {
    const text = "#cloud-config\nx-note: 1\nusers: [{name: ops}]\ncorium: {role: single}\nruncmd: [reboot]\n";
    const finding = only(parse(text).findings);
    expect(finding).toMatchObject({ severity: "warning", code: "foreign-keys", path: "", line: 3, column: 1 });
    expect(finding.message).toContain("users, runcmd:");
    expect(finding.message).not.toContain("reboot");
    expect(parse(text).document?.role).toBe("single");
    expect(parse("x-role: &r single\ncorium: {role: *r}\n").findings).toEqual([]);
    const many = Array.from({ length: 11 }, (_, index) => `k${index}: 1\n`).join("");
    expect(only(parse(`${many}corium: {role: single}\n`).findings).message).toContain("k7 and 3 more");
  });

  test("over 1 MiB, directives, a second document", () => {
    expect(only(errors(`role: single # ${"x".repeat(1024 * 1024)}\n`)).message).toContain("1 MiB");
    expect(only(errors("%YAML 1.1\n---\nrole: single\n"))).toMatchObject({ path: "", line: 1 });
    expect(only(errors("role: single\n---\nrole: worker\n"))).toMatchObject({ path: "" });
    expect(errors("role: single\n---\n# nothing\n")).toEqual([]);
  });

  test("keys that are no text are refused, also deep in a patch", () => {
    expect(only(errors("role: single\nk0s: {patch: {spec: {1: a}}}\n"))).toMatchObject({ path: "k0s.patch.spec.1" });
    expect(only(errors("role: single\nnode: {labels: {true: a}}\n"))).toMatchObject({ path: "node.labels.true" });
  });

  test("unknown tags are refused, core tags are not", () => {
    expect(only(errors("role: single\nk0s: {patch: {a: !env HOME}}\n"))).toMatchObject({ path: "k0s.patch.a" });
    expect(errors("role: !!str single\n")).toEqual([]);
  });

  test("an anchor that holds itself, and a bomb of lists", () => {
    expect(only(errors("role: single\nk0s: {patch: {a: &a [*a]}}\n")).path).toBe("");
    expect(only(errors(`role: single\nk0s: {patch: {a: ${"[".repeat(300)}${"]".repeat(300)}}}\n`)).path).toBe("");
  });

  test("__proto__ and constructor are keys like any other", () => {
    expect(only(errors("role: single\n__proto__: {role: worker}\n"))).toMatchObject({ path: "__proto__" });
    expect(only(errors("role: single\nnode: {constructor: a}\n"))).toMatchObject({ path: "node.constructor" });
    const { document } = parse('role: single\nk0s: {patch: {"__proto__": {polluted: true}}}\n');
    expect(Object.keys(document?.k0s.patch ?? {})).toEqual(["__proto__"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("null is absent", () => {
  test("for known fields and blocks, not for list items and unknown keys", () => {
    expect(parse("role: single\nnode: {name: null}\nha:\n").document?.node.name).toBeUndefined();
    expect(only(errors("role: single\nnode: {nmae: null}\n"))).toMatchObject({
      code: "unknown-key",
      path: "node.nmae",
    });
    expect(only(errors("role: single\ncluster: {subjectAltNames: [a.example, null]}\n"))).toMatchObject({
      path: "cluster.subjectAltNames[1]",
    });
    expect(parse("role: single\nk0s: {patch: {a: null, b: [null]}}\n").document?.k0s.patch).toEqual({
      a: null,
      b: [null],
    });
  });

  test("B078: empty and null leaves that are needed are refused where they stand", () => {
    const text = "role: single\nraid: [{name: data, level: 1, devices: ['', null]}]\ndisks: [{name: a, device: }]\n";
    expect(errors(text).map(({ path, code }) => [path, code])).toEqual([
      ["raid[0].devices[0]", "value"],
      ["raid[0].devices[1]", "type"],
      ["disks[0].device", "missing"],
    ]);
  });
});

describe("kinds", () => {
  test("B065: 012 and 0o17 where a number is wanted are a warning with what was read", () => {
    const port = (number: string): string =>
      `role: single\nwireguard: [{name: wg0, address: 10.9.0.1/24, generateKey: true, listenPort: ${number}}]\n`;
    expect(only(warnings(port("012"))).message).toContain("12");
    expect(only(warnings(port("0o17"))).message).toContain("15");
    expect(warnings(port("12"))).toEqual([]);
  });

  test("B074: text that YAML 1.1 reads otherwise is said for labels, unless it is quoted", () => {
    const text = "role: single\nnode: {labels: {country: no, site: 'no', since: 2026-03-01, pool: edge}}\n";
    expect(warnings(text).map(({ path }) => path)).toEqual(["node.labels.country", "node.labels.since"]);
    expect(parse(text).document?.node.labels["country"]).toBe("no");
    const taints =
      "role: single\nnode: {taints: [{key: a, value: on, effect: NoRun}, {key: b, value: 'on', effect: NoExecute}]}\n";
    expect(warnings(taints).map(({ path }) => path)).toEqual(["node.taints[0].value"]);
  });

  test("B075: label values that are no text are refused offline with the path and the cure", () => {
    const found = errors("role: single\nnode: {labels: {gpu: true, rack: 12, zone: 1e3}}\n");
    expect(found.map(({ path, hint }) => `${path} ${hint}`)).toEqual([
      'node.labels.gpu quote it: "true"',
      'node.labels.rack quote it: "12"',
      'node.labels.zone quote it: "1e3"',
    ]);
  });

  test("B076: a block indented under its neighbour says where it belongs; a map for a list names both", () => {
    const nested = only(errors("role: controller\nnetwork:\n  cni: calico\n  ha:\n    enabled: true\n"));
    expect(nested.hint).toContain("top level");
    const map = only(errors("role: single\nwireguard: {name: wg0}\n"));
    expect(map.message).toBe("wanted a list, got a map");
    expect(only(errors("role: single\nraids: []\n")).hint).toContain('"raid"');
  });

  test("B114: a quoted boolean in chart values is passed through as it is, with a warning", () => {
    const text = `role: single
addons:
  - name: a
    chart: oci://r.example/a
    values: {webhook: {enabled: "false", on: false}, list: ["true"], podAnnotations: {scrape: "true"}}
`;
    expect(warnings(text).map(({ path }) => path)).toEqual([
      "addons[0].values.webhook.enabled",
      "addons[0].values.list[0]",
    ]);
    expect(parse(text).document?.addons[0]?.values).toEqual({
      webhook: { enabled: "false", on: false },
      list: ["true"],
      podAnnotations: { scrape: "true" },
    });
  });
});

describe("places", () => {
  test("each finding is where the value, the key, or the map without it stands", () => {
    const found = errors("role: controller\nha:\n  enabled: true\n  virtualIP: nowhere\nfoo: 1\n");
    expect(found.map(({ path, line, column, file }) => [path, line, column, file])).toEqual([
      ["cluster.endpoint", 1, 1, "n.yaml"],
      ["ha.authPass", 2, 1, "n.yaml"],
      ["ha.virtualIP", 4, 14, "n.yaml"],
      ["foo", 5, 1, "n.yaml"],
    ]);
  });

  test("what an alias brings stands where the alias stands", () => {
    const finding = only(errors("x: &n {name: Bad}\ncorium:\n  role: single\n  node: *n\n"));
    expect(finding).toMatchObject({ path: "node.name", line: 4, column: 9 });
  });
});

describe("secrets", () => {
  const secret = "hunter2hunter2";
  test.each([
    `role: controller\nha: {enabled: true, authPass: ${secret}}\n`,
    `role: worker\njoin: {token ${secret}}\n`,
    `role: worker\njoin: ${secret}\n`,
    `role: worker\njoin: [${secret}]\n`,
    `role: worker\njoin: {token: *${secret}}\n`,
    `role: worker\njoin: {token: !${secret} x}\n`,
    `role: worker\njoin: {token: {${secret}: 1}}\n`,
    `role: controller\nha:\n  interface: eno1\n    authPass: ${secret}\n`,
    `role: controller\nha:\n  interface: eno1\n    authPass ${secret}\n`,
    `role: controller\nha: {authPass: ${secret}, authPass: ${secret}}\n`,
    `role: worker\njoin: {tokenFrom: {url: "https://user:${secret}@h/"}}\n`,
    `role: single\napi: {operatorCA: ${secret}}\n`,
    `role: single\nwireguard: [{name: wg0, address: 10.9.0.1/24, privateKey: ${secret}, peers: ${secret}}]\n`,
  ])("%j shows nothing of it", (text) => {
    const { findings } = parse(text);
    expect(findings.length).toBeGreaterThan(0);
    expect(JSON.stringify(findings)).not.toContain(secret);
  });
});

describe("defaults", () => {
  test("three lines are a whole node", () => {
    expect(parse("role: single\n").document).toEqual({
      role: "single",
      cluster: { name: "corium", subjectAltNames: [] },
      network: { podCIDR: "10.244.0.0/16", serviceCIDR: "10.96.0.0/12", cni: "kuberouter" },
      storage: { type: "sqlite" },
      node: { labels: {}, taints: [] },
      addons: [],
      manifests: [],
      ha: { enabled: false, unicastPeers: [] },
      upgrades: { automatic: "none", schedule: "daily" },
      raid: [],
      luks: [],
      disks: [],
      zfs: [],
      wireguard: [],
      k0s: { patch: {} },
      kubernetes: {},
    });
  });

  test("zero means absent for ports and keepalives, ranges are masked, api: {} and join: {} are absent", () => {
    const { document } = parse(`role: controller
api: {}
join: {}
wireguard:
  - name: wg0
    address: 10.9.0.1/24
    generateKey: true
    listenPort: 0
    peers: [{publicKey: oaz/T6GntS+g8BFaovEUO64kxo89I2d5WO77wRV9RH4=, allowedIPs: [10.9.0.7/24], persistentKeepalive: 0}]
`);
    expect(document?.api).toBeUndefined();
    expect(document?.join).toBeUndefined();
    const [overlay] = document?.wireguard ?? [];
    expect(overlay).toMatchObject({ address: ["10.9.0.1/24"], generateKey: true, nodeAddress: false });
    expect(overlay).not.toHaveProperty("listenPort");
    expect(overlay?.peers[0]).toEqual({
      publicKey: "oaz/T6GntS+g8BFaovEUO64kxo89I2d5WO77wRV9RH4=",
      allowedIPs: ["10.9.0.0/24"],
    });
  });

  test("a version that this release does not list is a warning, where the list is known", () => {
    const text = "role: single\nkubernetes: {version: v1.36.3+k0s.2}\n";
    const parsed = parseDocument(text, { nowMs, k0sVersions: ["v1.36.3+k0s.1"] });
    expect(only(parsed.findings)).toMatchObject({ severity: "warning", path: "kubernetes.version" });
    expect(parse(text).findings).toEqual([]);
  });
});
