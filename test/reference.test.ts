import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import jsTokens from "js-tokens";
import * as z from "zod";
import { KNOWN_ARGUMENTS } from "../config/cmdline.ts";
import { CLOUD_INIT_MERGED } from "../config/driver.ts";
import { explainAll, metaOf } from "../config/explain.ts";
import { parseDocument } from "../config/load.ts";
import { CODES, type Code } from "../config/messages/codes.ts";
import { getAt, isSecretPath } from "../config/path.ts";
import { SECRET_PATTERNS } from "../config/redact.ts";
import { documentSchema } from "../config/schema/root.ts";
import { schemaFields } from "../config/schema/walk.ts";
import { nodePaths } from "../kit/paths.ts";
import { explainText } from "../supervisor/explain-text.ts";
import { classOf } from "../supervisor/field-class.ts";
import { outdatedPages } from "./reference.ts";
import { sampleProblems } from "./support/message-samples.ts";

const root = join(import.meta.dir, "..");
const fields = schemaFields(documentSchema);

/** Each block with as little as it takes, so that its defaults are filled in. */
const EVERY_BLOCK = `
role: controller
backup: {enabled: true}
api: {awaitConfig: false}
addons: [{name: a, chart: oci://r.example/a}]
disks: [{name: a, device: /dev/disk/by-id/a}]
raid: [{name: a, level: 1, devices: [/dev/disk/by-id/b, /dev/disk/by-id/c]}]
luks: [{name: a, device: /dev/disk/by-id/d}]
zfs: [{name: a, vdevs: [{devices: [/dev/disk/by-id/e]}]}]
wireguard: [{name: wg0, address: 10.9.0.1/24, generateKey: true}]
install: {disk: /dev/disk/by-id/f}
`;

describe("docs/reference", () => {
  test("is up to date (bun test/reference.ts)", async () => expect(await outdatedPages()).toEqual([]));
});

describe("docs/reference/sources.md", () => {
  const read = (page: string): string => readFileSync(join(root, "docs", page), "utf8");

  test("names each source where the code looks for it", () => {
    const page = read("reference/sources.md");
    const { config, bakedConfig } = nodePaths();
    expect([config, CLOUD_INIT_MERGED, bakedConfig].filter((path) => !page.includes(`\`${path}\``))).toEqual([]);
  });

  test("and docs/image.md explain each kernel argument that something reads, and no other", () => {
    const pages = read("reference/sources.md") + read("image.md");
    const told = new Set([...pages.matchAll(/`(corium\.[a-z0-9.-]+)(?==|`)/g)].map(([, name]) => name ?? ""));
    expect(KNOWN_ARGUMENTS.filter((name) => !told.has(name))).toEqual([]);
    expect(
      [...told].filter((name) => !KNOWN_ARGUMENTS.includes(name) && !/\.(?:config\.yaml|db|iso|part\.?)$/.test(name)),
    ).toEqual([]);
  });
});

