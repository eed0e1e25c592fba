/** Two documents, field by field along the shape: what changed, came or went, each as the smallest thing. */
import type { FieldClass } from "../api/contract.ts";
import { isSame } from "./canonical.ts";
import { documentShape } from "./shape.ts";

export interface Change {
  readonly path: string;
  readonly class: FieldClass;
  /** The last name of the path. */
  readonly name: string;
  readonly old?: unknown;
  readonly new?: unknown;
}

/** An entry of a removable list that is gone. */
export interface Gone {
  readonly list: "addons" | "manifests" | "files";
  readonly path: string;
  readonly name: string;
  readonly entry: unknown;
}

export interface FieldDiff {
  readonly changes: readonly Change[];
  readonly gone: readonly Gone[];
}

type Plain = Readonly<Record<string, unknown>>;
/** The shape as a walk sees it; apply/shape.ts has the types that hold it to the document. */
interface AnyList {
  readonly entry: FieldClass;
  readonly isRemovable?: true;
  readonly fields: AnyBlock;
}
interface AnyBlock {
  readonly [key: string]: FieldClass | AnyList | AnyBlock;
}

/** What an absent block means, where the parser keeps absence apart. */
const ABSENT: Readonly<Record<string, Plain>> = {
  backup: { enabled: false, schedule: "daily", path: "/var/lib/corium/backups", keep: 7 },
  "network.handover": { mode: "disabled" },
};

/** Absent, for each of these: an empty map or list, a switch that is off, what is nobody's choice. */
const isNothing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  (typeof value === "object" && Object.keys(value).length === 0);

const isList = (shape: AnyList | AnyBlock): shape is AnyList => typeof shape["entry"] === "string";

const asBlock = (value: unknown): Plain =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Plain) : {};

const namesOf = (entries: unknown): Map<string, Plain> =>
  new Map(
    (Array.isArray(entries) ? entries : []).map((entry: unknown) => [String(asBlock(entry)["name"]), asBlock(entry)]),
  );

export function diffFields(baseline: object, proposal: object): FieldDiff {
  const changes: Change[] = [];
  const gone: Gone[] = [];

  function leaf(path: string, name: string, fieldClass: FieldClass, old: unknown, next: unknown): void {
    // `api.enabled: false` is not the same as no api block.
    const isEqual = name === "enabled" && path.startsWith("api") ? isSame(old, next) : isSameOrNothing(old, next);
    if (isEqual) return;
    changes.push({
      path,
      class: fieldClass,
      name,
      ...(old === undefined ? {} : { old }),
      ...(next === undefined ? {} : { new: next }),
    });
  }

  function block(path: string, shape: AnyBlock, old: Plain, next: Plain): void {
    for (const [key, inner] of Object.entries(shape)) {
      const at = path === "" ? key : `${path}.${key}`;
      const [a, b] = [old[key], next[key]];
      if (typeof inner === "string") leaf(at, key, inner, a, b);
      else if (isList(inner)) list(at, key, inner, namesOf(a), namesOf(b));
      else block(at, inner, { ...ABSENT[at], ...asBlock(a) }, { ...ABSENT[at], ...asBlock(b) });
    }
  }

  function list(path: string, key: string, shape: AnyList, old: Map<string, Plain>, next: Map<string, Plain>): void {
    for (const [name, entry] of old) {
      const at = `${path}[${name}]`;
      const other = next.get(name);
      if (other !== undefined) block(at, shape.fields, entry, other);
      else if (shape.isRemovable === true) gone.push({ list: key as Gone["list"], path: at, name, entry });
      else changes.push({ path: at, class: shape.entry, name: key, old: entry });
    }
    for (const [name, entry] of next) {
      if (!old.has(name)) changes.push({ path: `${path}[${name}]`, class: shape.entry, name: key, new: entry });
    }
  }

  block("", documentShape as unknown as AnyBlock, baseline as Plain, proposal as Plain);
  return { changes: changes.toSorted((a, b) => (a.path < b.path ? -1 : 1)), gone };
}

const isSameOrNothing = (a: unknown, b: unknown): boolean => (isNothing(a) && isNothing(b)) || isSame(a, b);
