/**
 * ../shared/cases/diff.jsonl, and what its cases look like through the API of a node that runs the baseline: a dry run
 * answers the plan, or a refusal that names only what it refuses.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ApplyAnswer, ErrorBody } from "../../api/contract.ts";

export interface DiffCase {
  readonly name: string;
  readonly baseline: string;
  readonly proposal: string;
  readonly result: "unchanged" | "reconcilable" | "guarded" | "refused";
  readonly fields: readonly { readonly path: string; readonly class: string }[];
  readonly removed: readonly string[];
  readonly restarts: readonly string[];
  readonly exit: number;
}

const FILE = join(import.meta.dir, "../../../shared/cases/diff.jsonl");

/** Undefined on a machine that has them not. */
export const readDiffCases = (): readonly DiffCase[] | undefined =>
  existsSync(FILE)
    ? readFileSync(FILE, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as DiffCase)
    : undefined;

export type Verdict = Pick<DiffCase, "result" | "removed" | "restarts"> & { readonly fields: readonly string[] };

/** A refusal names only what it refuses. */
const named = (result: DiffCase["result"], fields: DiffCase["fields"]): readonly string[] =>
  fields
    .filter((field) => result !== "refused" || field.class === "immutable" || field.class === "own-verb")
    .map((field) => `${field.path} ${field.class}`);

export const wantedOf = ({ result, fields, removed, restarts }: DiffCase): Verdict => ({
  result,
  fields: named(result, fields),
  removed,
  restarts,
});

/** Of the answer to `POST /v1/config?dryRun=true`. */
export function verdictOf({ status, body }: { readonly status: number; readonly body: unknown }): Verdict {
  if (status === 200) {
    const { status: word, fields, restarted } = body as ApplyAnswer;
    const isGuarded = fields.some((field) => field.class === "guarded");
    const result = word === "unchanged" ? "unchanged" : isGuarded ? "guarded" : "reconcilable";
    return { result, fields: named(result, fields), removed: [], restarts: restarted };
  }
  const { reason, refused, error } = body as ErrorBody;
  if (reason !== "immutable" && reason !== "patch-overrides") throw new Error(`${status}: ${error}`);
  return {
    result: "refused",
    fields: named("refused", refused?.fields ?? []),
    removed: (refused?.removed ?? []).map(({ name }) => name),
    restarts: [],
  };
}
