/** The annotated documents of docs/examples, and the page that lists them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseDocument, type ParsedDocument } from "../../config/load.ts";
import { listedK0sVersions } from "../../iso/k0s-lock.ts";

export const examplesFolder = join(import.meta.dir, "../../docs/examples");

export interface Example {
  readonly name: string;
  readonly text: string;
  /** Its first sentence: the situation that somebody stands in. */
  readonly situation: string;
  readonly parsed: ParsedDocument;
}

/** Certificates of the examples are valid from 2025 to 2075. */
export const examplesNowMs = Date.UTC(2027, 0, 1);

/** All of the folder, so that a new one is covered by every test. */
export function readExamples(): readonly Example[] {
  const names = readdirSync(examplesFolder).filter((name) => name.endsWith(".yaml"));
  return names.toSorted().map((name) => {
    const text = readFileSync(join(examplesFolder, name), "utf8");
    const parsed = parseDocument(text, { file: name, nowMs: examplesNowMs, k0sVersions: listedK0sVersions });
    return { name, text, situation: situationOf(text), parsed };
  });
}

function situationOf(text: string): string {
  const comment = /^(?:#cloud-config\n)?((?:#.*\n)+)/.exec(text)?.[1] ?? "";
  const plain = comment.replaceAll(/^# ?/gm, "").replaceAll(/\s+/g, " ").trim();
  return /^.*?\.(?= |$)/.exec(plain)?.[0] ?? "";
}

/** The blocks that it gives. */
export const blocksOf = ({ parsed }: Example): readonly string[] =>
  Object.keys(parsed.raw as object).filter((block) => block !== "role");

export const exampleRows = (): readonly (readonly string[])[] =>
  readExamples().map((example) => [
    `[${example.name}](${example.name})`,
    example.situation,
    example.parsed.document?.role ?? "",
    blocksOf(example).join(" "),
    String(example.text.split("\n").length - 1),
  ]);
