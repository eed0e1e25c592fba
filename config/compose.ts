/** Text → YAML nodes, of a document as of the manifests in it: strict, 1.2, and bounded where the library is not. */
import { Composer, CST, isScalar, Lexer, type LineCounter, Parser, visit } from "yaml";
import type { Document as YamlDocument } from "yaml";

/** Values in values; nobody writes so many by hand, and recursion ends somewhere. */
export const MAX_DEPTH = 100;

export interface Composed {
  readonly kind: "composed";
  readonly documents: readonly YamlDocument.Parsed[];
  /** Offset of the first `%` line. */
  readonly directiveAt?: number;
}

/** `open-bracket`: a line in brackets stands too far left, after which everything is read as something else. */
export interface NotComposed {
  readonly kind: "too-deep" | "open-bracket";
  readonly offset: number;
}

/** Duplicate keys are left to the caller: the library compares each key with all the others of its map. */
export function composeYaml(text: string, lines: LineCounter): Composed | NotComposed {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  const tokens: CST.Token[] = [];
  const nesting: Nesting = { brackets: 0, marks: 0, isText: false };
  let openAt: number | undefined;
  for (const lexeme of new Lexer().lex(text)) {
    if (lexeme === CST.FLOW_END) openAt ??= parser.offset;
    if (countNesting(nesting, lexeme) > MAX_DEPTH) return { kind: "too-deep", offset: parser.offset };
    for (const token of parser.next(lexeme)) tokens.push(token);
  }
  for (const token of parser.end()) tokens.push(token);
  const directive = tokens.find(({ type }) => type === "directive");
  const options = { version: "1.2", schema: "core", strict: true, uniqueKeys: false, prettyErrors: false } as const;
  try {
    const documents = [...new Composer(options).compose(tokens, true, text.length)];
    return { kind: "composed", documents, ...(directive === undefined ? {} : { directiveAt: directive.offset }) };
  } catch (error) {
    // What goes deeper line by line is found by the stack alone.
    if (!(error instanceof RangeError)) throw error;
    if (openAt !== undefined) return { kind: "open-bracket", offset: openAt };
    return { kind: "too-deep", offset: 0 };
  }
}

interface Nesting {
  brackets: number;
  /** `- - -` and `? ? ?` on one line. */
  marks: number;
  /** The lexeme that follows is text of the document, even if it is a bracket. */
  isText: boolean;
}

function countNesting(nesting: Nesting, lexeme: string): number {
  const wasText = nesting.isText;
  nesting.isText = !wasText && lexeme === CST.SCALAR;
  if (wasText) return 0;
  if (lexeme === "[" || lexeme === "{") nesting.brackets++;
  else if (lexeme === "]" || lexeme === "}") nesting.brackets = Math.max(0, nesting.brackets - 1);
  else if (lexeme === CST.FLOW_END) nesting.brackets = 0;
  else if (lexeme === "-" || lexeme === "?") nesting.marks++;
  else if (lexeme === "\n" || lexeme === "\r\n") nesting.marks = 0;
  return nesting.brackets + nesting.marks;
}

/** The first key that its map has already, and whether anything is nested more than MAX_DEPTH deep. */
export function inspectNodes(document: YamlDocument.Parsed): {
  readonly duplicateAt?: number;
  readonly isTooDeep: boolean;
} {
  let duplicateAt: number | undefined;
  let isTooDeep = false;
  visit(document, {
    Collection: (_key, _collection, ancestors) => {
      // Ancestors are the document and, between two maps, their pair.
      isTooDeep = ancestors.filter((node) => !("key" in node)).length > MAX_DEPTH;
      return isTooDeep ? visit.BREAK : undefined;
    },
  });
  if (isTooDeep) return { isTooDeep };
  visit(document, {
    Map: (_, map) => {
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        const value = isScalar(key) ? key.value : key;
        if (seen.has(value)) duplicateAt = (isScalar(key) ? key.range?.[0] : undefined) ?? 0;
        if (duplicateAt !== undefined) return visit.BREAK;
        seen.add(value);
      }
      return undefined;
    },
  });
  return { isTooDeep, ...(duplicateAt === undefined ? {} : { duplicateAt }) };
}
