import { expect, test } from "bun:test";
import { parseDocument } from "../../config/load.ts";
import { inTurns, median } from "./model.ts";
import { longDocument } from "./validate.ts";

test("the document that is timed has 200 lines and is valid", () => {
  const text = longDocument();
  expect(text.split("\n")).toHaveLength(201);
  expect(parseDocument(text, { nowMs: 0 }).findings).toEqual([]);
});

test("works take turns; the median is the one in the middle", () => {
  const order: string[] = [];
  const times = inTurns(2, [() => void order.push("a"), () => void order.push("b")]);
  expect([order.join(""), times.map(({ length }) => length)]).toEqual(["abab", [2, 2]]);
  expect(median([9, 1, 5])).toBe(5);
});
