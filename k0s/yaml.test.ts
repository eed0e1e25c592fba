import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { parse } from "yaml";
import { writeYaml } from "./yaml.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const nasty = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "yes",
    "No",
    "on",
    "~",
    "null",
    "1.10",
    "012",
    "0o17",
    "1:30",
    "1e3",
    ".inf",
    "<<",
    "=",
    "",
    " ",
    "- a",
    "# x",
  ),
  fc.constantFrom(
    "a\nb\n",
    "a\n\nb\n",
    "a\n",
    "\n",
    " a\nb\n",
    "a \nb\n",
    "a\r\nb\n",
    "\ta\nb\n",
    "a\n  b\n",
    "x\n\n",
    "a: b\n---\nc\n",
  ),
);
const scalar = fc.oneof(nasty, fc.double({ noNaN: true }), fc.integer(), fc.boolean(), fc.constant(null));
const data = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: "small" }, scalar, fc.array(tie("value"), { maxLength: 4 }), tie("map")),
  map: fc.dictionary(nasty, tie("value"), { maxKeys: 4 }),
})).map;

/** Well-formed UTF-16 only: a lone half is not text, and no YAML reader gives it back. */
const isText = (value: unknown): boolean =>
  !/[\ud800-\udfff]/.test(
    JSON.stringify(value)
      .replace(/[\ud800-\udbff][\udc00-\udfff]/g, "")
      .replace(/\\ud[89a-f]../g, "\ud800"),
  );

test("what is written reads the same in YAML 1.1 and 1.2", () => {
  fc.assert(
    fc.property(data, (value) => {
      fc.pre(isText(value));
      const text = writeYaml(value);
      const expected = JSON.parse(
        JSON.stringify(value, (_, item: unknown) => (Object.is(item, -0) ? 0 : item)),
      ) as unknown;
      expect(sane(parse(text, { version: "1.1" }))).toEqual(expected);
      expect(sane(parse(text, { version: "1.2" }))).toEqual(expected);
    }),
    { numRuns: 500 },
  );
}, 60_000);

const sane = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, item: unknown) => (Object.is(item, -0) ? 0 : item)));

test("a key e0 is a key, not the number NaN", () => {
  expect(parse(writeYaml({ e0: null }), { version: "1.1" })).toEqual({ e0: null });
});

test("the order of keys does not matter, the order of lists does", () => {
  expect(writeYaml({ b: 1, a: [2, 1] })).toBe(writeYaml({ a: [2, 1], b: 1 }));
  expect(writeYaml([1, 2])).not.toBe(writeYaml([2, 1]));
});

test("lists and maps are laid out as people write them", () => {
  expect(writeYaml({ list: [{ name: "a", values: "x: 1\ny: 2\n" }, [1, 2], {}], on: true })).toBe(`list:
  - name: "a"
    values: |
      x: 1
      y: 2
  - - 1
    - 2
  - {}
"on": true
`);
});
