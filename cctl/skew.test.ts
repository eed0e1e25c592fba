import { expect, test } from "bun:test";
import { skewOf } from "./skew.ts";

test("B077: a cctl that knows another document than the node is told so before it writes", () => {
  expect(skewOf("1.4.0", "1.6.0")?.message).toBe("this cctl is 1.4.0, the node runs 1.6.0: too far apart to change it");
  expect(skewOf("1.4.0", "1.6.0")?.hint).toContain("use a cctl of 1.6");
});

test.each([
  ["1.4.0", "1.4.9", true],
  ["1.4.0", "1.5.0", true],
  ["1.4.0", "1.3.7", true],
  ["1.4.0", "1.6.0", false],
  ["1.4.0", "2.4.0", false],
  ["0.1.0-dev", "9.0.0", true],
  ["1.4.0", "9.0.0-dev", true],
  ["1.4.0", undefined, true],
  ["1.4.0", "\u001b[2J", true],
] as const)("cctl %s may change a node of %j: %p", (own, node, isFine) => {
  expect(skewOf(own, node) === undefined).toBe(isFine);
});
