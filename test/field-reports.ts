/**
 * `bun test/field-reports.ts [--check]`: docs/field-reports.md from the names of the tests and the list of reports. A
 * test that holds a failure seen in the field carries its number, B001 to B190, and says the symptom.
 */
import { join } from "node:path";
import jsTokens from "js-tokens";
import { AREAS, type FieldReport, type ReportArea } from "./field-reports-list.ts";

const root = join(import.meta.dir, "..");
const page = join(root, "docs/field-reports.md");
const list = "test/field-reports-list.ts";

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

/** What list and tests say that can't be; empty when all is well. */
export function contradictions(areas: readonly ReportArea[], holdings: readonly Holding[]): readonly string[] {
  const listed = areas.flatMap(({ reports }) => reports);
  const held = new Set(holdings.map(({ id }) => id));
  const known = new Set(listed.map(({ id }) => id));
  return [
    ...listed.flatMap(({ id }, at) =>
      listed.findIndex((other) => other.id === id) === at ? [] : [`${id} is listed twice`],
    ),
    ...listed.flatMap(({ id, without, later }) => {
      const reasons = [without, later].filter((reason) => reason !== undefined).length;
      if (reasons > 1) return [`${id} does not apply and comes later`];
      if (held.has(id)) return reasons === 0 ? [] : [`${id} has a test and a reason to have none`];
      return reasons === 0 ? [`${id} has neither a test nor a reason to have none`] : [];
    }),
    ...[...held].filter((id) => !known.has(id)).map((id) => `${id} has a test; say what went wrong in ${list}`),
  ];
}

type Row = readonly [id: string, symptom: string, here: string];

function rowsOf({ id, symptom, without, later }: FieldReport, holdings: readonly Holding[]): readonly Row[] {
  const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
  const reason = without === undefined ? later : without;
  if (reason !== undefined)
    return [[id, symptom, `_${without === undefined ? "later" : "not here"}:_ ${cell(reason)}`]];
  return holdings
    .filter((holding) => holding.id === id)
    .toSorted((a, b) => (a.file + a.name < b.file + b.name ? -1 : 1))
    .map(({ file, name }, at) => [at === 0 ? id : "", at === 0 ? symptom : "", `${cell(name)} (\`${file}\`)`]);
}

function tableOf(rows: readonly Row[]): string {
  const all: readonly Row[] = [["id", "what went wrong elsewhere", "what holds it off here"], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((row) => Bun.stringWidth(row[column] ?? ""))));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell))).join(" | ")} |`;
  const [head, ...body] = all.map(line);
  return [head, line(widths.map((width) => "-".repeat(width))), ...body].join("\n");
}

export function pageOf(areas: readonly ReportArea[], holdings: readonly Holding[]): string {
  const reports = areas.flatMap((area) => area.reports);
  const count = (of: (report: FieldReport) => boolean): number => reports.filter(of).length;
  const later = count((report) => report.later !== undefined);
  const without = count((report) => report.without !== undefined);
  const sections = areas.map(({ name, reports: own }) => {
    const rows = own.flatMap((report) => rowsOf(report, holdings));
    return `## ${name}\n\n${tableOf(rows)}\n`;
  });
  return `# Field reports

What broke on appliances of this kind elsewhere, and what holds it off here: public bug reports, numbered B001 to B190.
Of the ${reports.length} below ${reports.length - later - without} have a test that fails if it happens here, ${later} come with a feature that is not built yet, ${without} do
not apply. Reports of other areas come with their features. Made from the names of the tests and \`${list}\`
by \`bun test/field-reports.ts\`; don't edit.

${sections.join("\n")}`;
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
  const holdings = await collect();
  const wrong = contradictions(AREAS, holdings);
  if (wrong.length > 0) process.stderr.write(`${wrong.join("\n")}\n`);
  const text = pageOf(AREAS, holdings);
  const isCheck = process.argv[2] === "--check";
  const isSame = (await Bun.file(page).exists()) && (await Bun.file(page).text()) === text;
  if (wrong.length > 0) process.exitCode = 1;
  else if (!isCheck) await Bun.write(page, text);
  else if (!isSame) {
    process.stderr.write("docs/field-reports.md is out of date: run bun test/field-reports.ts\n");
    process.exitCode = 1;
  }
}
