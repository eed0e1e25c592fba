import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { readTyped } from "./typed.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

describe("a line from a terminal", () => {
  test("is what was typed, without blanks at its ends", () => {
    expect(readTyped(" wipe S5Y1 \r")).toEqual({ kind: "text", text: "wipe S5Y1" });
    expect(readTyped("  ")).toEqual({ kind: "empty" });
    expect(readTyped("\u001b")).toEqual({ kind: "cancel" });
    expect(readTyped("\u001b\u001b\r")).toEqual({ kind: "cancel" });
  });

  test("arrow keys, answers of a terminal, noise of a wrong speed and pastes without end are nothing", () => {
    for (const line of [
      "\u001b[A",
      "i\u001b[D",
      "\u001b[24;80R",
      "\u001bOP",
      "\u0000\u00ff~",
      "ü",
      "x".repeat(129),
      "a\tb",
    ]) {
      expect(readTyped(line)).toEqual({ kind: "junk" });
    }
  });

  test("whatever comes, text is printable and short", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (line) => {
        const typed = readTyped(line);
        if (typed.kind === "text") expect(typed.text).toMatch(/^[!-~](?:[ -~]{0,126}[!-~])?$/);
      }),
    );
  });
});
