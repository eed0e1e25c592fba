import { expect, test } from "bun:test";
import { installingMark, readMark } from "./mark.ts";

const id = "0123456789abcdef0123456789abcdef";

test("a mark is read back from a sector, and from nothing that only looks like one", () => {
  expect(readMark(installingMark(id) + "\0".repeat(460))).toBe(id);
  // In front of the table of an MBR.
  expect(installingMark(id).length).toBeLessThan(440);
  for (const text of [
    "",
    "\0".repeat(512),
    ` ${installingMark(id)}`,
    installingMark(id.toUpperCase()),
    installingMark(""),
  ])
    expect(readMark(text)).toBeUndefined();
});
