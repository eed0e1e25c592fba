import { expect, test } from "bun:test";
import { parseDocument, type ParseOptions } from "../../config/load.ts";

/** What the case shows, the document, and all findings as `code path`, in the order of the document. */
export type RuleCase = readonly [shows: string, document: string, ...findings: string[]];

/** Through the parser, as people meet the rule: positions and what other rules say are part of the answer. */
export function ruleCases(cases: readonly RuleCase[], options: Partial<ParseOptions> = {}): void {
  test.each(cases.map(([shows, document, ...findings]) => [shows, document, findings] as const))(
    "%s",
    (_, document, findings) => {
      const parsed = parseDocument(document, { nowMs: Date.UTC(2027, 0, 1), ...options });
      expect(parsed.findings.map(({ code, path }) => `${code} ${path}`)).toEqual([...findings]);
    },
  );
}

/** A disk that nobody else names. */
export const disk = (name: string): string => `/dev/disk/by-id/${name}`;

export const KEY = "oaz/T6GntS+g8BFaovEUO64kxo89I2d5WO77wRV9RH4=";
export const OTHER_KEY = "aVJ0qmtkFBo4tQPAZLTkWcFqFBVc1LHdvAWqxGnYWT0=";
