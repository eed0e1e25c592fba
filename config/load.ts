import type { Finding } from "../kit/finding.ts";
import { capFindings } from "./cap.ts";
import { applyDefaults } from "./defaults.ts";
import type { Document } from "./document.ts";
import { secretTexts, withoutKnown } from "./known-secrets.ts";
import { CODES } from "./messages/codes.ts";
import { formatPath, getAt, type Path } from "./path.ts";
import { RULES } from "./rules/all.ts";
import type { RuleContext } from "./rules/rule.ts";
import { documentSchema, type DocumentDraft, type DocumentInput } from "./schema/root.ts";
import { checkShape } from "./shape.ts";
import { shownPath } from "./shown-key.ts";
import { decode, type Decoded, type PlacedProblem, type Position } from "./yaml.ts";

export interface ParseOptions {
  /** Named in findings. */
  readonly file?: string;
  /** Wall clock, for the validity of certificates; or `ANY_TIME`. */
  readonly nowMs: number;
  /** The k0s versions that this release lists; without it that warning is not given. */
  readonly k0sVersions?: readonly string[];
}

export interface ParsedDocument {
  /** Errors and warnings in the order of the document, a hundred at most. Never a secret, not even in part. */
  readonly findings: readonly Finding[];
  /** How many more there are. */
  readonly omitted: number;
  /** Defaulted; present exactly when there is no error. */
  readonly document?: Document;
  /** The schema's root as plain data, before nulls are dropped; present when it could be read at all. */
  readonly raw?: unknown;
  /**
   * Where a path of the document stands: its key, or the entry of its list; the document's beginning for "", undefined for
   * what is not given.
   */
  readonly positionOf: (path: string) => Position | undefined;
}

/** For what runs already: it goes on running when a certificate in its document has ended, or the clock went back. */
export const ANY_TIME = Number.NaN;

const ROOT_KEYS = Object.keys(documentSchema.shape);

/** Reads a document in either shape. Touches neither network nor disk nor clock. */
export function parseDocument(text: string | Uint8Array, options: ParseOptions): ParsedDocument {
  const decoded = decode(text, ROOT_KEYS);
  const positionOf = (path: string): Position | undefined => {
    if (path === "") return decoded.positionOf(0);
    const found = decoded.places.get(path);
    return found === undefined ? undefined : decoded.positionOf(found.key ?? found.value);
  };
  if (decoded.root === undefined) {
    return { ...capFindings(place(decoded, decoded.problems, options.file)), positionOf };
  }
  const checked = checkShape(documentSchema, decoded.root, decoded.places);
  const problems = [...decoded.problems, ...checked.problems];
  const found = checkRules(decoded, problems, checked.value, options);
  const all = place(decoded, [...problems, ...found], options.file);
  const result = { ...capFindings(all), raw: decoded.root, positionOf };
  if (all.some(({ severity }) => severity === "error")) return result;
  return { ...result, document: applyDefaults(checked.value as DocumentInput) };
}

function checkRules(
  decoded: Decoded,
  problems: readonly PlacedProblem[],
  value: unknown,
  options: ParseOptions,
): readonly PlacedProblem[] {
  const errors = problems.filter(({ code }) => CODES[code].severity === "error").map(({ path }) => path);
  const found: PlacedProblem[] = [];
  const offsetOf = (path: Path): number => decoded.places.get(formatPath(path))?.value ?? -1;
  const context: RuleContext = {
    draft: prune(value, errors) as DocumentDraft,
    nowMs: options.nowMs,
    ...(options.k0sVersions === undefined ? {} : { k0sVersions: options.k0sVersions }),
    given: (path) => getAt(value, path) !== undefined,
    isSound: soundness(errors),
    later: (a, b) => (offsetOf(b) >= offsetOf(a) ? b : a),
    isPlain: (path) => decoded.places.get(formatPath(path))?.isPlain === true,
    report: (path, says) => found.push({ ...says, path }),
  };
  for (const rule of RULES) rule(context);
  return found;
}

/** Whether nothing is wrong at a path, above it or below it. The root does not count: it is asked for each field. */
function soundness(errors: readonly Path[]): (path: Path) => boolean {
  const key = (path: Path): string => JSON.stringify(path);
  const starts = (path: Path): readonly string[] => path.map((_, index) => key(path.slice(0, index + 1)));
  const wrong = new Set(errors.filter((path) => path.length > 0).map(key));
  const above = new Set(errors.flatMap(starts));
  return (path) => !above.has(key(path)) && !starts(path).some((start) => wrong.has(start));
}

/** Without the wrong parts, in a copy; list entries leave a hole, so that positions stay. */
function prune(value: unknown, errors: readonly Path[]): unknown {
  if (errors.length === 0) return value;
  const copy: unknown = structuredClone(value);
  for (const path of errors) {
    const parent = getAt(copy, path.slice(0, -1));
    const last = path.at(-1);
    if (typeof parent !== "object" || parent === null || last === undefined) continue;
    if (Array.isArray(parent)) parent[Number(last)] = undefined;
    else Reflect.deleteProperty(parent, last);
  }
  return copy;
}

/** Problems → findings with their position, each once, in the order of the document. */
function place(decoded: Decoded, problems: readonly PlacedProblem[], file: string | undefined): readonly Finding[] {
  const secrets = problems.length === 0 ? [] : secretTexts(decoded.root);
  const seen = new Set<string>();
  return (
    problems
      .map((found) => ({ found, offset: found.offset ?? offsetFor(decoded, found) }))
      .sort((a, b) => a.offset - b.offset)
      // By its whole path: of two keys that are not shown, both are findings.
      .filter(({ found }) => {
        const key = `${found.code}\n${formatPath(found.path)}\n${found.message}`;
        return !seen.has(key) && seen.add(key) !== undefined;
      })
      .map(({ found, offset }): Finding => {
        const { code } = found;
        const message = withoutKnown(found.message, secrets);
        const hint = found.hint === undefined ? undefined : withoutKnown(found.hint, secrets);
        const { severity } = CODES[code];
        const path = formatPath(shownPath(found.path));
        const at = { ...(file === undefined ? {} : { file }), ...decoded.positionOf(offset) };
        return { severity, code, path, message, ...(hint === undefined ? {} : { hint }), ...at };
      })
  );
}

/** Unknown keys are shown at the key; what is missing at the map that should have it. */
function offsetFor(decoded: Decoded, { path, code }: PlacedProblem): number {
  for (let length = path.length; length > 0; length--) {
    const found = decoded.places.get(formatPath(path.slice(0, length)));
    if (found === undefined) continue;
    return length < path.length || code === "unknown-key" ? (found.key ?? found.value) : found.value;
  }
  return 0;
}
