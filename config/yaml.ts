/** Text → plain values with their places. Nothing of the schema but its root keys is known here. */
import { isAlias, isMap, isPair, isScalar, isSeq, LineCounter } from "yaml";
import type { Alias, Document as YamlDocument, Node, Pair, YAMLMap } from "yaml";
import { composeYaml, MAX_DEPTH } from "./compose.ts";
import type { Problem } from "./messages/codes.ts";
import { decodeSays } from "./messages/decode.ts";
import { kindName } from "./messages/kinds.ts";
import { isMisspelling, nearest } from "./names.ts";
import { formatPath, type Path } from "./path.ts";
import { fromEntries } from "./schema/walk.ts";

const MAX_BYTES = 1024 * 1024;
const MAX_ALIASED = 10_000;
/** YAML's own bound for a key on one line holds for `? key` as well: the path of everything below it repeats it. */
const MAX_KEY = 1024;

/** Character offsets into the text, after CRLF became LF. `source` is a scalar as written. */
export interface Place {
  readonly key?: number;
  readonly value: number;
  readonly source?: string;
  readonly isPlain?: boolean;
}

export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface PlacedProblem extends Problem {
  readonly path: Path;
  /** Where no value of the document stands for it. */
  readonly offset?: number;
}

export interface Decoded {
  readonly problems: readonly PlacedProblem[];
  /** The schema's root, absent when there is none to look into. */
  readonly root?: Readonly<Record<string, unknown>>;
  readonly places: ReadonlyMap<string, Place>;
  readonly positionOf: (offset: number) => Position;
}

/** Stops the decoding of a document that is refused as a whole. */
class Refusal extends Error {
  readonly problem: Problem;
  readonly offset: number | undefined;
  constructor(problem: Problem, offset?: number) {
    super(problem.message);
    this.problem = problem;
    this.offset = offset;
  }
}

export function decode(source: string | Uint8Array, rootKeys: readonly string[]): Decoded {
  const lines = new LineCounter();
  const positionOf = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const decoder = { problems: [] as PlacedProblem[], places: new Map<string, Place>(), lines };
  const empty = { places: decoder.places, positionOf };
  try {
    return { ...empty, ...decodeText(readText(source, lines), rootKeys, decoder, positionOf) };
  } catch (error) {
    const refusal = error instanceof RangeError ? new Refusal(decodeSays.tooDeep()) : error;
    if (!(refusal instanceof Refusal)) throw error;
    const offset = refusal.offset === undefined ? {} : { offset: refusal.offset };
    return { ...empty, problems: [...decoder.problems, { ...refusal.problem, path: [], ...offset }] };
  }
}

function readText(source: string | Uint8Array, lines: LineCounter): string {
  const size = typeof source === "string" ? Buffer.byteLength(source) : source.byteLength;
  if (size > MAX_BYTES) throw new Refusal(decodeSays.tooLarge());
  let text: string;
  try {
    text = typeof source === "string" ? source : new TextDecoder("utf-8", { fatal: true }).decode(source);
  } catch {
    throw new Refusal(decodeSays.notUtf8());
  }
  if (text.includes("\ufffd\ufffd")) throw new Refusal(decodeSays.notUtf8());
  const plain = text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  const nul = plain.indexOf("\0");
  // UTF-16 has one beside every letter.
  if (nul >= 0 && plain.split("\0", 1001).length > Math.min(1000, plain.length / 4))
    throw new Refusal(decodeSays.notUtf8());
  const half = plain.isWellFormed() ? -1 : plain.search(LONE_SURROGATE);
  if (nul < 0 && half < 0) return plain;
  lines.addNewLine(0);
  for (let at = plain.indexOf("\n"); at >= 0; at = plain.indexOf("\n", at + 1)) lines.addNewLine(at + 1);
  throw nul < 0 ? new Refusal(decodeSays.halfCharacter(), half) : new Refusal(decodeSays.nul(), nul);
}

/** Only a request's JSON can bring one; no file could keep it. */
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

interface Decoder {
  readonly problems: PlacedProblem[];
  readonly places: Map<string, Place>;
  readonly lines: LineCounter;
}

