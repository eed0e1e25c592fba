/** Rendered files as people may see them: unified diffs without secrets. */
import { createTwoFilesPatch } from "diff";
import { type Document, isMap, isScalar, parseAllDocuments, visit } from "yaml";
import { K0S_MANIFESTS } from "../k0s/paths.ts";
import { fingerprint, maskText } from "./fingerprint.ts";

const SECRET_DATA = ["data", "stringData"] as const;
/** A document that would grow beyond all bounds was refused when it was read. */
const MOST_ALIASES = 100_000;

/** The values of a Kubernetes Secret are secrets, whatever their keys are called. */
function maskManifest(text: string, key: string): string {
  const documents = parseAllDocuments(text, { uniqueKeys: false });
  const secrets = documents.filter((document) => document.get("kind") === "Secret");
  if (secrets.length === 0) return text;
  for (const document of secrets) {
    if (hasAlias(document)) {
      maskAliased(document, key);
      continue;
    }
    for (const field of SECRET_DATA) {
      const data = document.get(field);
      if (!isMap(data)) continue;
      for (const pair of data.items) {
        const value = isScalar(pair.value) ? String(pair.value.value) : JSON.stringify(pair.value);
        pair.value = document.createNode(fingerprint(key, value));
      }
    }
  }
  return documents.map(String).join("");
}

function hasAlias(document: Document): boolean {
  let found = false;
  visit(document, {
    Alias: () => {
      found = true;
      return visit.BREAK;
    },
  });
  return found;
}

/** An alias may carry a value of the Secret anywhere, or bring it in: written out, and masked wherever it stands. */
function maskAliased(document: Document, key: string): void {
  const plain = document.toJS({ maxAliasCount: MOST_ALIASES }) as Readonly<Record<string, unknown>>;
  const values = new Set(SECRET_DATA.flatMap((field) => Object.values(plain[field] ?? {}).map(String)));
  const masked = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(masked);
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, masked(each)]));
    return values.has(String(value)) ? fingerprint(key, String(value)) : value;
  };
  document.contents = document.createNode(masked(plain), { aliasDuplicateObjects: false });
}

const shown = (path: string, text: string, key: string): string =>
  maskText(path.startsWith(`${K0S_MANIFESTS}/`) ? maskManifest(text, key) : text, key);

/** Lines that came or went. The search takes the square of it. */
const MOST_EDITS = 3000;

/** All of one side, where the two have too little in common to look for it. */
function wholeHunk(sign: "-" | "+", text: string): string {
  if (text === "") return "";
  const lines = text.replace(/\n$/, "").split("\n");
  const range = sign === "-" ? `-1,${lines.length} +0,0` : `-0,0 +1,${lines.length}`;
  const end = text.endsWith("\n") ? "" : "\\ No newline at end of file\n";
  return `@@ ${range} @@\n${lines.map((line) => `${sign}${line}\n`).join("")}${end}`;
}

/** `undefined`: the file is not there. Paths as git writes them; no time stamps, so equal input gives equal text. */
export function unifiedDiff(
  path: string,
  old: string | undefined,
  next: string | undefined,
  fingerprintKey: string,
): string {
  const names = [old === undefined ? "/dev/null" : `a${path}`, next === undefined ? "/dev/null" : `b${path}`] as const;
  const before = old === undefined ? "" : shown(path, old, fingerprintKey);
  const after = next === undefined ? "" : shown(path, next, fingerprintKey);
  const text =
    createTwoFilesPatch(...names, before, after, "", "", { context: 3, maxEditLength: MOST_EDITS }) ??
    `--- ${names[0]}\n+++ ${names[1]}\n${wholeHunk("-", before)}${wholeHunk("+", after)}`;
  return text.replace(/^=+\n/, "").replace(/^((?:---|\+\+\+) .*)\t$/gm, "$1");
}
