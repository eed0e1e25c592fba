import { expect, test } from "bun:test";
import { makeDocument } from "../test/support/document-fixture.ts";
import { chooseHostname, renderHosts } from "./hostname.ts";

const machineId = "0123456789abcdef0123456789abcdef";

test("B058: the document's name wins, then a name that names somebody, else one of the machine's own", () => {
  const unnamed = makeDocument();
  expect(chooseHostname(makeDocument({ node: { name: "n1", labels: {}, taints: [] } }), "debian", machineId)).toBe(
    "n1",
  );
  expect(chooseHostname(unnamed, "rack4-07\n", machineId)).toBe("rack4-07");
});

test("B055: two machines with default names do not get one name", () => {
  for (const generic of ["localhost", "localhost.localdomain", "Debian", "corium", "", "(none)"]) {
    expect(chooseHostname(makeDocument(), generic, machineId)).toBe("corium-01234567");
  }
});

test("the name resolves without DNS, with its short form", () => {
  expect(renderHosts("n1.example.org")).toContain("127.0.1.1 n1.example.org n1\n");
  expect(renderHosts("n1")).toContain("127.0.1.1 n1\n");
});
