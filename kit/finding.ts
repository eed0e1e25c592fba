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
  /** Further lines a reader needs, e.g. each candidate disk with its reason. */
  readonly details?: readonly string[];
  readonly hint?: string;
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
}

export const hasErrors = (findings: readonly Finding[]): boolean =>
  findings.some((finding) => finding.severity === "error");

/** A document may hold anything, and a terminal obeys control characters; a line end would forge a finding. */
export const visible = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- exactly those are made visible
  text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });

/** `file:line:column: error: path: message`; details and hint each on a line below it. */
export function formatFinding(finding: Finding): string {
  const place = [finding.file, finding.line, finding.column].filter((part) => part !== undefined).join(":");
  const head = [place, finding.severity, finding.path, finding.message].filter((part) => part !== "").join(": ");
  const below = [...(finding.details ?? []), ...(finding.hint === undefined ? [] : [`hint: ${finding.hint}`])];
  return [visible(head), ...below.map((line) => `  ${visible(line)}`)].join("\n");
}
