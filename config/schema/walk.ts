import * as z from "zod";
import type { Path } from "../path.ts";

/** A schema without its optional wrapper, told apart by what it holds. */
export type Shape =
  | { readonly kind: "map"; readonly fields: Readonly<Record<string, z.core.$ZodType>> }
  | { readonly kind: "list"; readonly item: z.core.$ZodType }
  | { readonly kind: "record"; readonly value: z.core.$ZodType; readonly isFree: boolean }
  | { readonly kind: "choice"; readonly options: readonly z.core.$ZodType[] }
  | { readonly kind: "text"; readonly schema: z.ZodString }
  | { readonly kind: "number" | "boolean" }
  | { readonly kind: "enum"; readonly values: readonly (string | number)[] }
  | { readonly kind: "anything" };

export function shapeOf(schema: z.core.$ZodType): Shape {
  if (schema instanceof z.ZodOptional) return shapeOf(schema.unwrap());
  if (schema instanceof z.ZodObject) return { kind: "map", fields: schema.shape };
  if (schema instanceof z.ZodArray) return { kind: "list", item: schema.element };
  if (schema instanceof z.ZodRecord) {
    return { kind: "record", value: schema.valueType, isFree: schema.valueType instanceof z.ZodUnknown };
  }
  if (schema instanceof z.ZodUnion) return { kind: "choice", options: schema.options };
  if (schema instanceof z.ZodString) return { kind: "text", schema };
  if (schema instanceof z.ZodNumber) return { kind: "number" };
  if (schema instanceof z.ZodBoolean) return { kind: "boolean" };
  if (schema instanceof z.ZodEnum) return { kind: "enum", values: schema.options };
  if (schema instanceof z.ZodLiteral)
    return { kind: "enum", values: [...schema.values].map((value) => value as number) };
  return { kind: "anything" };
}

/** The branch of a choice that a value of this kind was meant for. */
export function pick(shape: Shape, value: unknown): Shape {
  if (shape.kind !== "choice") return shape;
  const wanted = Array.isArray(value) ? "list" : typeof value === "object" && value !== null ? "map" : "text";
  return shape.options.map(shapeOf).find((option) => option.kind === wanted) ?? shape;
}

/** The schema at a path of a value, `undefined` where the schema has nothing. */
export function shapeAt(root: z.core.$ZodType, value: unknown, path: Path): Shape | undefined {
  let shape: Shape | undefined = shapeOf(root);
  let at = value;
  for (const part of path) {
    shape = pick(shape, at);
    const next: z.core.$ZodType | undefined = child(shape, part);
    if (next === undefined) return undefined;
    shape = shapeOf(next);
    at = typeof at === "object" && at !== null ? (at as Record<string | number, unknown>)[part] : undefined;
  }
  return pick(shape, at);
}

function child(shape: Shape, part: string | number): z.core.$ZodType | undefined {
  switch (shape.kind) {
    case "map":
      return Object.hasOwn(shape.fields, part) ? shape.fields[part] : undefined;
    case "list":
      return shape.item;
    case "record":
      return shape.value;
    case "choice":
    case "text":
    case "number":
    case "boolean":
    case "enum":
    case "anything":
      return undefined;
    default:
      return shape satisfies never;
  }
}

/** `null` means absent, but for keys the schema does not know, list items and free maps. */
export function dropNulls(schema: z.core.$ZodType, value: unknown): unknown {
  const shape = pick(shapeOf(schema), value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return shape.kind === "list" ? value.map((item) => dropNulls(shape.item, item)) : value;
  if (shape.kind === "record" && shape.isFree) return value;
  const kept: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    const next = shape.kind === "map" || shape.kind === "record" ? child(shape, key) : undefined;
    if (next === undefined) kept.push([key, item]);
    else if (item !== null) kept.push([key, dropNulls(next, item)]);
  }
  return fromEntries(kept);
}

/** `Object.fromEntries` that keeps `__proto__` a plain key. */
export function fromEntries(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [key, value] of entries) {
    Object.defineProperty(made, key, { value, enumerable: true, writable: true, configurable: true });
  }
  return made;
}

export interface SchemaField {
  /** `wireguard[].peers[].endpoint` */
  readonly pattern: string;
  readonly schema: z.core.$ZodType;
  readonly shape: Shape;
  readonly isRequired: boolean;
}

/** Every field of the schema, depth first, in its order. A choice that has a list or map is entered there. */
export function schemaFields(root: z.core.$ZodType, prefix = ""): readonly SchemaField[] {
  const shape = shapeOf(root);
  if (shape.kind === "list") return schemaFields(shape.item, `${prefix}[]`);
  if (shape.kind === "choice") {
    const map = shape.options.find((option) => shapeOf(option).kind === "map");
    return map === undefined ? [] : schemaFields(map, prefix);
  }
  if (shape.kind !== "map") return [];
  return Object.entries(shape.fields).flatMap(([name, schema]) => {
    const pattern = prefix === "" ? name : `${prefix}.${name}`;
    const isRequired = !(schema instanceof z.ZodOptional);
    return [{ pattern, schema, shape: shapeOf(schema), isRequired }, ...schemaFields(schema, pattern)];
  });
}
