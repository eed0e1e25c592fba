import * as z from "zod";
import { nearest } from "./names.ts";
import { documentSchema } from "./schema/root.ts";
import { schemaFields, shapeOf, type SchemaField, type Shape } from "./schema/walk.ts";

export interface Explanation {
  /** `wireguard[].peers[].endpoint` */
  readonly pattern: string;
  readonly kind: string;
  readonly description: string;
  readonly isRequired: boolean;
  readonly default?: unknown;
  /** The fields directly below it, in the schema's order. */
  readonly fields: readonly { readonly name: string; readonly kind: string; readonly description: string }[];
}

/** All of them, as docs/reference has them. */
export function explainAll(): readonly Explanation[] {
  const fields = schemaFields(documentSchema);
  return fields.map((field) => explanation(field, fields));
}

/** `wireguard.peers.endpoint`, with or without brackets and what is in them. A wrong name gives the nearest ones. */
export function explain(field: string): Explanation | { readonly near: readonly string[] } {
  const plain = (pattern: string): string => pattern.replace(/\[[^\]]*\]/g, "");
  const all = explainAll();
  const found = all.find(({ pattern }) => plain(pattern) === plain(field));
  if (found !== undefined) return found;
  const ending = all.filter(({ pattern }) => plain(pattern).split(".").at(-1) === plain(field).split(".").at(-1));
  const near = nearest(
    plain(field),
    all.map(({ pattern }) => plain(pattern)),
  );
  return { near: ending.length > 0 ? ending.map(({ pattern }) => pattern) : near === undefined ? [] : [near] };
}

function explanation(field: SchemaField, all: readonly SchemaField[]): Explanation {
  const meta = metaOf(field.schema);
  const prefix = `${field.pattern}${field.shape.kind === "list" ? "[]" : ""}.`;
  const below = all.filter(({ pattern }) => pattern.startsWith(prefix) && !pattern.slice(prefix.length).includes("."));
  return {
    pattern: field.pattern,
    kind: kindOf(field.shape),
    description: meta.description ?? "",
    isRequired: field.isRequired,
    ...(meta.default === undefined ? {} : { default: meta.default }),
    fields: below.map(({ pattern, shape, schema }) => ({
      name: pattern.slice(prefix.length),
      kind: kindOf(shape),
      description: metaOf(schema).description ?? "",
    })),
  };
}

/** Of the field, or of what its optional wrapper holds. */
function metaOf(schema: z.core.$ZodType): { readonly description?: string | undefined; readonly default?: unknown } {
  const own = z.globalRegistry.get(schema);
  const inner = schema instanceof z.ZodOptional ? metaOf(schema.unwrap()) : {};
  return { ...inner, ...own };
}

function kindOf(shape: Shape): string {
  switch (shape.kind) {
    case "map":
      return "map";
    case "record":
      return shape.isFree ? "map of anything" : "map of text";
    case "list":
      return `list of ${kindOf(shapeOf(shape.item))}`;
    case "choice":
      return shape.options.map((option) => kindOf(shapeOf(option))).join(" or ");
    case "enum":
      return shape.values.join(", ");
    case "number":
      return "whole number";
    case "text":
    case "boolean":
    case "anything":
      return shape.kind;
    default:
      return shape satisfies never;
  }
}
