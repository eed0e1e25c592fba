import { expect, test } from "bun:test";
import { chartProgress, parseCharts } from "./charts.ts";

const state = (revision: number, error = "", updated = "t1") => ({ revision, error, updated });

test("B113: a chart's release is new only when its revision grew", () => {
  expect(chartProgress(undefined, undefined).is).toBe("pending");
  expect(chartProgress(undefined, state(0)).is).toBe("pending");
  expect(chartProgress(undefined, state(1)).is).toBe("released");
  expect(chartProgress(state(1), state(1)).is).toBe("pending");
  expect(chartProgress(state(1), state(2)).is).toBe("released");
});

test("an error from before the change is not one of the change", () => {
  expect(chartProgress(state(1, "x"), state(1, "x")).is).toBe("pending");
  expect(chartProgress(state(1, "x"), state(1, "x", "t2"))).toEqual({ is: "failing", error: "x" });
  expect(chartProgress(state(1), state(1, "y"))).toEqual({ is: "failing", error: "y" });
});

test("what is no list of charts is not taken for an empty one", () => {
  expect(parseCharts("")).toBeUndefined();
  expect(parseCharts("{}")).toBeUndefined();
  expect(parseCharts('{"items": []}')?.size).toBe(0);
  const item = { metadata: { name: "k0s-addon-chart-a" }, status: { revision: 2, updated: "t", error: "" } };
  expect(parseCharts(JSON.stringify({ items: [item] }))?.get("a")).toEqual(state(2, "", "t"));
});
