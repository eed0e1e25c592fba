import * as z from "zod";
import { nearest } from "./names.ts";
import { SECRET_PATTERNS } from "./redact.ts";
import { documentSchema } from "./schema/root.ts";
import { schemaFields, shapeOf, type SchemaField, type Shape } from "./schema/walk.ts";

export interface Explanation {
  /** `wireguard[].peers[].endpoint` */
  readonly pattern: string;
  readonly kind: string;
  readonly description: string;
  readonly isRequired: boolean;
  readonly default?: unknown;
  /** What a value has to be beyond its kind. */
  readonly rule?: string;
  /** Values of the field, each by itself valid. */
  readonly examples: readonly unknown[];
  /** The release that had it first. */
  readonly since: string;
  readonly isSecret: boolean;
  /** The fields directly below it, in the schema's order. */
  readonly fields: readonly { readonly name: string; readonly isRequired: boolean; readonly description: string }[];
}

/** Of every field that does not say otherwise. */
const FIRST_RELEASE = "0.1";

/** All of them, as docs/reference has them. */
export function explainAll(): readonly Explanation[] {
  const fields = schemaFields(documentSchema);
  return fields.map((field) => explanation(field, fields));
}

/** `wireguard.peers.endpoint`, with or without brackets and what is in them. A wrong name gives the nearest ones. */
export function explain(field: string): Explanation | { readonly near: readonly string[] } {
  const plain = (pattern: string): string => pattern.replace(/\[[^\]]*\]/g, "");
  const wanted = plain(field.replace(/^corium\./, ""));
  const all = explainAll();
  const found = all.find(({ pattern }) => plain(pattern) === wanted);
  if (found !== undefined) return found;
  const last = (pattern: string): string => plain(pattern).split(".").at(-1) ?? "";
  const endingIn = (name: string | undefined): readonly string[] =>
    all.map(({ pattern }) => pattern).filter((pattern) => last(pattern) === name);
  const near = nearest(
    wanted,
    all.map(({ pattern }) => plain(pattern)),
  );
  const lists = [
    endingIn(last(wanted)),
    near === undefined ? [] : [near],
    endingIn(nearest(last(wanted), [...new Set(all.map(({ pattern }) => last(pattern)))])),
  ];
  return { near: lists.find((list) => list.length > 0) ?? [] };
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
    ...(meta.rule === undefined ? {} : { rule: meta.rule }),
    examples: meta.examples ?? [],
    since: meta.since ?? FIRST_RELEASE,
    isSecret: SECRET_PATTERNS.includes(field.pattern),
    fields: below.map(({ pattern, schema, isRequired }) => ({
      name: pattern.slice(prefix.length),
      isRequired,
      description: metaOf(schema).description ?? "",
    })),
  };
}

interface FieldMeta {
  readonly description?: string;
  readonly default?: unknown;
  readonly rule?: string;
  readonly examples?: readonly unknown[];
  readonly since?: string;
}

/** Of the field, or of what its optional wrapper holds. */
export function metaOf(schema: z.core.$ZodType): FieldMeta {
  const own = z.globalRegistry.get(schema);
  const inner = schema instanceof z.ZodOptional ? metaOf(schema.unwrap()) : {};
  return { ...inner, ...own } as FieldMeta;
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
