import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { parseDocument } from "../config/load.ts";
import { documentSchema } from "../config/schema/root.ts";
import { schemaFields } from "../config/schema/walk.ts";
import { SECRET_PATTERNS } from "../config/redact.ts";
import { isSecretPath } from "../config/path.ts";
import { classOf } from "../supervisor/field-class.ts";
import { outdatedPages } from "./reference.ts";

const examples = join(import.meta.dir, "../docs/examples");
const fields = schemaFields(documentSchema);

describe("docs/reference", () => {
  test("is up to date (bun test/reference.ts)", async () => expect(await outdatedPages()).toEqual([]));
});

describe("every field of the schema", () => {
  test("has a description", () => {
    const mute = fields.filter(({ schema }) => descriptionOf(schema) === "");
    expect(mute.map(({ pattern }) => pattern)).toEqual([]);
    expect(fields.length).toBeGreaterThan(120);
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

describe("docs/examples", () => {
  const names = readdirSync(examples).filter((name) => name.endsWith(".yaml"));
  test("there are some, from three lines to a node with everything", () =>
    expect(names.length).toBeGreaterThanOrEqual(5));

  test.each(names)("%s is valid without a warning, and says so to an editor", (name) => {
    const { findings, document, raw } = parseDocument(readFileSync(join(examples, name)), {
      file: name,
      nowMs: Date.UTC(2027, 0, 1),
    });
    expect(findings).toEqual([]);
    expect(document).toBeDefined();
    expect(z.fromJSONSchema(z.toJSONSchema(documentSchema, { io: "input" })).safeParse(raw).success).toBe(true);
  });
});

function descriptionOf(schema: z.core.$ZodType): string {
  const own = z.globalRegistry.get(schema)?.description;
  return own ?? (schema instanceof z.ZodOptional ? descriptionOf(schema.unwrap()) : "");
}
