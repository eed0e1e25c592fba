/** What a finding says where it once misled: the place, the words, the cure. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { formatFinding } from "../kit/finding.ts";
import { parseDocument } from "./load.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const shown = (text: string | Uint8Array): string =>
  parseDocument(text, { nowMs: Date.UTC(2027, 0, 1) })
    .findings.map(formatFinding)
    .join("\n");

describe("YAML", () => {
  test.each([
    ["role: [single", "1:14"],
    ["node: {name: a\n", "2:1"],
    ["role: single\naddons: [{name: a},\n{name: b}]\n", "3:1"],
  ])("an open bracket in %j was called a wrong indentation of lines above", (text, at) => {
    expect(shown(text)).toStartWith(`${at}: error: a bracket is not closed, or a line in it is not indented\n`);
  });

  test("14,000 lines in a bracket that are not indented were called nested more than 100 deep", () => {
    const text = `role: single\naddons: [{name: a},\n${"{name: a},\n".repeat(14_000)}{name: b}]\n`;
    expect(shown(text)).toContain("a bracket is not closed, or a line in it is not indented");
    expect(shown(text)).not.toContain("deep");
  });

  test("a NUL byte was called UTF-16, at the first character", () => {
    expect(shown("role: single\nnode: {name: a\0b}\n")).toStartWith("2:15: error: a NUL byte stands in the text\n");
    expect(shown(Buffer.from("role: single\n", "utf16le"))).toContain("UTF-16");
  });

  test("half of a character, as a request's JSON can bring one, was recorded as another text", () => {
    expect(shown("role: single\nnode: {name: a\ud83d}\n")).toStartWith("2:15: error: half of a character stands here");
    expect(shown("\ude07")).toStartWith("1:1: error: half of a character stands here");
    expect(shown("node: {name: 😇}\n")).not.toContain("half");
    // Written as an escape it would be another text in every file made of it.
    expect(shown('role: single\naddons: [{name: a, chart: "b/\\ud83d"}]\n')).toContain(
      "addons[0].chart: half of a character",
    );
    expect(shown('role: single\naddons: [{name: a, chart: "b/\\ud83d\\ude07"}]\n')).not.toContain("half");
  });

  test("of a file that was not read to its end a number of bytes was told", () => {
    expect(shown("#".repeat(2 ** 20 + 1))).toStartWith("1:1: error: the document has more than 1 MiB\n");
  });
});

describe("unknown keys", () => {
  test("coriun: got a general hint", () => {
    expect(shown("coriun:\n  role: single\n")).toContain('did you mean "corium" instead of "coriun"?');
  });

  test("a field beside its empty block was taken for a slip of the block's name", () => {
    expect(shown("role: single\nnode:\nname: x\n")).toContain("indent it if it belongs to node: above, which has name");
    expect(shown("role: single\nnode: {}\nname: x\n")).toContain('did you mean "node"?');
    expect(shown("role: single\nwireguard:\nlistenPort: 1\n")).toContain("belongs to wireguard: above");
  });
});

describe("values", () => {
  test(".inf and .nan where a number is wanted: the cure was to write Infinity and NaN", () => {
    for (const value of [".inf", "-.inf", ".nan", "1e400"]) {
      const said = shown(`role: controller\nha: {virtualRouterID: ${value}}\n`);
      expect(said).toContain(`wanted a whole number, got the number ${value}`);
      expect(said).not.toMatch(/Infinity|NaN/);
    }
  });

  test("infinity in values and patches reached its reader as another text", () => {
    const text = `role: single
addons: [{name: a, chart: "oci://a/b", values: {a: .inf, b: [.nan], c: 1e400, d: 1e30}}]
k0s: {patch: {spec: {x: -.inf}}}
`;
    const found = parseDocument(text, { nowMs: 0 }).findings.map(({ code, path }) => `${code} ${path}`);
    expect(found.slice(0, 3)).toEqual(["a", "b[0]", "c"].map((at) => `value addons[0].values.${at}`));
    expect(found.at(-1)).toBe("value k0s.patch.spec.x");
  });

  test("half a k0s version: the version in the hint was one that this release does not list", () => {
    expect(shown("role: single\nkubernetes: {version: v1.36.4}\n")).not.toMatch(/k0s\.\d/);
  });

  test("the hint for a repository's name told other characters than those that pass", () => {
    const text = (name: string): string =>
      `role: single\naddons: [{name: a, chart: "oci://r/a", repository: {name: "${name}", url: "https://r.example"}}]\n`;
    expect(shown(text("r/s"))).toContain("letters, digits, dots, _ and -, starting with a letter or digit");
    expect(shown(text(`r.${"s".repeat(40)}`))).toBe("");
  });

  test("an IPv6 address with two :: was said to have a port", () => {
    expect(shown('role: single\ncluster: {endpoint: "2001:db8::1::2"}\n')).not.toContain("has a port");
    for (const text of ["a.example:6443", "192.0.2.1:6443", "[2001:db8::1]:6443"]) {
      expect(shown(`role: single\ncluster: {endpoint: "${text}"}\n`)).toContain("has a port");
    }
  });
});
