import { describe, expect, test } from "bun:test";
import { formatFinding } from "../../kit/finding.ts";
import { parseDocument } from "../load.ts";
import { ruleCases } from "../../test/support/rule-cases.ts";

const addon = (...fields: string[]): string => `  - {${fields.join(", ")}}\n`;
const repository = "repository: {name: r, url: 'https://r.example'}";

describe("addons", () =>
  ruleCases([
    ["a chart of a registry", `role: single\naddons:\n${addon("name: a", "chart: oci://r.example/a")}`],
    ...["oci://r.example:5000/a/b", "oci://[2001:db8::1]:5000/a", "oci://r/a:v1.0.0", "oci://10.0.0.1/a_b.c"].map(
      (chart) => [`${chart} is a chart`, `role: single\naddons:\n${addon("name: a", `chart: '${chart}'`)}`] as const,
    ),
    ...[
      "oci://u:SECRET@h/x",
      "oci://u@h/x",
      "oci://u:SECRET@h",
      "oci://u:SE/CRET@h/x",
      "oci://x//y",
      "oci://x/../y",
      "oci://x/y?a=b",
      "oci://x/y#a",
      "oci://x/",
      "oci://x",
      "r/..",
    ].map(
      (chart) =>
        [
          `${chart} was valid`,
          `role: single\naddons:\n${addon("name: a", `chart: '${chart}'`)}`,
          "value addons[0].chart",
        ] as const,
    ),
    [
      "a repository that another add-on declares, also later",
      `role: single\naddons:\n${addon("name: a", "chart: r/a")}${addon("name: b", "chart: r/b", repository)}`,
    ],
    [
      "a repository that nobody declares",
      `role: single\naddons:\n${addon("name: a", "chart: r/a")}`,
      "reference addons[0].chart",
    ],
    [
      "nothing is said of it while a declaration is wrong",
      `role: single\naddons:\n${addon("name: a", "chart: r/a", "repository: {name: r, url: x}")}`,
      "value addons[0].repository.url",
    ],
    [
      "one repository with two URLs",
      `role: single\naddons:\n${addon("name: a", "chart: r/a", repository)}${addon("name: b", "chart: r/b", "repository: {name: r, url: 'https://q.example'}")}`,
      "conflict addons[1].repository.url",
    ],
    [
      "two of one name",
      `role: single\naddons:\n${addon("name: a", "chart: oci://r.example/a")}${addon("name: a", "chart: oci://r.example/b")}`,
      "conflict addons[1].name",
    ],
    [
      "not on a worker",
      `role: worker\njoin: {tokenFrom: {file: /t}}\naddons:\n${addon("name: a", "chart: oci://r.example/a")}`,
      "role addons",
    ],
    ["an empty list is fine on a worker", "role: worker\njoin: {tokenFrom: {file: /t}}\naddons: []\n"],
    [
      "a quoted boolean in values, which a chart takes for true",
      `role: single\naddons:\n${addon("name: a", "chart: oci://r.example/a", "values: {on: 'false', podLabels: {on: 'true'}}")}`,
      "ambiguous-text addons[0].values.on",
    ],
    [
      "a number in values that would be changed",
      `role: single\naddons:\n${addon("name: a", "chart: oci://r.example/a", "values: {id: 12345678901234567890}")}`,
      "value addons[0].values.id",
    ],
    [
      "values are a map",
      `role: single\naddons:\n${addon("name: a", "chart: oci://r.example/a", "values: [a]")}`,
      "type addons[0].values",
    ],
  ]));

test("the password in the address of a chart was printed", () => {
  for (const chart of ["oci://u:SECRET@h", "oci://u:SECRET@h/x", "oci://u:SEC/SECRET@h/x", "https://u:SECRET@h/x"]) {
    const text = `role: single\naddons: [{name: a, chart: "${chart}"}]\nnode: {name: "${chart}"}\n`;
    const shown = parseDocument(text, { nowMs: 0 }).findings.map(formatFinding);
    expect(shown.length).toBe(2);
    expect(shown.join()).not.toContain("SECRET");
  }
});
