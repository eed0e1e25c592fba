/** All that can be said about a document without a node: what the parser finds, and what k0s would make of its patch. */
import { capFindings } from "../config/cap.ts";
import { parseDocument, type ParsedDocument } from "../config/load.ts";
import { listedK0sVersions } from "../iso/k0s-lock.ts";
import { addressesToRecord } from "../k0s/addresses.ts";
import { renderK0s } from "../k0s/render.ts";
import type { Position } from "../config/yaml.ts";
import type { Finding } from "../kit/finding.ts";

export function checkDocument(
  text: string | Uint8Array,
  options: { readonly file: string; readonly nowMs: number },
): ParsedDocument {
  const parsed = parseDocument(text, { ...options, k0sVersions: listedK0sVersions });
  const { document, positionOf } = parsed;
  if (document === undefined) return parsed;
  const { findings } = renderK0s({ document, addresses: addressesToRecord(document, undefined) });
  const placed = findings.map((finding): Finding => ({ ...finding, ...placeOf(finding.path), file: options.file }));
  if (parsed.omitted > 0) return parsed;
  return { ...parsed, ...capFindings([...parsed.findings, ...placed].toSorted(byPosition)) };

  /** Where something is missing, the nearest map above it that is there stands for it: in the end the document's own. */
  function placeOf(path: string): Position | undefined {
    for (let at = path; at !== ""; at = parentOf(at)) {
      const found = positionOf(at);
      if (found !== undefined) return found;
      if (parentOf(at) === at) break;
    }
    return positionOf("");
  }
}

/** `k0s.patch.spec["a.b"]` → `k0s.patch.spec`. */
const parentOf = (path: string): string => path.replace(/(?:\.[^.[\]]+|\[(?:\d+|"(?:[^"\\]|\\.)*")\])$/, "");

const byPosition = (a: Finding, b: Finding): number =>
  (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
