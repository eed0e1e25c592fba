/** The document that the node is about: the baseline's, else the one last given to it. */
import type { Document } from "../config/document.ts";
import { ANY_TIME, parseDocument } from "../config/load.ts";
import type { StoredDocument } from "../state/model.ts";
import type { State } from "../state/open.ts";

export interface KnownDocument {
  readonly stored: StoredDocument;
  readonly document: Document;
}

/** Parsed once per text: status is asked every two seconds, and a document can be large. */
export function documentReader(state: State): () => KnownDocument | undefined {
  let last: KnownDocument | undefined;
  return () => {
    const stored = state.baseline.get()?.document ?? state.documents.latest();
    if (stored === undefined) return undefined;
    if (last !== undefined && last.stored.sha256 === stored.sha256) return { ...last, stored };
    // Time findings are for those who apply; what runs is what runs.
    const { document } = parseDocument(stored.text, { nowMs: ANY_TIME });
    return document === undefined ? undefined : (last = { stored, document });
  };
}
