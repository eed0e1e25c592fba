import type { Problem } from "../messages/codes.ts";
import { ruleSays } from "../messages/rules.ts";
import type { Path } from "../path.ts";
import type { DocumentDraft } from "../schema/root.ts";

/** What a cross-field rule sees. It runs even when other fields are wrong, as far as its own inputs are sound. */
export interface RuleContext {
  /** What is left when everything wrong is taken away; positions in lists stay. */
  readonly draft: DocumentDraft;
  /** Wall clock of the caller, for certificates. */
  readonly nowMs: number;
  /** The k0s versions that this release lists, where the caller knows. */
  readonly k0sVersions?: readonly string[];
  /** Whether the document has something here, right or wrong. */
  given(path: Path): boolean;
  /** Whether nothing is wrong here, above or below. */
  isSound(path: Path): boolean;
  /** The one that stands later in the document; what is not given (a default) stands first. */
  later(a: Path, b: Path): Path;
  /** Whether it is text without quotes, which programs that read YAML 1.1 may take for something else. */
  isPlain(path: Path): boolean;
  report(path: Path, found: Problem): void;
}

export type Rule = (context: RuleContext) => void;

/** The entries of a list that are there, with their place. */
export function entries<T>(list: readonly (T | undefined)[] | undefined): readonly (readonly [number, T])[] {
  return (list ?? []).flatMap((item, index) => (item === undefined ? [] : [[index, item] as const]));
}

/** `conflict` at the second of two names. */
export function uniqueNames(
  context: RuleContext,
  path: Path,
  list: readonly ({ readonly name?: string | undefined } | undefined)[] | undefined,
  kind: string,
): void {
  const seen = new Set<string>();
  for (const [index, { name }] of entries(list)) {
    if (name === undefined) continue;
    if (seen.has(name)) context.report([...path, index, "name"], ruleSays.duplicateName(kind, name));
    seen.add(name);
  }
}

interface SourceDraft {
  readonly url?: string | undefined;
  readonly file?: string | undefined;
  readonly authFile?: string | undefined;
}

/** A secret source by itself: exactly one of url and file, authFile only with url. */
export function checkSource(context: RuleContext, path: Path, source: SourceDraft | undefined): void {
  if (source === undefined) return;
  const hasUrl = context.given([...path, "url"]);
  const hasFile = context.given([...path, "file"]);
  if (hasUrl && hasFile) {
    context.report(context.later([...path, "url"], [...path, "file"]), ruleSays.exclusive("url", "file"));
  } else if (!hasUrl && !hasFile) {
    context.report([...path, "url"], ruleSays.sourceMissing());
  }
  if (source.authFile !== undefined && !hasUrl) context.report([...path, "authFile"], ruleSays.authFileWithoutUrl());
}

/** Two fields of which one at most may be given: the later one is refused. */
export function checkExclusive(context: RuleContext, block: Path, first: string, second: string): boolean {
  const [a, b] = [
    [...block, first],
    [...block, second],
  ];
  if (!context.given(a) || !context.given(b)) return true;
  context.report(context.later(a, b), ruleSays.exclusive(first, second));
  return false;
}
