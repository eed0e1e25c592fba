import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

const worker = "role: worker\njoin: {tokenFrom: {file: /t}}\n";

describe("k0s.patch", () =>
  ruleCases([
    ["anything", "role: single\nk0s: {patch: {spec: {a: [1, null, {b: c}]}}}\n"],
    ["does nothing on a worker", `${worker}k0s: {patch: {spec: {a: 1}}}\n`, "no-effect k0s.patch"],
    ["an empty one says nothing", `${worker}k0s: {patch: {}}\n`],
    [
      "a whole number that would be changed on its way",
      "role: single\nk0s: {patch: {a: [12345678901234567890]}}\n",
      "value k0s.patch.a[0]",
    ],
    ["the largest whole number that is kept", "role: single\nk0s: {patch: {a: 9007199254740991}}\n"],
    [
      "a merge key, which would arrive as a key",
      "role: single\nk0s: {patch: {a: {<<: {b: 1}}}}\n",
      "unknown-key k0s.patch.a.<<",
    ],
    ["a patch that is text", "role: single\nk0s: {patch: spec}\n", "type k0s.patch"],
  ]));
