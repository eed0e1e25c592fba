import { expect, setDefaultTimeout, test } from "bun:test";
import { capFindings, MOST_FINDINGS } from "./cap.ts";
import { parseDocument } from "./load.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const parse = (text: string) => parseDocument(text, { nowMs: 0 });
const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join("");

test("5,000 unknown keys filled the screen", () => {
  const { findings, omitted, document } = parse(`role: single\n${lines(5_000, (index) => `k${index}: 1\n`)}`);
  expect([document, findings.length, omitted]).toEqual([undefined, MOST_FINDINGS + 1, 5_000 - MOST_FINDINGS]);
  expect(findings.at(-1)).toMatchObject({ severity: "error", code: "more-problems", path: "" });
  expect(findings.at(-1)?.message).toContain("4900 more");
  // The fuzz's: the word on what is left out had no place in the document.
  expect(findings.at(-1)).toMatchObject({ line: MOST_FINDINGS + 2, column: 1 });
});

test("of a thousand warnings and one error the error is among those that are shown, in its place", () => {
  const labels = lines(1000, (index) => `    l${index}: yes\n`);
  const { findings } = parse(`role: boss\nnode:\n  labels:\n${labels}`);
  expect(findings[0]?.path).toBe("role");
  const late = parse(`node:\n  labels:\n${labels}role: boss\n`);
  expect(late.document).toBeUndefined();
  expect(late.findings.at(-2)?.path).toBe("role");
  expect(late.findings.at(-1)).toMatchObject({ severity: "warning", code: "more-problems" });
});

test("a hundred are all shown", () => {
  const { findings } = parse(`role: single\n${lines(MOST_FINDINGS, (index) => `k${index}: 1\n`)}`);
  expect(capFindings(findings)).toEqual({ findings, omitted: 0 });
  expect(findings.length).toBe(MOST_FINDINGS);
});
