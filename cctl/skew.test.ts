import { expect, test } from "bun:test";
import { skewOf } from "./skew.ts";

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
