/** The document of an apply, read on a node that runs one already. */
import type { Document } from "../../config/document.ts";
import { ANY_TIME } from "../../config/load.ts";
import type { Finding } from "../../kit/finding.ts";
import { valueAt } from "../../k0s/merge.ts";
import type { ApplyDependencies } from "./model.ts";

export interface Proposal {
  readonly findings: readonly Finding[];
  /** Present when nothing is wrong with it but what the node runs with anyway. */
  readonly document?: Document;
}

/**
 * A certificate that ended since it was applied, or that a clock which went back has not reached yet, is no reason to refuse
 * what is asked of the rest: where the field is as in the baseline it is a warning.
 */
export function readProposal(
  parse: ApplyDependencies["parse"],
  text: string,
  { before, nowMs }: { readonly before: Document; readonly nowMs: number },
): Proposal {
  const parsed = parse(text, nowMs);
  if (parsed.document !== undefined) return parsed;
  const { document } = parse(text, ANY_TIME);
  if (document === undefined) return parsed;
  const findings = parsed.findings.map((finding): Finding => {
    const path = finding.path.split(".");
    const isAsBefore = finding.code === "expired" && valueAt(before, path) === valueAt(document, path);
    return isAsBefore ? { ...finding, severity: "warning" } : finding;
  });
  return findings.some(({ severity }) => severity === "error") ? { findings } : { findings, document };
}
