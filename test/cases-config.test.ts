/** Every case of ../shared/cases/config.jsonl; skipped where that folder is not beside the repository. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseDocument } from "../config/load.ts";
import { formatFinding } from "../kit/finding.ts";

interface Case {
  readonly name: string;
  readonly document: string;
  readonly valid: boolean;
  readonly problems: readonly { readonly code?: string; readonly path: string }[];
  readonly hint?: string;
  readonly absent?: string;
}

const FILE = join(import.meta.dir, "../../shared/cases/config.jsonl");
const NOW = Date.UTC(2030, 5, 1);
const cases: readonly Case[] = existsSync(FILE)
  ? readFileSync(FILE, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line) as Case)
  : []; // prettier-ignore

/** What is wrong with our answer; empty when it is right. */
function judge(given: Case): readonly string[] {
  const { findings, document } = parseDocument(given.document, { nowMs: NOW, file: "config.yaml" });
  const errors = findings.filter(({ severity }) => severity === "error");
  const wrong: string[] = [];
  const paths = [...new Set(errors.map(({ path }) => path))].sort();
  const wanted = given.problems.map(({ path }) => path);
  if (JSON.stringify(paths) !== JSON.stringify(wanted))
    wrong.push(`paths ${paths.join(" ")} instead of ${wanted.join(" ")}`);
  if ((document !== undefined) !== given.valid) wrong.push(`valid: ${document !== undefined}`);
  for (const { code, path } of given.problems) {
    if (code !== undefined && !errors.some((error) => error.path === path && error.code === code)) {
      wrong.push(`no ${code} at ${path}`);
    }
  }
  const texts = errors.map(({ message, hint }) => `${message} ${hint ?? ""}`.toLowerCase());
  if (given.hint !== undefined && !texts.some((text) => text.includes(given.hint?.toLowerCase() ?? ""))) {
    wrong.push(`hint "${given.hint}" is in none of: ${texts.join(" | ")}`);
  }
  const output = findings.map(formatFinding).join("\n") + JSON.stringify(findings);
  if (given.absent !== undefined && output.includes(given.absent)) wrong.push("a secret is in the output");
  if (errors.some(({ line, column }) => line === undefined || column === undefined)) wrong.push("no position");
  return wrong;
}

describe("cases/config.jsonl", () => {
  test.skipIf(cases.length === 0)("all cases [needs ../shared]", () => {
    const failed = cases.flatMap((given) => judge(given).map((what) => `${given.name}: ${what}`));
    const fields = new Set(failed.map((line) => line.split(":")[0]));
    process.stderr.write(`config.jsonl: ${cases.length - failed.length} of ${cases.length} pass`);
    process.stderr.write(fields.size === 0 ? "\n" : `; pending: ${[...fields].join(", ")}\n`);
    expect(failed).toEqual([]);
  });

  if (cases.length === 0) process.stderr.write("skipped: ../shared/cases/config.jsonl is not here\n");
});
