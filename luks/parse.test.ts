import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { hasSlot, isBoundToTpm, parseHeader, parseMappings } from "./parse.ts";

const captured = readFileSync(join(import.meta.dir, "testdata/luksdump-tpm2-recovery.txt"), "utf8");

describe("parseHeader", () => {
  test("a slot is what its token says; one that no token names is opened by a password", () => {
    const header = parseHeader(captured);
    expect(header).toEqual({
      ok: true,
      value: {
        slots: [
          { number: 0, kind: "password" },
          { number: 1, kind: "tpm2" },
          { number: 2, kind: "recovery" },
          { number: 3, kind: "recovery" },
        ],
        tpm2Pcrs: [[7]],
      },
    });
  });

  test("B175: bound is to PCR 7 alone: no image of ours changes it, however many are staged one over another", () => {
    const bound = (pcrs: readonly number[]): boolean => {
      const text = captured.replace(/"tpm2-pcrs":\[\s*7\s*\]/, `"tpm2-pcrs":${JSON.stringify(pcrs)}`);
      const header = parseHeader(text);
      return header.ok && isBoundToTpm(header.value);
    };
    expect([bound([7]), bound([]), bound([4, 7]), bound([11])]).toEqual([true, false, false, false]);
  });

  test("whatever is printed, it is a header or an error", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.nat(captured.length).map((at) => captured.slice(0, at)),
        ),
        (text) => {
          const header = parseHeader(text);
          if (header.ok) expect(header.value.slots.every(({ number }) => Number.isInteger(number))).toBe(true);
          else expect(["not-json", "not-understood"]).toContain(header.error.code);
        },
      ),
    );
    expect(parseHeader("{}").ok).toBe(false);
    const none = parseHeader('{"keyslots":{}}');
    expect(none.ok && hasSlot(none.value, "password")).toBe(false);
  });
});

test("mappings by name; what device-mapper says when there are none is no mapping", () => {
  expect([...parseMappings("corium-root \ncorium-luks-a CRYPT-LUKS2-00-corium-luks-a\n")]).toEqual([
    ["corium-luks-a", "CRYPT-LUKS2-00-corium-luks-a"],
  ]);
  expect([...parseMappings("No devices found\n")].filter(([name]) => name.startsWith("corium"))).toEqual([]);
});
