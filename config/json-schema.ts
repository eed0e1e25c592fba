import * as z from "zod";
import { documentSchema } from "./schema/root.ts";

/**
 * JSON Schema 2020-12 of the document in both shapes. It knows keys, kinds and ranges; what fields say together and
 * the syntax of names and addresses is only in `corium validate`.
 */
export function documentJsonSchema(): Readonly<Record<string, unknown>> {
  const { $schema, ...document } = z.toJSONSchema(documentSchema, {
    target: "draft-2020-12",
    io: "input",
    override: ({ jsonSchema, zodSchema }) => {
      describeRule(jsonSchema);
      if (zodSchema instanceof z.ZodObject) allowNulls(jsonSchema);
    },
  });
  return {
    $schema,
    title: "Corium document",
    description: "One document describes one node: standalone, or under the key corium of a cloud-config.",
    type: "object",
    if: { properties: { corium: true }, required: ["corium"] },
    // oxlint-disable-next-line unicorn/no-thenable -- the keyword of JSON Schema
    then: { properties: { corium: { $ref: "#/$defs/document" } } },
    else: { $ref: "#/$defs/document" },
    $defs: { document },
  };
}

/** JSON Schema has no keyword for the rule of a field, and editors show the description. */
function describeRule(schema: Record<string, unknown>): void {
  const { rule, description } = schema;
  if (typeof rule !== "string" || typeof description !== "string") return;
  schema["description"] = `${description} Rule: ${rule}.`;
  delete schema["rule"];
}

/** Of a field that may be absent `null` means just that. What is required stays so. */
function allowNulls(schema: Record<string, unknown>): void {
  const { properties = {}, required = [] } = schema as {
    readonly properties?: Readonly<Record<string, Record<string, unknown>>>;
    readonly required?: readonly string[];
  };
  for (const [name, field] of Object.entries(properties)) {
    if (!required.includes(name)) allowNull(field);
    // Labels are a map of text, whose entries may be absent too.
    const values = field["additionalProperties"] as Record<string, unknown> | undefined;
    if (field["propertyNames"] !== undefined && values?.["type"] === "string") allowNull(values);
  }
}

function allowNull(field: Record<string, unknown>): void {
  const { type, anyOf } = field;
  if (Array.isArray(field["enum"])) field["enum"] = [...(field["enum"] as unknown[]), null];
  if (typeof type === "string") field["type"] = [type, "null"];
  else if (Array.isArray(anyOf)) field["anyOf"] = [...(anyOf as unknown[]), { type: "null" }];
}
