import { expect, test } from "bun:test";
import { jsonPrintable, bytes, duration, printable, printableValue, table } from "./printable.ts";

test("a node can't drive the operator's terminal", () => {
  expect(printable("a\u001b]0;owned\u0007b")).toBe("a\\x1b]0;owned\\x07b");
  expect(printable("one\ntwo\r\t")).toBe("one\\ntwo\\r\\t");
  expect(printable("one\ntwo\r", "line-feeds")).toBe("one\ntwo\\r");
  expect(printable("\u009b31m right\u202eleft")).toBe("\\x9b31m right\\u202eleft");
  expect(printable("Zürich 東京")).toBe("Zürich 東京");
  expect(printableValue({ "k\u0007": ["\u001b[2J", 1, null] })).toEqual({ "k\\x07": ["\\x1b[2J", 1, null] });
});

test("columns line up whatever the cells hold", () => {
  const rows = table(
    ["NAME", "X"],
    [
      ["東京", "1"],
      ["ab\u001b", "2"],
    ],
  ).split("\n");
  expect(rows).toEqual(["NAME    X", "東京    1", "ab\\x1b  2", ""]);
});

test("sizes and times are short", () => {
  expect([0, 999, 1500, 2_000_398_934_016].map(bytes)).toEqual(["0 B", "999 B", "1.5 kB", "2.0 TB"]);
  expect([5, 65, 7265, 90_000].map(duration)).toEqual(["5s", "1m5s", "2h1m", "1d1h"]);
});

test("--output json passed on what a terminal obeys", () => {
  const value = { name: "a\u009b2J\u202eb\u007f", text: "x\ny" };
  const shown = jsonPrintable(JSON.stringify(value));
  expect(shown).not.toMatch(/[\u007f-\u009f\u202e]/);
  expect(JSON.parse(shown)).toEqual(value);
  expect(jsonPrintable("no json \u001b]0;x\u0007")).toBe("no json \\u001b]0;x\\u0007");
});
