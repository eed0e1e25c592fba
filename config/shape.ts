/** zod's issues → problems in our words. */
import type * as z from "zod";
import type { Problem } from "./messages/codes.ts";
import { quote } from "./messages/codes.ts";
import { decodeSays } from "./messages/decode.ts";
import { kindHint, kindName } from "./messages/kinds.ts";
import { nearest } from "./names.ts";
import { formatPath, getAt, isSecretPath, type Path } from "./path.ts";
import { isShownKey } from "./shown-key.ts";
import { dropNulls, pick, shapeAt, shapeOf, type Shape } from "./schema/walk.ts";
import type { Place, PlacedProblem } from "./yaml.ts";

export interface Checked {
  readonly problems: readonly PlacedProblem[];
  /** Without nulls; may be wrong wherever a problem is. */
  readonly value: unknown;
}

export function checkShape(schema: z.ZodType, root: unknown, places: ReadonlyMap<string, Place>): Checked {
  const value = dropNulls(schema, root);
  const result = schema.safeParse(value);
  const context: Context = { schema, root, value, places };
  const problems = (result.error?.issues ?? []).flatMap((issue) => readIssue(context, issue, []));
  return { problems: [...problems, ...numberForms(context, schema, value, [])], value };
}

interface Context {
  readonly schema: z.ZodType;
  /** As it was given, nulls and all. */
  readonly root: unknown;
  readonly value: unknown;
  readonly places: ReadonlyMap<string, Place>;
}

function readIssue(context: Context, issue: z.core.$ZodIssue, base: Path): readonly PlacedProblem[] {
  const path: Path = [...base, ...issue.path.map((part) => (typeof part === "symbol" ? String(part) : part))];
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({ ...unknownKey(context, path, key), path: [...path, key] }));
  }
  const value = getAt(context.value, path);
  if (issue.code === "invalid_union") {
    const index = branchIndex(context, path, value);
    const branch = issue.errors[index];
    if (branch !== undefined) return branch.flatMap((inner) => readIssue(context, inner as z.core.$ZodIssue, path));
  }
  if (issue.code === "custom") {
    const found = issue.params?.["problem"] as Problem | undefined;
    return [{ ...(found ?? { code: "value", message: issue.message }), path }];
  }
  const name = path.at(-1);
  if (value === undefined && typeof name === "string") return [{ ...decodeSays.missing(name), path }];
  return [{ ...wrongKind(context, path, value), path }];
}

function branchIndex(context: Context, path: Path, value: unknown): number {
  // The parent's view, since `shapeAt` picks a branch already.
  const parent = shapeAt(context.schema, context.value, path.slice(0, -1));
  const name = path.at(-1);
  const schema =
    parent?.kind === "map" ? parent.fields[name as string] : parent?.kind === "list" ? parent.item : undefined;
  const shape = schema === undefined ? undefined : shapeOf(schema);
  if (shape?.kind !== "choice") return -1;
  const chosen = pick(shape, value);
  const wanted = chosen.kind;
  const matches = wanted === "text" ? typeof value === "string" : wanted !== "choice";
  return matches ? shape.options.findIndex((option) => shapeOf(option).kind === wanted) : -1;
}

function unknownKey(context: Context, path: Path, key: string): Problem {
  const shape = shapeAt(context.schema, context.value, path);
  const known = shape?.kind === "map" ? Object.keys(shape.fields) : [];
  const root = shapeOf(context.schema);
  const isRootKey = path.length > 0 && root.kind === "map" && Object.hasOwn(root.fields, key);
  const owner = isRootKey ? undefined : emptyOwner(context, path, key);
  const hint = isRootKey ? kindHint.topLevel(key) : owner === undefined ? undefined : kindHint.below(key, owner);
  return decodeSays.unknownKey(
    isShownKey(key, known) ? key : undefined,
    hint === undefined ? nearest(key, known) : undefined,
    known,
    hint,
  );
}

/** The empty key above it that would have it: `node:` with `name:` in its own column. */
function emptyOwner(context: Context, path: Path, key: string): string | undefined {
  const shape = shapeAt(context.schema, context.value, path);
  const map = getAt(context.root, path);
  if (shape?.kind !== "map" || typeof map !== "object" || map === null) return undefined;
  const given = map as Readonly<Record<string, unknown>>;
  // The schema's few fields are looked through, not the document's keys: there may be many.
  const owners = Object.entries(shape.fields).flatMap(([name, field]) => {
    if (!Object.hasOwn(given, name) || given[name] !== null) return [];
    const below = shapeOf(field);
    const fields = below.kind === "list" ? shapeOf(below.item) : below;
    return fields.kind === "map" && Object.hasOwn(fields.fields, key) ? [name] : [];
  });
  if (owners.length === 0) return undefined;
  const keys = Object.keys(given);
  return keys.slice(0, keys.indexOf(key)).findLast((name) => owners.includes(name));
}

