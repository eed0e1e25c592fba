/** `corium diff`: what the gate of a node in service would say of a changed document. Offline, changes nothing. */
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import type { FieldChange } from "../api/contract.ts";
import { diffDocuments, type DocumentDiff } from "../apply/classify.ts";
import { canonicalJson } from "../apply/canonical.ts";
import type { Command } from "../kit/command.ts";
import { type Finding, formatFinding } from "../kit/finding.ts";
import { isHelp, loadDocument, toProblem } from "./offline.main.ts";

const USAGE = "usage: corium diff [--output json] [--own-patch] BASELINE PROPOSAL\n";

const EXIT: Readonly<Record<DocumentDiff["result"], number>> = {
  unchanged: 0,
  reconcilable: 5,
  guarded: 5,
  refused: 1,
};

export const diffCommand: Command = async (argv, io) => {
  if (isHelp(argv)) return (io.out(USAGE), 0);
  const options = readOptions(argv);
  if (options === undefined) {
    io.err(USAGE);
    return 2;
  }
  const [before, after] = [await loadDocument(options.baseline, io), await loadDocument(options.proposal, io)];
  for (const finding of [...before.findings, ...after.findings]) io.err(`${formatFinding(finding)}\n`);
  const [baseline, proposal] = [before.document, after.document];
  if (baseline === undefined || proposal === undefined) {
    const errors = [...before.findings, ...after.findings].filter(({ severity }) => severity === "error");
    if (options.isJson) io.out(invalidJson(errors));
    return EXIT.refused;
  }
  // There is no node whose key could be taken. Both documents together are what a reader of the output lacks.
  const fingerprintKey = createHash("sha256")
    .update(canonicalJson([baseline, proposal]))
    .digest("hex");
  const diff = diffDocuments(baseline, proposal, { fingerprintKey, ownPatch: options.ownPatch });
  io.out(options.isJson ? diffJson(diff) : diffText(diff));
  return EXIT[diff.result];
};

interface Options {
  readonly baseline: string;
  readonly proposal: string;
  readonly isJson: boolean;
  readonly ownPatch: boolean;
}

function readOptions(argv: readonly string[]): Options | undefined {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: { output: { type: "string", default: "text" }, "own-patch": { type: "boolean", default: false } },
    });
    const [baseline, proposal, ...others] = positionals;
    if (baseline === undefined || proposal === undefined || others.length > 0) return undefined;
    if (baseline === "-" && proposal === "-") return undefined;
    if (values.output !== "json" && values.output !== "text") return undefined;
    return { baseline, proposal, isJson: values.output === "json", ownPatch: values["own-patch"] };
  } catch {
    return undefined;
  }
}

/** A side that does not have the field is null. */
const shownField = ({ path, class: fieldClass, old, new: next }: FieldChange): object => ({
  path,
  class: fieldClass,
  old: old ?? null,
  new: next ?? null,
});

export function diffJson({ result, reason, fields, removed, restarts }: DocumentDiff): string {
  const shown = {
    result,
    ...(reason === undefined ? {} : { reason }),
    fields: fields.map(shownField),
    removed,
    restarts,
  };
  return `${JSON.stringify(shown, null, 2)}\n`;
}

/** A document that is not valid is compared with nothing; its problems say why, each with its file. */
function invalidJson(errors: readonly Finding[]): string {
  const problems = errors.map((finding) => ({ file: finding.file, ...toProblem(finding) }));
  const shown = { result: "refused", reason: "invalid", fields: [], removed: [], restarts: [], problems };
  return `${JSON.stringify(shown, null, 2)}\n`;
}

const shownValue = (value: unknown): string => (value === undefined ? "(not given)" : JSON.stringify(value));

export function diffText({ result, reason, fields, removed, overrides, restarts }: DocumentDiff): string {
  const lines: string[] = [result];
  for (const { path, class: fieldClass, old, new: next } of fields) {
    lines.push(`  ${fieldClass}: ${path}: ${shownValue(old)} -> ${shownValue(next)}`);
  }
  for (const { name, path, hint } of removed) lines.push(`  removed: ${name} (${path})`, `    hint: ${hint}`);
  if (reason !== undefined) {
    lines.push(
      `  k0s.patch overrides what Corium keeps fixed on a running node: ${overrides.join(", ")}`,
      "    hint: if this is what you mean, own it with --own-patch",
    );
  }
  for (const unit of restarts) lines.push(`  restarts: ${unit}`);
  return `${lines.join("\n")}\n`;
}
