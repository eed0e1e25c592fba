import { describe, expect, test } from "bun:test";
import { budgetOf, classOf, isLast } from "./files.ts";
import { needsIn } from "./needs.ts";
import { judge, parseReport } from "./report.ts";

const XML = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="bun test" tests="5" assertions="2" failures="1" skipped="1" time="0.004">
  <testsuite name="x.test.ts" file="x.test.ts" tests="5">
    <testcase name="a [needs root]" classname="" time="0" file="x.test.ts" line="2" assertions="0">
      <skipped />
    </testcase>
    <testcase name="b" classname="" time="0.000027" file="x.test.ts" line="3" assertions="1" />
    <testcase name="c &lt;x&gt; &amp; &quot;q&quot;" classname="" time="0.0003" file="x.test.ts" line="4" assertions="1">
      <failure type="AssertionError" message="expect(received).toBe(expected)&#10;">AssertionError</failure>
    </testcase>
    <testsuite name="grp" file="x.test.ts" line="6">
      <testcase name="e" classname="grp" time="0.000005" file="x.test.ts" line="6" assertions="0" />
    </testsuite>
  </testsuite>
</testsuites>`;

const fine = XML.replaceAll(/<failure[\s\S]*?<\/failure>/g, "");
const ending = { exitCode: 0, isOverBudget: false, budgetSeconds: 90 } as const;
const never = (): boolean => false;

test("a report is counted test by test", () => {
  expect(parseReport(XML)).toEqual({ passed: 2, failed: ['c <x> & "q"'], skipped: ["a [needs root]"] });
});

describe("a file fails", () => {
  test("when a test failed", () => {
    expect(judge({ ...ending, xml: XML, exitCode: 1 }, never)).toMatchObject({ passed: 2, failed: 1, skipped: 1 });
  });
  test("when it exits 0 in the middle and leaves no report", () => {
    expect(judge(ending, never)).toMatchObject({ failed: 1, problems: ["ended with 0 and without a report"] });
  });
  test("when all passed and it still ended badly", () => {
    expect(judge({ ...ending, xml: fine, exitCode: 1 }, never).failed).toBe(1);
  });
  test("when it holds no test", () => {
    expect(judge({ ...ending, xml: "<testsuites></testsuites>" }, never).problems).toEqual(["holds no test"]);
  });
  test("when it was over its budget", () => {
    expect(judge({ ...ending, exitCode: null, isOverBudget: true }, never).problems).toEqual([
      "over its budget of 90 s",
    ]);
  });
  test("when it skipped what this machine could have run", () => {
    expect(judge({ ...ending, xml: fine }, () => true)).toMatchObject({ failed: 1, skipped: 0 });
  });
  test("when it skipped without saying why", () => {
    expect(judge({ ...ending, xml: fine.replace(" [needs root]", "") }, never).failed).toBe(1);
  });
});

test("a file with a justified skip is fine", () => {
  expect(judge({ ...ending, xml: fine }, never)).toEqual({
    passed: 3,
    failed: 0,
    skipped: 1,
    problems: [],
    reasons: ["a [needs root]"],
  });
});

test("needs, classes and budgets are read where they are written", () => {
  expect(needsIn("x [needs root, mdadm]")).toEqual(["root", "mdadm"]);
  expect(needsIn("x")).toBeUndefined();
  expect([classOf("a/b.vm.test.ts"), classOf("b.loop.test.ts"), classOf("c.test.ts")]).toEqual(["vm", "loop", "fast"]);
  expect(budgetOf("// budget: 180 s\n", "vm")).toBe(180);
  expect(budgetOf("import x;\n", "fast")).toBe(240);
  expect(budgetOf("// budget: 180 s, last\n", "vm")).toBe(180);
  expect([isLast("// budget: 180 s, last\nimport x;\n"), isLast("// budget: 180 s\n")]).toEqual([true, false]);
});