function wrongKind(context: Context, path: Path, value: unknown): Problem {
  const shape = shapeAt(context.schema, context.value, path) ?? { kind: "anything" };
  const place = context.places.get(formatPath(path));
  const isSecret = isSecretPath(path) || isBesideSecret(path);
  const isContainer = shape.kind === "map" || shape.kind === "list" || shape.kind === "record";
  // Text where fields belong may be anything, also a secret.
  const got = describe(value, isSecret || isContainer, place);
  if (shape.kind === "enum") {
    const isRightType = typeof value === typeof shape.values[0];
    if (isRightType && typeof value === "string" && !isSecret) {
      return decodeSays.notOneOf(shape.values, quote(value), nearest(value, shape.values.map(String)));
    }
    if (isRightType) return decodeSays.notOneOf(shape.values, got, undefined);
    const isNumber = typeof shape.values[0] === "number";
    const wanted = isNumber ? kindName.oneOfNumbers(shape.values) : kindName.oneOfTexts(shape.values);
    const hint = isNumber ? numberHint(value, place) : textHint(undefined, value, place, isSecret);
    return decodeSays.wrongType(wanted, got, hint);
  }
  return decodeSays.wrongType(kindName[shape.kind], got, hintFor(shape, value, place, isSecret));
}

/** A key or a passphrase is easily written into the field that says where it comes from. */
const isBesideSecret = (path: Path): boolean => ["generateKey", "unlock"].includes(String(path.at(-1)));

function describe(value: unknown, isSecret: boolean, place: Place | undefined): string {
  if (value === null || value === undefined) return kindName.nothing;
  if (Array.isArray(value)) return kindName.list;
  if (typeof value === "object") return kindName.map;
  const source = typeof value === "string" ? value : (place?.source ?? JSON.stringify(value));
  if (isSecret || source.length > 40 || source.includes("\n")) return kindName.some(typeof value);
  return typeof value === "string" ? kindName.theText(value) : kindName.the(typeof value, source);
}

function hintFor(shape: Shape, value: unknown, place: Place | undefined, isSecret: boolean): string | undefined {
  switch (shape.kind) {
    case "boolean":
      return booleanHint(value, place);
    case "number":
      return numberHint(value, place);
    case "text":
      return textHint(shape.schema, value, place, isSecret);
    case "list":
      if (typeof value === "object" && value !== null) return kindHint.listEntries;
      return value === null ? undefined : kindHint.list;
    case "map":
    case "record":
      return Array.isArray(value) ? kindHint.noListEntries : kindHint.indent;
    case "choice":
    case "enum":
    case "anything":
      return undefined;
    default:
      return shape satisfies never;
  }
}

function booleanHint(value: unknown, place: Place | undefined): string | undefined {
  if (typeof value !== "string") return undefined;
  const text = value.toLowerCase();
  if (place?.isPlain === false) return text === "true" || text === "false" ? kindHint.unquote : undefined;
  if (["yes", "on", "y"].includes(text)) return kindHint.oldBoolean(true);
  if (["no", "off", "n"].includes(text)) return kindHint.oldBoolean(false);
  return undefined;
}

function numberHint(value: unknown, place: Place | undefined): string | undefined {
  if (typeof value !== "string") return undefined;
  if (/^[+-]?\d+$/.test(value) && place?.isPlain === false) return kindHint.unquote;
  const isOldNumber = /^[+-]?(?:0b[01_]+|[\d_]+(?:_[\d_]*)+|\d+(?::[0-5]?\d)+)$/.test(value);
  return isOldNumber ? kindHint.oldNumber : undefined;
}

/** Quotes alone are no cure for `minSize: 500`: what the field would say of the text comes with it. */
function textHint(
  schema: z.ZodString | undefined,
  value: unknown,
  place: Place | undefined,
  isSecret: boolean,
): string | undefined {
  if (typeof value !== "number" && typeof value !== "boolean") return undefined;
  if (isSecret) return kindHint.quote;
  const source = place?.source ?? String(value);
  const [issue] = schema?.safeParse(source).error?.issues ?? [];
  const found = issue?.code === "custom" ? (issue.params?.["problem"] as Problem | undefined) : undefined;
  return kindHint.quoteText(source, found?.hint);
}

/** `012` is 12 here and 10 to YAML 1.1: said wherever a number is wanted. */
function numberForms(context: Context, schema: z.core.$ZodType, value: unknown, path: Path): readonly PlacedProblem[] {
  const shape = pick(shapeOf(schema), value);
  if (shape.kind === "map" && typeof value === "object" && value !== null && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([key, item]) => {
      const next = Object.hasOwn(shape.fields, key) ? shape.fields[key] : undefined;
      return next === undefined ? [] : numberForms(context, next, item, [...path, key]);
    });
  }
  if (shape.kind === "list" && Array.isArray(value)) {
    return value.flatMap((item, index) => numberForms(context, shape.item, item, [...path, index]));
  }
  if (typeof value !== "number" || (shape.kind !== "number" && shape.kind !== "enum")) return [];
  const source = context.places.get(formatPath(path))?.source;
  if (source === undefined || source === String(value) || !Number.isFinite(value)) return [];
  return [{ ...decodeSays.numberForm(source, value), path }];
}
