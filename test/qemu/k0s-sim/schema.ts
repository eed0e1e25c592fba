/** ClusterConfig against its schema, with the leniency of k0s's own decoder where it is lenient. */
import document from "./clusterconfig.schema.json";

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly required?: readonly string[];
  readonly dependentRequired?: Readonly<Record<string, readonly string[]>>;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly not?: Schema;
  readonly if?: Schema;
  readonly then?: Schema;
  readonly "x-k0s-rejects-unknown"?: boolean;
}

const root = document as unknown as Schema & { readonly $defs: Readonly<Record<string, Schema>> };

export const clusterConfigSchema: Schema = root;

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function resolve(schema: Schema): Schema {
  const name = schema.$ref?.replace("#/$defs/", "");
  return name === undefined ? schema : { ...root.$defs[name], ...schema };
}

/**
 * Go's decoder: unknown keys fail where it is strict and vanish where it is not; keys match in any case; nothing is
 * converted between types. `null` leaves the default.
 */
export function decode(value: unknown, given: Schema, path: string, problems: string[]): unknown {
  const schema = resolve(given);
  if (value === null || value === undefined) return undefined;
  const type = typeOf(value);
  const wanted = schema.type === undefined ? undefined : [schema.type].flat();
  if (wanted !== undefined && !wanted.some((each) => each === type || (each === "number" && type === "integer"))) {
    const go = type === "integer" ? "number" : type === "boolean" ? "bool" : type;
    problems.push(`json: cannot unmarshal ${go} into Go struct field .${path} of type ${wanted.join("|")}`);
    return undefined;
  }
  if (Array.isArray(value)) {
    const items = schema.items;
    return items === undefined ? value : value.map((each, index) => decode(each, items, `${path}[${index}]`, problems));
  }
  if (!isRecord(value)) return value;
  const result: Record<string, unknown> = {};
  const names = Object.keys(schema.properties ?? {});
  for (const [key, each] of Object.entries(value)) {
    const name =
      names.find((known) => known === key) ?? names.find((known) => known.toLowerCase() === key.toLowerCase());
    const below = path === "" ? (name ?? key) : `${path}.${name ?? key}`;
    if (name !== undefined) result[name] = decode(each, schema.properties?.[name] ?? {}, below, problems);
    else if (isRecord(schema.additionalProperties))
      result[key] = decode(each, schema.additionalProperties, below, problems);
    else if (schema.additionalProperties !== false) result[key] = each;
    // k0s swallows these two on purpose: they are fields of old releases.
    else if (schema["x-k0s-rejects-unknown"] === true && key !== "interval" && key !== "podSecurityPolicy")
      problems.push(`error unmarshaling JSON: while decoding JSON: json: unknown field "${key}"`);
  }
  return result;
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

/** Only what the Go code checks too: exact case, apiVersion and kind, and calico.overlay are our schema's own. */
export function check(value: unknown, given: Schema, path: string): string[] {
  const schema = resolve(given);
  if (value === undefined) return [];
  const shown = JSON.stringify(value);
  const found: string[] = [];
  const add = (reason: string): void => {
    found.push(`${path}: Invalid value: ${shown}: ${reason}`);
  };
  if (schema.enum !== undefined && !path.endsWith("calico.overlay") && !schema.enum.includes(value))
    found.push(
      `${path}: Unsupported value: ${shown}: supported values: ${schema.enum.map((e) => `"${String(e)}"`).join(", ")}`,
    );
  if (schema.const !== undefined && schema.const !== value && path !== "apiVersion" && path !== "kind")
    add(`must be ${JSON.stringify(schema.const)}`);
  if (typeof value === "string") {
    if (schema.pattern !== undefined && !new RegExp(schema.pattern, "u").test(value)) add("invalid format");
    if (schema.minLength !== undefined && value.length < schema.minLength)
      add(`must have at least ${schema.minLength} characters`);
    if (schema.maxLength !== undefined && Buffer.byteLength(value) > schema.maxLength)
      add(`must not be longer than ${schema.maxLength} characters`);
    if (schema.format === "ipv4" && !/^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(value))
      add("must be an IPv4 address");
    if (schema.format === "ipv6" && !(value.includes(":") && URL.canParse(`http://[${value}]/`)))
      add("must be an IPv6 address");
  }
  if (typeof value === "number") {
    if (schema.minimum !== undefined && value < schema.minimum) add(`must be at least ${schema.minimum}`);
    if (schema.maximum !== undefined && value > schema.maximum) add(`must be at most ${schema.maximum}`);
  }
  if (Array.isArray(value)) {
    if (schema.minItems !== undefined && value.length < schema.minItems)
      add(`must have at least ${schema.minItems} items`);
    if (schema.maxItems !== undefined && value.length > schema.maxItems)
      add(`must have at most ${schema.maxItems} items`);
    if (schema.uniqueItems === true && new Set(value.map((each) => JSON.stringify(each))).size < value.length)
      add("duplicate");
    value.forEach((each, index) => {
      if (schema.items !== undefined) found.push(...check(each, schema.items, `${path}[${index}]`));
    });
  }
  if (isRecord(value)) {
    for (const name of schema.required ?? [])
      if (value[name] === undefined && path !== "") found.push(`${path}.${name}: Required value`);
    for (const [name, needs] of Object.entries(schema.dependentRequired ?? {}))
      for (const need of needs)
        if (value[name] !== undefined && value[need] === undefined) found.push(`${path}.${need}: Required value`);
    for (const [name, each] of Object.entries(value)) {
      const below = path === "" ? name : `${path}.${name}`;
      const property = schema.properties?.[name];
      if (property !== undefined) found.push(...check(each, property, below));
      else if (isRecord(schema.additionalProperties)) found.push(...check(each, schema.additionalProperties, below));
    }
  }
  const fits = (part: Schema): boolean =>
    hasType(value, part) && check(value, part, path === "" ? "." : path).length === 0;
  for (const part of schema.allOf ?? []) found.push(...check(value, part, path));
  if (schema.anyOf !== undefined && !schema.anyOf.some(fits)) add("does not match any allowed form");
  if (schema.not !== undefined && fits(schema.not)) add("not allowed");
  if (schema.if !== undefined && schema.then !== undefined && fits(schema.if))
    found.push(...check(value, schema.then, path));
  return found;
}

const hasType = (value: unknown, schema: Schema): boolean => {
  const type = resolve(schema).type;
  return (
    type === undefined ||
    [type].flat().some((each) => each === typeOf(value) || (each === "number" && typeOf(value) === "integer"))
  );
};