describe("every field of the schema", () => {
  test("has a description, and an example that is valid there", () => {
    const wrong = fields.flatMap(({ pattern, schema }) => {
      const { description = "", examples = [] } = metaOf(schema);
      const refused = examples.filter((example) => !z.safeParse(schema, example).success);
      return [
        ...(/^[A-Zf].*\.$/.test(description) ? [] : [`${pattern}: ${description}`]),
        ...(examples.length > 0 ? [] : [`${pattern}: no example`]),
        ...refused.map((example) => `${pattern}: ${JSON.stringify(example)}`),
      ];
    });
    expect(wrong).toEqual([]);
    expect(fields.length).toBeGreaterThan(120);
  });

  test("that has a default says it, and it is what the parser fills in", () => {
    const given = parseDocument(EVERY_BLOCK, { nowMs: 0 });
    const least = parseDocument("role: controller\n", { nowMs: 0 });
    const wrong = explainAll().flatMap(({ pattern, default: told }) => {
      const isGiven = valueAt(given.raw, pattern) !== undefined;
      const filled = valueAt(isGiven ? least.document : given.document, pattern);
      // The role was given; the datastore depends on it. A block of no default is what its fields are.
      if (["role", "storage.type"].includes(pattern) || isBlock(pattern) || (isGiven && filled === undefined))
        return [];
      return JSON.stringify(filled) === JSON.stringify(told)
        ? []
        : [`${pattern}: ${JSON.stringify(told)}, but ${JSON.stringify(filled)}`];
    });
    expect(wrong).toEqual([]);
    expect(explainAll().filter((field) => field.default !== undefined).length).toBeGreaterThan(35);
  });

  test("the examples of all blocks together are one document", () => {
    const blocks = explainAll().filter(({ pattern }) => !/[.[]/.test(pattern));
    const example = (pattern: string): unknown => blocks.find((block) => block.pattern === pattern)?.examples[0];
    const whole = Object.fromEntries(blocks.map(({ pattern }) => [pattern, example(pattern)]));
    const { findings, document } = parseDocument(JSON.stringify({ ...whole, role: "controller" }), { nowMs: 0 });
    expect(findings.map(({ code }) => code)).toEqual(["not-yet"]);
    expect(Object.keys(document ?? {}).length).toBe(blocks.length);
  });

  test("is explained in at most 80 columns", () => {
    const texts = explainAll().map((field) => explainText(field, classOf(field.pattern)));
    expect(texts.flatMap((text) => text.split("\n")).filter((line) => Bun.stringWidth(line) > 80)).toEqual([]);
    expect(texts.filter((text) => !text.includes("  since ") || !text.includes("  example"))).toEqual([]);
  });

  test("B112: has a day-two class, so that no change is ever silently ignored", () => {
    const leaves = fields.filter(
      ({ pattern }) =>
        !fields.some((other) => other.pattern.startsWith(`${pattern}.`) || other.pattern.startsWith(`${pattern}[]`)),
    );
    expect(leaves.filter(({ pattern }) => classOf(pattern) === undefined).map(({ pattern }) => pattern)).toEqual([]);
    expect(classOf("cluster.nmae")).toBeUndefined();
  });

  test("that is a secret by its name is masked", () => {
    const texts = fields.filter(({ shape, pattern }) => shape.kind === "text" && isSecretPath(pattern.split(".")));
    const names = texts.map(({ pattern }) => pattern).filter((pattern) => pattern !== "api.operatorCA");
    expect(names.toSorted()).toEqual([...SECRET_PATTERNS].toSorted());
  });
});

describe("the catalogue of messages", () => {
  test("each code has a message, and each message a cure", () => {
    const given = new Set(sampleProblems.map(({ code }) => code));
    expect(Object.keys(CODES).filter((code) => !given.has(code as Code))).toEqual([]);
    expect(sampleProblems.filter(({ hint }) => hint === undefined).map(({ message }) => message)).toEqual([]);
  });

  test("is written as one: lower case, no full stop, short enough for a line", () => {
    const wrong = sampleProblems.filter(
      ({ message, hint = "" }) =>
        /^[A-Z][a-z]/.test(message) || message.endsWith(".") || /[a-z]\.$/.test(hint) || message.length > 110,
    );
    expect(wrong).toEqual([]);
  });

  test("is the only place that words them: no rule makes a text of its own", async () => {
    const made: string[] = [];
    const rules = readdirSync(join(root, "config/rules")).filter((file) => !file.endsWith(".test.ts"));
    for (const file of [...rules.map((name) => `rules/${name}`), "shape.ts", "yaml.ts", "load.ts", "calendar.ts"]) {
      const tokens = [...jsTokens(await Bun.file(join(root, "config", file)).text())];
      for (const { type, value } of tokens) {
        const isText = type === "StringLiteral" || type === "NoSubstitutionTemplate" || type.startsWith("Template");
        if (isText && /[a-z]{2} [a-z]{2}/.test(value)) made.push(`${file}: ${value}`);
      }
    }
    expect(made).toEqual([]);
  });
});

const isBlock = (pattern: string): boolean => fields.some((field) => field.pattern.startsWith(`${pattern}.`));

/** `raid[].spares` in a document: of the first entry. */
function valueAt(document: unknown, pattern: string): unknown {
  let at = document;
  for (const name of pattern.replaceAll("[]", ".0").split(".")) at = getAt(at, [name]);
  return at;
}