function decodeText(
  text: string,
  rootKeys: readonly string[],
  decoder: Decoder,
  positionOf: (offset: number) => Position,
): Pick<Decoded, "problems" | "root"> {
  const composed = composeYaml(text, decoder.lines);
  if (composed.kind !== "composed") {
    const isDeep = composed.kind === "too-deep";
    throw new Refusal(isDeep ? decodeSays.tooDeep() : decodeSays.syntax("OPEN_BRACKET"), composed.offset);
  }
  if (composed.directiveAt !== undefined) throw new Refusal(decodeSays.directive(), composed.directiveAt);
  const { documents } = composed;
  const seen = new Set<number>();
  for (const { code, pos, message } of documents.flatMap((document) => document.errors)) {
    const { line } = positionOf(pos[0]);
    if (seen.has(line) || seen.size >= 10) continue;
    seen.add(line);
    const hasTab = code === "TAB_AS_INDENT" || /^[ ]*\t/.test(text.split("\n", line)[line - 1] ?? "");
    // The library has one code for this and for the columns of a map; its words are looked at, never shown.
    const says = decodeSays.syntax(code === "BAD_INDENT" && message.startsWith("Flow ") ? "OPEN_BRACKET" : code);
    decoder.problems.push({ ...(hasTab ? decodeSays.tab() : says), path: [], offset: pos[0] });
  }
  if (seen.size > 0) return { problems: decoder.problems };
  const [document, ...others] = documents;
  const extra = others.find((other) => !isNothing(other.contents));
  if (extra !== undefined) {
    decoder.problems.push({ ...decodeSays.secondDocument(), path: [], offset: start(extra.contents) });
  }
  if (document === undefined || isNothing(document.contents)) throw new Refusal(decodeSays.emptyDocument());
  return decodeDocument(document as YamlDocument.Parsed, rootKeys, decoder, positionOf);
}

function decodeDocument(
  document: YamlDocument.Parsed,
  rootKeys: readonly string[],
  decoder: Decoder,
  positionOf: (offset: number) => Position,
): Pick<Decoded, "problems" | "root"> {
  const top = document.contents;
  if (!isMap(top)) throw new Refusal(decodeSays.notAMap(kindOf(top)), start(top));
  const aliases = resolveAliases(document);
  const keys = top.items.map((pair) => (isScalar(pair.key) ? pair.key.value : undefined)).filter(isText);
  const corium = top.items.filter((pair) => isScalar(pair.key) && pair.key.value === "corium");
  const context: Context = { ...decoder, aliases, positionOf, aliased: { count: 0 } };
  const [block, again] = corium;
  if (again !== undefined) {
    const line = positionOf(start(block?.key)).line;
    decoder.problems.push({ ...decodeSays.coriumTwice(line), path: [], offset: start(again.key) });
  }
  if (block === undefined) {
    if (!keys.some((key) => rootKeys.includes(key))) {
      const known = ["corium", ...rootKeys];
      const key = keys.find((candidate) => isMisspelling(candidate, known));
      throw new Refusal(
        decodeSays.noConfiguration(key, key === undefined ? undefined : nearest(key, known)),
        start(top),
      );
    }
    return { problems: decoder.problems, root: readMap(context, top, [], undefined, 0) };
  }
  reportForeignKeys(decoder, top);
  const value = follow(context, block.value as Node | null, start(block.key));
  if (!isMap(value)) throw new Refusal(decodeSays.coriumNotAMap(kindOf(value)), start(block.key));
  const offset = isAlias(block.value) ? start(block.value) : undefined;
  return { problems: decoder.problems, root: readMap(context, value, [], offset, 0) };
}

/** Keys beside `corium:` are cloud-init's, which this image does not have; `x-…` is for anchors and notes. */
function reportForeignKeys(decoder: Decoder, top: YAMLMap): void {
  const foreign = top.items
    .map(({ key }) => key)
    .filter(isScalar)
    .filter(({ value }) => isText(value) && value !== "corium" && !value.startsWith("x-"));
  const names = [...new Set(foreign.map(({ value }) => String(value)))];
  if (names.length > 0)
    decoder.problems.push({ ...decodeSays.foreignKeys(names), path: [], offset: start(foreign[0]) });
}

/** Each alias with its node, in one pass: `Alias.resolve` searches the whole document every time. */
function resolveAliases(document: YamlDocument.Parsed): ReadonlyMap<Alias, Node> {
  const anchors = new Map<string, Node>();
  const aliases = new Map<Alias, Node>();
  function walk(node: unknown): void {
    if (isAlias(node)) {
      const target = anchors.get(node.source);
      if (target !== undefined) aliases.set(node, target);
      return;
    }
    if ((isMap(node) || isSeq(node) || isScalar(node)) && node.anchor !== undefined) anchors.set(node.anchor, node);
    if (isMap(node) || isSeq(node)) for (const item of node.items) walk(item);
    if (!isPair(node)) return;
    walk(node.key);
    walk(node.value);
  }
  walk(document.contents);
  return aliases;
}

