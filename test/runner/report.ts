/** Pure: what a junit report of `bun test` says of one file. */
import { needsIn } from "./needs.ts";

export interface FileReport {
  readonly passed: number;
  /** Names of the tests. */
  readonly failed: readonly string[];
  readonly skipped: readonly string[];
}

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

const unescape = (text: string): string =>
  text.replaceAll(/&(?:#(\d+)|(\w+));/g, (whole, code?: string, name?: string) =>
    code === undefined ? (entities[name ?? ""] ?? whole) : String.fromCodePoint(Number(code)),
  );

export function parseReport(xml: string): FileReport {
  let passed = 0;
  const failed: string[] = [];
  const skipped: string[] = [];
  for (const match of xml.matchAll(/<testcase\s([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const attribute = (name: string): string =>
      unescape(new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(match[1] ?? "")?.[1] ?? "");
    const group = attribute("classname");
    const name = group === "" ? attribute("name") : `${group} > ${attribute("name")}`;
    const body = match[2] ?? "";
    if (body.includes("<failure") || body.includes("<error")) failed.push(name);
    else if (body.includes("<skipped")) skipped.push(name);
    else passed += 1;
  }
  return { passed, failed, skipped };
}

export interface Ending {
  /** The report's text, when there is one. */
  readonly xml?: string;
  readonly exitCode: number | null;
  readonly isOverBudget: boolean;
  readonly budgetSeconds: number;
}

export interface Verdict {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Why it is not fine, for people. */
  readonly problems: readonly string[];
  /** Why tests were skipped. */
  readonly reasons: readonly string[];
}

/** A file fails too when it left no report, ran nothing, went on too long, or skipped what could have run. */
export function judge(ending: Ending, isMet: (need: string) => boolean): Verdict {
  const report = ending.xml === undefined ? undefined : parseReport(ending.xml);
  const problems = (report?.failed ?? []).map((name) => `failed: ${name}`);
  const reasons: string[] = [];
  for (const name of report?.skipped ?? []) {
    const needs = needsIn(name);
    if (needs === undefined) problems.push(`skipped without a reason: name it, [needs …]: ${name}`);
    else if (needs.every(isMet)) problems.push(`skipped although this machine has ${needs.join(", ")}: ${name}`);
    else reasons.push(name);
  }
  const testFailures = problems.length;
  if (ending.isOverBudget) problems.push(`over its budget of ${ending.budgetSeconds} s`);
  else if (report === undefined) problems.push(`ended with ${ending.exitCode ?? "a signal"} and without a report`);
  else if (report.passed + report.failed.length + report.skipped.length === 0) problems.push("holds no test");
  else if (ending.exitCode !== 0 && report.failed.length === 0)
    problems.push(`every test passed, yet it ended with ${ending.exitCode ?? "a signal"}`);
  const failed = testFailures + (problems.length > testFailures ? 1 : 0);
  return { passed: report?.passed ?? 0, failed, skipped: reasons.length, problems, reasons };
}
