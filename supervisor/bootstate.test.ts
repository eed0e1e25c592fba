import { expect, test } from "bun:test";
import type { BootFacts } from "../kit/paths.ts";
import { readFacts } from "./bootstate.main.ts";

const facts: BootFacts = {
  mode: "disk",
  slot: "A",
  installation: "0123456789abcdef0123456789abcdef",
  isMirrored: true,
  partUuids: { esp: "1", boot: "2", root: "3", state: "4", data: "5" },
};

test("everything that decides which ESPs are written is read from what the initramfs wrote", () => {
  expect(readFacts(JSON.stringify({ ...facts, rootHash: "ab" }))).toEqual(facts);
  const { isMirrored: _, ...plain } = facts;
  expect(readFacts(JSON.stringify(plain))).toEqual(plain);
  for (const text of ["", "{}", '{"mode":"cd"}', JSON.stringify({ ...facts, isMirrored: "yes" })])
    expect(readFacts(text)).toBeUndefined();
});
