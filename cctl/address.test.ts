import { expect, test } from "bun:test";
import { formatAddress, parseAddress } from "./address.ts";

const read = (text: string): string => {
  const parsed = parseAddress(text, 7443);
  return parsed.ok ? formatAddress(parsed.value) : "refused";
};

test.each([
  ["node1", "node1:7443"],
  ["Node1.Example", "node1.example:7443"],
  ["10.0.0.5:8443", "10.0.0.5:8443"],
  ["fd00::1", "[fd00::1]:7443"],
  ["[fd00::1]", "[fd00::1]:7443"],
  ["[fd00::1]:1", "[fd00::1]:1"],
  ["fe80::1%eth0", "[fe80::1%eth0]:7443"],
  ["node1:", "refused"],
  ["node1:0", "refused"],
  ["node1:65536", "refused"],
  ["node1:80a", "refused"],
  ["[fd00::1", "refused"],
  ["[fd00::1]x", "refused"],
  ["a:b:c", "refused"],
  ["", "refused"],
  ["-x", "refused"],
  ["https://node1", "refused"],
  ["node 1", "refused"],
  ["node1\r\nX: y", "refused"],
])("%j is %s", (text, wanted) => {
  expect(read(text)).toBe(wanted);
});
