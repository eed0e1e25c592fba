/** Documents that were made to do harm, or that a slip made harmful. */
import { describe, expect, test } from "bun:test";
import { formatFinding } from "../kit/finding.ts";
import { parseDocument } from "./load.ts";

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
