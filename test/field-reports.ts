/**
 * `bun test/field-reports.ts [--check]`: docs/field-reports.md from the names of the tests. A test that holds a failure
 * seen in the field carries its number, B001 to B190, and says the symptom.
 */
import { join } from "node:path";
import jsTokens from "js-tokens";

const root = join(import.meta.dir, "..");
const page = join(root, "docs/field-reports.md");

export interface Holding {
  readonly id: string;
  readonly file: string;
  readonly name: string;
}

/** `test("B139: …")`, `describe("B001, B004: …")`: the numbers come first. */
export function holdingsOf(file: string, source: string): readonly Holding[] {
  const found: Holding[] = [];
  for (const name of testNames(source)) {
    const numbers = /^B\d{3}\b(?:[,\s]+B\d{3}\b)*/.exec(name)?.[0] ?? "";
    const text = name.slice(numbers.length).replace(/^[:\s]+/, "");
    for (const [id] of numbers.matchAll(/B\d{3}/g)) found.push({ id, file, name: text });
  }
  return found;
}

const BLANK = new Set(["WhiteSpace", "LineTerminatorSequence", "SingleLineComment", "MultiLineComment"]);
const TEXT = new Set(["StringLiteral", "NoSubstitutionTemplate"]);

/**
 * The names given to test, describe and their variations (`test.each(…)("name")`). Read as tokens: what stands in a
 * text, where a test has its own fixtures, is no test.
 */
function testNames(source: string): readonly string[] {
  const tokens = [...jsTokens(source)].filter(({ type }) => !BLANK.has(type));
  const valueAt = (at: number): string => tokens[at]?.value ?? "";
  return tokens.flatMap((token, at) => {
    if (!TEXT.has(token.type) || valueAt(at - 1) !== "(") return [];
    const callee = valueAt(at - 2);
    const isVariation =
      callee === ")" || (valueAt(at - 3) === "." && /^(?:only|skip|todo|concurrent|serial)$/.test(callee));
    return isVariation || /^(?:test|describe|it)$/.test(callee) ? [token.value.slice(1, -1)] : [];
  });
}

export function pageOf(holdings: readonly Holding[]): string {
  const rows = holdings
    .toSorted((a, b) => (a.id + a.file + a.name < b.id + b.file + b.name ? -1 : 1))
    .map(({ id, file, name }) => [id, name.replaceAll("|", "\\|").replaceAll("<", "&lt;"), `\`${file}\``] as const);
  const widths = [0, 1, 2].map((column) => Math.max(4, ...rows.map((row) => Bun.stringWidth(row[column] ?? ""))));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell))).join(" | ")} |`;
  const table = [line(["id", "test", "file"]), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)];
  return `# Field reports

What broke on appliances of this kind elsewhere, and the test that holds it off here: public bug reports, numbered B001
to B190, ${new Set(holdings.map(({ id }) => id)).size} of which have a test. Made from the names of the tests by
\`bun test/field-reports.ts\`; don't edit.

${table.join("\n")}
`;
}

async function collect(): Promise<readonly Holding[]> {
  const holdings: Holding[] = [];
  for await (const file of new Bun.Glob("**/*.test.ts").scan({ cwd: root })) {
    if (file.startsWith("node_modules/") || file.startsWith("out/")) continue;
    holdings.push(...holdingsOf(file, await Bun.file(join(root, file)).text()));
  }
  return holdings;
}

if (import.meta.main) {
  const text = pageOf(await collect());
  const isCheck = process.argv[2] === "--check";
  const isSame = (await Bun.file(page).exists()) && (await Bun.file(page).text()) === text;
  if (!isCheck) await Bun.write(page, text);
  else if (!isSame) {
    process.stderr.write("docs/field-reports.md is out of date: run bun test/field-reports.ts\n");
    process.exitCode = 1;
  }
}
