export type Severity = "error" | "warning";

/**
 * One thing a check has to say. `path` starts at the schema's root (`wireguard[0].peers[1].endpoint`);
 * `line` and `column` count from 1. `code` is a contract: docs/reference lists them. Never holds a secret.
 */
export interface Finding {
  readonly severity: Severity;
  readonly code: string;
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
}

export const hasErrors = (findings: readonly Finding[]): boolean =>
  findings.some((finding) => finding.severity === "error");

/** `file:line:column: error: path: message` and the hint below it. */
export function formatFinding(finding: Finding): string {
  const place = [finding.file, finding.line, finding.column].filter((part) => part !== undefined).join(":");
  const head = [place, finding.severity, finding.path, finding.message].filter((part) => part !== "").join(": ");
  return finding.hint === undefined ? head : `${head}\n  hint: ${finding.hint}`;
}
