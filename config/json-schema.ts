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
    override: ({ jsonSchema }) => describeRule(jsonSchema),
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
