/** So many findings are shown: whoever mends the first hundred has another look anyway. */
import type { Finding } from "../kit/finding.ts";
import { decodeSays } from "./messages/decode.ts";

export const MOST_FINDINGS = 100;

export interface Capped {
  /** In the order given; a last one says how many are left out, at the place of the first of those. */
  readonly findings: readonly Finding[];
  readonly omitted: number;
}

/** Errors go before warnings: what makes a document invalid is among those shown. */
export function capFindings(all: readonly Finding[]): Capped {
  if (all.length <= MOST_FINDINGS) return { findings: all, omitted: 0 };
  const errors = all.filter(({ severity }) => severity === "error");
  const warnings = all.filter(({ severity }) => severity === "warning");
  const shown = new Set([...errors, ...warnings].slice(0, MOST_FINDINGS));
  const omitted = all.length - MOST_FINDINGS;
  const { code, message, hint } = decodeSays.moreProblems(omitted);
  const severity = errors.length > MOST_FINDINGS ? "error" : "warning";
  // Where to go on looking.
  const { line, column } = all.find((finding) => !shown.has(finding)) ?? {};
  const last: Finding = {
    severity,
    code,
    path: "",
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(line === undefined ? {} : { line }),
    ...(column === undefined ? {} : { column }),
  };
  return { findings: [...all.filter((finding) => shown.has(finding)), last], omitted };
}
