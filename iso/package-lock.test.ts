import { expect, test } from "bun:test";
import { lockDrift, lockLines } from "./package-lock.ts";

const lock = lockLines("# packages\na 1 aa\nb 2 bb\n\nc 3 cc\n");

test("packages as locked raise nothing, also when the lock knows more than this image holds", () => {
  expect(lockDrift(lock, ["a 1 aa", "c 3 cc"])).toEqual([]);
});

test("another version, another hash and an unknown package are drift", () => {
  expect(lockDrift(lock, ["a 2 xx", "b 2 xx", "d 1 dd"])).toEqual([
    "a is 2, the lock says 1",
    "b 2 has another hash than the lock says",
    "d 1 is not in the lock",
  ]);
});
