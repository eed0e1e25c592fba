/** What `corium schema` prints, judged by a validator that is not ours. */
import { describe, expect, test } from "bun:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { explainAll } from "../config/explain.ts";
import { documentJsonSchema } from "../config/json-schema.ts";
import { documentSchema } from "../config/schema/root.ts";
import { growDocument } from "./fuzz/grammar.ts";
import { readExamples } from "./support/examples.ts";

const file = join(import.meta.dir, "../../shared/cases/config.jsonl");
const cases = (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []).map(
  (line) => JSON.parse(line) as { readonly name: string; readonly document: string; readonly valid: boolean },
);
const schema = documentJsonSchema();
/** Strict: a keyword that JSON Schema does not have, or one that does nothing where it stands, is an error. */
const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true });
const validate = ajv.compile(schema);
const errorsOf = (document: unknown): readonly string[] =>
  validate(document) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);

interface Node {
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
}

/** `wireguard[].peers[].endpoint` → its schema. */
function nodeAt(pattern: string): Node | undefined {
  let at: Node | undefined = (schema["$defs"] as { readonly document: Node }).document;
  for (const part of pattern.replaceAll("[]", ".[]").split(".")) {
    const choices: readonly (Node | undefined)[] = [at, ...(at?.anyOf ?? [])];
    at = choices.map((choice) => (part === "[]" ? choice?.items : choice?.properties?.[part])).find(Boolean);
  }
  return at;
}

describe("the JSON Schema", () => {
  test("is valid 2020-12", () => {
    expect(schema["$schema"]).toBe("https://json-schema.org/draft/2020-12/schema");
    expect(ajv.validateSchema(schema)).toBe(true);
  });

  test("describes every field, with examples that it accepts itself, and its default", () => {
    const wrong = explainAll().flatMap((field) => {
      const node = nodeAt(field.pattern);
      if (node === undefined) return [`${field.pattern}: not there`];
      const accepts = ajv.compile(node);
      const refused = (node.examples ?? []).filter((example) => !accepts(example));
      return [
        ...(node.description?.startsWith(field.description) === true ? [] : [`${field.pattern}: ${node.description}`]),
        ...(field.rule === undefined || node.description?.includes(field.rule) === true
          ? []
          : [`${field.pattern}: rule`]),
        ...((node.examples ?? []).length > 0 ? [] : [`${field.pattern}: no example`]),
        ...refused.map((example) => `${field.pattern}: ${JSON.stringify(example)}`),
        ...(JSON.stringify(node.default) === JSON.stringify(field.default) ? [] : [`${field.pattern}: default`]),
      ];
    });
    expect(wrong).toEqual([]);
  });

  test.each(readExamples().map(({ name, text }) => [name, text] as const))("accepts docs/examples/%s", (_, text) => {
    expect(errorsOf(parse(text))).toEqual([]);
  });

  test.each([
    ["a role that there is not", { role: "boss" }],
    ["an unknown key", { role: "single", raids: [] }],
    ["an unknown key below corium:", { corium: { role: "single", raids: [] } }],
    [
      "an unknown key of a list",
      { role: "single", disks: [{ name: "a", device: "/dev/disk/by-id/a", mount: "/srv/a" }] },
    ],
    ["a map for a list", { role: "single", wireguard: { name: "wg0" } }],
    ["a number for text", { role: "single", kubernetes: { version: 1.36 } }],
    ["text for a number", { role: "single", backup: { enabled: true, keep: "7" } }],
    ["text for a boolean", { role: "single", backup: { enabled: "yes" } }],
    ["a number out of its range", { role: "controller", ha: { virtualRouterID: 256 } }],
    ["a part of a number", { role: "single", backup: { keep: 1.5 } }],
    ["a level that there is not", { role: "single", raid: [{ name: "a", level: 4, devices: [] }] }],
    ["an entry without what it needs", { role: "single", raid: [{ name: "a", level: 1 }] }],
    ["a selector of an unknown field", { role: "single", install: { disk: { size: "500GB" } } }],
    ["corium: that is a list", { corium: [] }],
    ["a list", []],
  ])("refuses %s", (_, document) => expect(errorsOf(document)).not.toEqual([]));

  test.each([
    ["a name with capitals", { role: "single", cluster: { name: "Harbour" } }],
    ["a name that is too long", { role: "single", node: { name: "a".repeat(64) } }],
    ["a plain http address of a secret", { role: "worker", join: { tokenFrom: { url: "http://a.example" } } }],
    ["an address without its prefix", { role: "controller", ha: { virtualIP: "192.0.2.1" } }],
    ["a key that is none", { role: "single", wireguard: [{ name: "wg0", address: "10.9.0.1/24", privateKey: "a" }] }],
    [
      "a mount point over the system",
      { role: "single", disks: [{ name: "a", device: "/dev/sda", mountPoint: "/etc" }] },
    ],
    ["a device that is no path", { role: "single", install: { disk: "sda" } }],
    ["a size without its unit", { role: "single", install: { disk: { minSize: "500" } } }],
    ["half a version", { role: "single", kubernetes: { version: "v1.36.4" } }],
    ["a small MTU", { role: "single", wireguard: [{ name: "wg0", address: "10.9.0.1/24", mtu: 100 }] }],
    ["null for what is required", { role: "single", install: { disk: null } }],
    ["null in a list", { role: "single", cluster: { subjectAltNames: [null] } }],
  ])("refuses %s, which it accepted", (_, document) => expect(errorsOf(document)).not.toEqual([]));

  test("refused null, which means absent", () => {
    const nothing = Object.fromEntries(Object.keys(documentSchema.shape).map((name) => [name, null]));
    expect(errorsOf(nothing)).toEqual([]);
    const labels = { a: null, b: "c" };
    expect(errorsOf({ role: "single", cluster: { name: null }, node: { labels }, storage: { type: null } })).toEqual(
      [],
    );
  });

  test("refuses nothing that is valid: 1,000 documents out of the grammar", () => {
    let state = 11;
    const draw = (max: number): number => (state = (state * 48_271) % 2_147_483_647) % (max + 1);
    for (let count = 0; count < 1000; count++) {
      const { tree } = growDocument(draw);
      expect(errorsOf(JSON.parse(JSON.stringify(tree)))).toEqual([]);
    }
  }, 120_000);

  test.skipIf(cases.length === 0)("refuses none of the valid cases [needs ../shared]", () => {
    const refused = cases
      .filter(({ valid }) => valid)
      .flatMap(({ name, document }) => errorsOf(parse(document)).map((error) => `${name}: ${error}`));
    expect(refused).toEqual([]);
  });

  test("leaves what is beside corium: to cloud-init", () => {
    expect(errorsOf({ corium: { role: "single" }, users: [{ name: "ops" }], network: { version: 2 } })).toEqual([]);
  });
});
