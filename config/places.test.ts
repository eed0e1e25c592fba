/** Where findings stand: path, line and column, however the document is written. */
import { describe, expect, test } from "bun:test";
import { parseDocument } from "./load.ts";

const places = (text: string): readonly string[] =>
  parseDocument(text, { file: "n.yaml", nowMs: 0 }).findings.map(
    ({ path, line, column }) => `${line}:${column} ${path}`,
  );

describe("a finding stands", () => {
  test("in lists of lists, at the entry", () => {
    const text = `role: single
raid:
  - name: a
    level: 1
    devices:
      - /dev/disk/by-id/a
      - serial: x
        size: 1
  - {name: b, level: 1, devices: [/dev/disk/by-id/c, {minSize: 5},
      /dev/sda1]}
wireguard:
- name: wg0
  address: [10.9.0.1/24,
    10.9.0.1]
  generateKey: true
`;
    expect(places(text)).toEqual([
      "8:9 raid[0].devices[1].size",
      "9:64 raid[1].devices[1].minSize",
      "10:7 raid[1].devices[2]",
      "14:5 wireguard[0].address[1]",
    ]);
  });

  test("at quoted keys, with the path that would find them", () => {
    const text = `'role': single
"node":
  'labels':
    "example.com/x": 1
    ? 'a.b'
    : 2
`;
    expect(places(text)).toEqual(['4:22 node.labels["example.com/x"]', '6:7 node.labels["a.b"]']);
  });

  test("in the same place with line ends of Windows and of old Macs, and with a byte order mark", () => {
    const text = "role: single\nnode:\n  taints:\n    - {key: a, effect: Nope}\n    - key: b\n";
    const wanted = ["4:24 node.taints[0].effect", "5:7 node.taints[1].effect"];
    expect(places(text)).toEqual(wanted);
    expect(places(text.replaceAll("\n", "\r\n"))).toEqual(wanted);
    expect(places(text.replaceAll("\n", "\r"))).toEqual(wanted);
    expect(places(`\ufeff${text}`)).toEqual(wanted);
    expect(parseDocument(Buffer.from(`\ufeff${text}`), { nowMs: 0 }).findings[0]).toMatchObject({
      line: 4,
      column: 24,
    });
  });

  test("behind letters of several bytes, counted as editors count: é is one column, 😀 two", () => {
    expect(places("role: single\nnode: {labels: {a: 'é', b: 3}}\n")).toEqual([
      "2:20 node.labels.a",
      "2:28 node.labels.b",
    ]);
    expect(places('role: single\nnode: {labels: {"a": "😀", b: 3}}\n')).toEqual([
      "2:22 node.labels.a",
      "2:31 node.labels.b",
    ]);
    expect(places("# 漢字\nrole: ½\n")).toEqual(["2:7 role"]);
  });

  test("behind tabs that are no indentation; a tab is one column", () => {
    expect(places("role:\tsingle\nnode:\t{name:\tA}\n")).toEqual(["2:14 node.name"]);
    expect(places("role: single\t# a\nnode:\n\tname: a\n")).toEqual(["3:1 "]);
  });

  test("in block and folded text, at its first line", () => {
    expect(places("role: single\napi:\n  operatorCA: |\n    nothing\n    at all\n")).toEqual(["3:15 api.operatorCA"]);
    expect(places("role: single\nnode:\n  name: >-\n    A\n    b\n")).toEqual(["3:9 node.name"]);
  });

  test("in a cloud-config as in a document by itself, with the path of the schema's root", () => {
    expect(places("#cloud-config\ncorium:\n  node: {nam: a}\n")).toEqual(["3:10 node.nam"]);
  });

  test("all at once, in the order of the document", () => {
    const text =
      "role: boss\ncluster: {name: A, nme: b}\nstorage: {type: ext4}\nupgrades: {automatic: always}\nfoo: 1\n";
    expect(places(text)).toEqual([
      "1:7 role",
      "2:17 cluster.name",
      "2:20 cluster.nme",
      "3:17 storage.type",
      "4:23 upgrades.automatic",
      "5:1 foo",
    ]);
  });
});
