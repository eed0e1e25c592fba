/** `corium diff`: what the gate of a node in service would say of a changed document. Offline, changes nothing. */
import type { FieldChange } from "../api/contract.ts";
import { diffDocuments, type DocumentDiff } from "../apply/classify.ts";
import { canonicalJson } from "../apply/canonical.ts";
import type { Command } from "../kit/command.ts";
import { type Finding, formatFinding } from "../kit/finding.ts";
import { loadDocument, toProblem } from "./offline.main.ts";
import { type OfflineSpec, readArguments, showData } from "./offline-arguments.ts";
import { sha256Of } from "../kit/sha256.ts";

const DIFF: OfflineSpec = {
  name: "diff",
  operands: "BASELINE PROPOSAL",
  summary:
    "Says what a node in service would make of a changed document. 0: unchanged; 5: it would take it; 1: refused.",
  options: [{ name: "own-patch", help: "own what k0s.patch overrides of what Corium keeps fixed" }],
  count: [2, 2],
};

const EXIT: Readonly<Record<DocumentDiff["result"], number>> = {
  unchanged: 0,
  reconcilable: 5,
  guarded: 5,
  refused: 1,
};

export const diffCommand: Command = async (argv, io) => {
  const given = readArguments(argv, io, DIFF);
  if (typeof given === "number") return given;
  const { positionals, output, flags } = given;
  const [baselineFile = "", proposalFile = ""] = positionals;
  const [before, after] = [await loadDocument(baselineFile, io), await loadDocument(proposalFile, io)];
  for (const finding of [...before.findings, ...after.findings]) io.err(`${formatFinding(finding)}\n`);
  const [baseline, proposal] = [before.document, after.document];
  if (baseline === undefined || proposal === undefined) {
    const errors = [...before.findings, ...after.findings].filter(({ severity }) => severity === "error");
    if (output !== "text") io.out(showData(invalidData(errors), output));
    return EXIT.refused;
  }
  // There is no node whose key could be taken. Both documents together are what a reader of the output lacks.
  const fingerprintKey = sha256Of(canonicalJson([baseline, proposal]));
  const diff = diffDocuments(baseline, proposal, { fingerprintKey, ownPatch: flags.has("own-patch") });
  io.out(output === "text" ? diffText(diff) : showData(diffData(diff), output));
  return EXIT[diff.result];
};

/** A side that does not have the field is null. */
const shownField = ({ path, class: fieldClass, old, new: next }: FieldChange): object => ({
  path,
  class: fieldClass,
  old: old ?? null,
  new: next ?? null,
});

export function diffData({ result, reason, fields, removed, restarts }: DocumentDiff): object {
  return {
    result,
    ...(reason === undefined ? {} : { reason }),
    fields: fields.map(shownField),
    removed,
    restarts,
  };
}

/** A document that is not valid is compared with nothing; its problems say why, each with its file. */
function invalidData(errors: readonly Finding[]): object {
  const problems = errors.map((finding) => ({ file: finding.file, ...toProblem(finding) }));
  return { result: "refused", reason: "invalid", fields: [], removed: [], restarts: [], problems };
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