interface Context extends Decoder {
  readonly aliases: ReadonlyMap<Alias, Node>;
  readonly positionOf: (offset: number) => Position;
  readonly aliased: { count: number };
}

function follow(context: Context, node: Node | null, offset: number): Node | null {
  if (!isAlias(node)) return node;
  const target = context.aliases.get(node);
  if (target === undefined) throw new Refusal(decodeSays.aliasWithoutAnchor(), node.range?.[0] ?? offset);
  return target;
}

/** `aliasAt`: everything below an alias stands where the alias stands. */
function read(
  context: Context,
  given: Node | null,
  path: Path,
  key: number | undefined,
  aliasAt: number | undefined,
  depth: number,
): unknown {
  if (depth > MAX_DEPTH) throw new Refusal(decodeSays.tooDeep(), aliasAt ?? start(given));
  const node = follow(context, given, key ?? 0);
  const at = aliasAt ?? (isAlias(given) ? start(given) : undefined);
  if (at !== undefined && ++context.aliased.count > MAX_ALIASED) throw new Refusal(decodeSays.aliasBomb(), at);
  const value = at ?? (node === null ? (key ?? 0) : start(node));
  const isPlain = isScalar(node) && node.type === "PLAIN";
  const source = isScalar(node) && typeof node.source === "string" ? { source: node.source, isPlain } : {};
  context.places.set(formatPath(path), { value, ...(key === undefined ? {} : { key }), ...source });
  if (node === null) return null;
  if ((isScalar(node) || isMap(node) || isSeq(node)) && !isCoreTag(node.tag)) {
    context.problems.push({ ...decodeSays.tag(), path });
  }
  if (isScalar(node)) {
    if (isText(node.value) && !node.value.isWellFormed())
      context.problems.push({ ...decodeSays.halfCharacter("value"), path });
    return node.value;
  }
  if (isSeq(node)) return node.items.map((item, index) => readItem(context, item, [...path, index], at, depth));
  if (isMap(node)) return readMap(context, node, path, at, depth);
  return null;
}

function readItem(context: Context, item: unknown, path: Path, at: number | undefined, depth: number): unknown {
  // `[a: 1]` is a list of a map with one pair.
  const node = isPair(item) ? null : (item as Node | null);
  return read(context, node, path, undefined, at, depth + 1);
}

function readMap(
  context: Context,
  map: YAMLMap,
  path: Path,
  at: number | undefined,
  depth: number,
): Record<string, unknown> {
  const entries = new Map<string, unknown>();
  for (const pair of map.items as Pair<Node, Node | null>[]) {
    const keyNode = follow(context, pair.key, at ?? 0);
    const offset = at ?? start(pair.key);
    const key = isScalar(keyNode) ? keyNode.value : undefined;
    if (typeof key !== "string") {
      const written = isScalar(keyNode) ? (keyNode.source ?? "null") : "?";
      context.problems.push({ ...decodeSays.nonStringKey(), path: [...path, written], offset });
      continue;
    }
    if (key.length > MAX_KEY) {
      context.problems.push({ ...decodeSays.syntax("KEY_OVER_1024_CHARS"), path: [], offset });
      continue;
    }
    const here = [...path, key];
    if (entries.has(key)) {
      const first = context.places.get(formatPath(here))?.key ?? 0;
      const says = decodeSays.duplicateKey(context.positionOf(first).line);
      context.problems.push({ ...says, path: here, offset });
      continue;
    }
    entries.set(key, read(context, pair.value, here, offset, at, depth + 1));
  }
  return fromEntries([...entries]);
}

const CORE_TAGS = ["str", "int", "float", "bool", "null", "map", "seq"].map((name) => `tag:yaml.org,2002:${name}`);
const isCoreTag = (tag: string | undefined): boolean => tag === undefined || CORE_TAGS.includes(tag);

const isText = (value: unknown): value is string => typeof value === "string";
const isNothing = (node: unknown): boolean => node === null || (isScalar(node) && node.value === null);

function start(node: unknown): number {
  const range = (node as { readonly range?: readonly number[] | null } | null | undefined)?.range;
  return range?.[0] ?? 0;
}

function kindOf(node: unknown): string {
  if (isSeq(node)) return kindName.list;
  if (isMap(node)) return kindName.map;
  return isNothing(node) ? kindName.nothing : kindName.text;
}
