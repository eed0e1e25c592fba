/** What the guides say can be done, can be done. test/stories/guides.test.ts runs their cctl commands on a node. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { interpret } from "../cctl/cctl.main.ts";
import { parseDocument } from "../config/load.ts";
import { contradictions, holdingsOf, pageOf } from "./field-reports.ts";
import { blocksOf, commandsOf, pages, readGuide, root } from "./support/guides.ts";

const blocks = (await Promise.all(pages.map(readGuide))).flat();
const script = await Bun.file(join(root, "dev")).text();

describe("the guides", () => {
  test("blocks are found, with their kind and the file they are saved as", () => {
    const found = blocksOf("a.md", "x\n```yaml file=n.yaml\nrole: single\n```\n\n```sh\n# why\ncctl status a\n```\n");
    expect(found.map(({ kind, file, line }) => [kind, file, line])).toEqual([
      ["yaml", "n.yaml", 2],
      ["sh", undefined, 6],
    ]);
    expect(commandsOf(found[1] ?? blocks[0]!)).toEqual([["cctl", "status", "a"]]);
    expect(blocks.length).toBeGreaterThan(10);
  });

  test("each block is run (sh), a document (yaml), or marked as example output (text)", () => {
    const others = blocks.filter(({ kind }) => !["sh", "yaml", "text"].includes(kind));
    expect(others.map(({ page, line, kind }) => `${page}:${line}: ${kind}`)).toEqual([]);
  });

  test("each document is valid", () => {
    for (const { page, line, text } of blocks.filter(({ kind }) => kind === "yaml")) {
      const { findings } = parseDocument(text, { file: `${page}:${line}`, nowMs: Date.UTC(2026, 0, 1) });
      expect(findings).toEqual([]);
    }
  });

  test("each command is one", () => {
    for (const block of blocks.filter(({ kind }) => kind === "sh")) {
      for (const [program, ...argv] of commandsOf(block)) {
        const place = `${block.page}:${block.line}`;
        if (program === "cctl") expect([place, interpret(argv).ok]).toEqual([place, true]);
        else if (program === "./dev") expect([place, script.includes(`\n  ${argv[0]}`)]).toEqual([place, true]);
        else expect([place, program]).toEqual([place, "corium"]);
      }
    }
  });

  test("each link leads to a page of this tree", async () => {
    const missing: string[] = [];
    for (const page of pages) {
      const text = await Bun.file(join(root, page)).text();
      for (const [, target] of text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
        if (!existsSync(join(root, dirname(page), target ?? ""))) missing.push(`${page}: ${target}`);
      }
    }
    expect(missing).toEqual([]);
  });
});

describe("field reports are read from the names of tests", () => {
  const idsOf = (source: string): readonly string[] => holdingsOf("a.test.ts", source).map(({ id }) => id);

  test("each number that a name begins with", () => {
    const source =
      'describe("B001: a", () => {\n  test.each([["x"]])("B002, B003: b %s", () => {});\n  test("c B12", () => {});\n';
    expect(holdingsOf("a.test.ts", source)).toEqual([
      { id: "B001", file: "a.test.ts", name: "a" },
      { id: "B002", file: "a.test.ts", name: "b %s" },
      { id: "B003", file: "a.test.ts", name: "b %s" },
    ]);
    expect(idsOf("test.skipIf(isOff)(\n  `B004: a`,\n  () => {});\ntest.only('B005: a')")).toEqual(["B004", "B005"]);
  });

  test("what stands in a text or a comment, or is given to another function, is no test", () => {
    expect(idsOf("const fixture = 'test(\"B001: a\", () => {})';")).toEqual([]);
    expect(
      idsOf('const fixture = `\n  test("B001: a", () => {});\n`;\n// test("B002: a")\n/* test("B003: a") */'),
    ).toEqual([]);
    expect(idsOf('expect(rows).toContain("B001");\nrow("B002: a");\nconst quote = /["`]/;\ntest("B003: a")')).toEqual([
      "B003",
    ]);
  });

  test("the page holds no line of this file", async () => {
    expect(await Bun.file(join(root, "docs/field-reports.md")).text()).not.toContain("test/docs.test.ts");
  });
});

test("a field report has tests or a reason to have none, never both and never neither", () => {
  const report = (id: string, more: object = {}) => ({ id, symptom: "s", ...more });
  const area = (...reports: readonly ReturnType<typeof report>[]) => [{ name: "a", reports }];
  const held = (id: string) => ({ id, file: "a.test.ts", name: "it | holds" });
  const fine = area(report("B001"), report("B002", { without: "r" }), report("B003", { later: "f" }));
  expect(contradictions(fine, [held("B001")])).toEqual([]);
  expect(contradictions(area(report("B001")), [])).toHaveLength(1);
  expect(contradictions(area(report("B001", { later: "f" })), [held("B001")])).toHaveLength(1);
  expect(contradictions(area(report("B001", { later: "f", without: "r" })), [])).toHaveLength(1);
  expect(contradictions([], [held("B001")])).toHaveLength(1);
  expect(contradictions(area(report("B001"), report("B001")), [held("B001")])).toEqual(["B001 is listed twice"]);
  const page = pageOf(fine, [held("B001")]);
  expect(page).toContain("| B001 | s                         | it \\| holds (`a.test.ts`) |");
  expect(page).toContain("| B002 | s                         | _not here:_ r             |");
  expect(page).toContain("| B003 | s                         | _later:_ f                |");
});
