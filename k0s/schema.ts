/**
 * k0s's ClusterConfig schema and the small validator that it needs.
 *
 * cluster-config.schema.json is derived from the CRD of k0s v1.36.3+k0s.2 (Apache-2.0, github.com/k0sproject/k0s,
 * static/_crds/k0s) with the checks of its Go code added. It is stricter than k0s on purpose:
 * `additionalProperties: false` everywhere, and `x-k0s-rejects-unknown` says what k0s does with an unknown key.
 */
import clusterConfigSchema from "./cluster-config.schema.json" with { type: "json" };
import { isMap } from "./merge.ts";

/** The keywords that the schema uses; a test fails when it gains another one. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
  readonly dependentRequired?: Readonly<Record<string, readonly string[]>>;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly not?: Schema;
  readonly if?: Schema;
  readonly then?: Schema;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly "x-k0s-rejects-unknown"?: boolean;
}

export type SchemaPath = readonly (string | number)[];

export interface Violation {
  readonly kind: "unknown-key" | "missing" | "invalid";
  readonly path: SchemaPath;
  readonly message: string;
  /** How it is put right, where the schema says more than what is wrong. */
  readonly hint?: string;
  /** For an unknown key: the keys that stand there. */
  readonly known?: readonly string[];
  /** For an unknown key: k0s itself refuses it; else it drops it silently. */
  readonly isRejected?: boolean;
}

const NO_ADDRESS = "take one of the two out: each is a way to reach the controllers";

const root = clusterConfigSchema as unknown as Schema;

export const clusterConfigViolations = (value: unknown): readonly Violation[] => validate(root, value, []);

const typeOf = (value: unknown): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
};

const hasType = (value: unknown, wanted: string): boolean => {
  const found = typeOf(value);
  return found === wanted || (wanted === "number" && found === "integer");
};

const isEqual = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

function resolve(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  return root.$defs?.[schema.$ref.replace("#/$defs/", "")] ?? {};
}

function validate(schema: Schema, value: unknown, path: SchemaPath): Violation[] {
  const found: Violation[] = [];
  const invalid = (message: string, hint?: string): void =>
    void found.push({ kind: "invalid", path, message, ...(hint === undefined ? {} : { hint }) });
  if (schema.$ref !== undefined) found.push(...validate(resolve(schema), value, path));
  if (schema.type !== undefined) {
    const wanted = typeof schema.type === "string" ? [schema.type] : schema.type;
    if (!wanted.some((type) => hasType(value, type))) {
      invalid(`wanted ${wanted.join(" or ")}, got ${typeOf(value)}`);
      return found;
    }
  }
  if (schema.const !== undefined && !isEqual(value, schema.const)) {
    // Only node-local load balancing asks for none: k0s's validation of the two together.
    if (schema.const === "") invalid("is an address that node-local load balancing does not go with", NO_ADDRESS);
    else invalid(`wanted ${JSON.stringify(schema.const)}`);
  }
  if (schema.enum !== undefined && !schema.enum.some((one) => isEqual(one, value))) {
    invalid(`wanted one of ${schema.enum.map((one) => JSON.stringify(one)).join(", ")}`);
  }
  if (typeof value === "string") found.push(...validateString(schema, value, path));
  if (typeof value === "number") {
    if (schema.minimum !== undefined && value < schema.minimum) invalid(`wanted at least ${schema.minimum}`);
    if (schema.maximum !== undefined && value > schema.maximum) invalid(`wanted at most ${schema.maximum}`);
  }
  if (Array.isArray(value)) found.push(...validateList(schema, value, path));
  else if (isMap(value)) found.push(...validateMap(schema, value, path));
  found.push(...validateCombined(schema, value, path));
  return found;
}

function validateString(schema: Schema, value: string, path: SchemaPath): Violation[] {
  const found: Violation[] = [];
  const invalid = (message: string): void => void found.push({ kind: "invalid", path, message });
  const length = [...value].length;
  if (schema.minLength !== undefined && length < schema.minLength)
    invalid(`wanted ${schema.minLength} characters or more`);
  if (schema.maxLength !== undefined && length > schema.maxLength)
    invalid(`wanted ${schema.maxLength} characters at most`);
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, "u").test(value))
    invalid("is not in the form k0s wants");
  return found;
}

function validateList(schema: Schema, value: readonly unknown[], path: SchemaPath): Violation[] {
  const found: Violation[] = [];
  const invalid = (message: string): void => void found.push({ kind: "invalid", path, message });
  if (schema.minItems !== undefined && value.length < schema.minItems)
    invalid(`wanted ${schema.minItems} entries or more`);
  if (schema.maxItems !== undefined && value.length > schema.maxItems)
    invalid(`wanted ${schema.maxItems} entries at most`);
  if (schema.uniqueItems === true && new Set(value.map((item) => JSON.stringify(item))).size < value.length) {
    invalid("an entry is there twice");
  }
  const { items } = schema;
  if (items !== undefined) found.push(...value.flatMap((item, index) => validate(items, item, [...path, index])));
  return found;
}

function validateMap(schema: Schema, value: Readonly<Record<string, unknown>>, path: SchemaPath): Violation[] {
  const found: Violation[] = [];
  const missing = (key: string): void => {
    if (!Object.hasOwn(value, key)) found.push({ kind: "missing", path: [...path, key], message: "is missing" });
  };
  for (const key of schema.required ?? []) missing(key);
  for (const [key, needed] of Object.entries(schema.dependentRequired ?? {})) {
    if (Object.hasOwn(value, key)) for (const other of needed) missing(other);
  }
  const known = schema.properties ?? {};
  for (const [key, item] of Object.entries(value)) {
    const at = [...path, key];
    const property = Object.hasOwn(known, key) ? known[key] : undefined;
    if (property !== undefined) found.push(...validate(property, item, at));
    else if (schema.additionalProperties === false) {
      found.push({
        kind: "unknown-key",
        path: at,
        message: `unknown key ${JSON.stringify(key)}`,
        known: Object.keys(known),
        isRejected: schema["x-k0s-rejects-unknown"] === true,
      });
    } else if (typeof schema.additionalProperties === "object") {
      found.push(...validate(schema.additionalProperties, item, at));
    }
  }
  return found;
}

function validateCombined(schema: Schema, value: unknown, path: SchemaPath): Violation[] {
  const found: Violation[] = [];
  const holds = (one: Schema): boolean => validate(one, value, path).length === 0;
  for (const one of schema.allOf ?? []) found.push(...validate(one, value, path));
  if (schema.anyOf !== undefined && !schema.anyOf.some(holds)) {
    found.push({ kind: "invalid", path, message: "is in none of the forms k0s knows" });
  }
  if (schema.not !== undefined && holds(schema.not)) {
    const refused = schema.not.enum?.some((one) => isEqual(one, value)) === true;
    const message = refused
      ? `is ${JSON.stringify(value)}, which is no address to be reached at`
      : "has keys that k0s sets itself";
    found.push({ kind: "invalid", path, message });
  }
  if (schema.if !== undefined && schema.then !== undefined && holds(schema.if)) {
    found.push(...validate(schema.then, value, path));
  }
  return found;
}
