import { expect, test } from "bun:test";
import { unifiedDiff } from "./show.ts";

const lines = (count: number, prefix: string): string =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}\n`).join("");

test("two large files without a line in common kept the plan waiting", () => {
  const diff = unifiedDiff("/a", lines(30_000, "old"), `${lines(30_000, "new")}end`, "key");
  expect(diff.slice(0, 40)).toBe("--- a/a\n+++ b/a\n@@ -1,30000 +0,0 @@\n-old");
  expect(diff).toContain("\n-old29999\n@@ -0,0 +1,30001 @@\n+new0\n");
  expect(diff).toEndWith("\n+end\n\\ No newline at end of file\n");
});

test("a manifest of blank lines, a Secret of 20,000 values", () => {
  const blank = `a: b\n${"\n".repeat(100_000)}`;
  expect(unifiedDiff("/a", blank, `${blank}c: d\n`, "key")).toContain("\n+c: d\n");
  const data = Array.from({ length: 20_000 }, (_, index) => `  k${index}: hunter2\n`).join("");
  const shown = unifiedDiff("/var/lib/k0s/manifests/a/a.yaml", undefined, `kind: Secret\ndata:\n${data}`, "key");
  expect(shown).not.toContain("hunter2");
  expect(shown).toContain("+  k19999: hmac-sha256:");
});

test("an alias to a value of a Secret ended the plan; one that brings its values in showed them", () => {
  const shownOf = (text: string): string =>
    unifiedDiff("/var/lib/k0s/manifests/a/a.yaml", undefined, `apiVersion: v1\nkind: Secret\n${text}`, "key");
  for (const text of [
    "data: {a: &x aHVudGVyMg==}\nmetadata: {annotations: {c: *x}}\n",
    "metadata: {annotations: {c: &x aHVudGVyMg==}}\ndata: {a: *x}\n",
    "x-values: &s {a: aHVudGVyMg==}\nstringData: *s\n",
  ]) {
    expect(shownOf(text)).not.toContain("aHVudGVyMg");
    expect(shownOf(text)).toContain("hmac-sha256:");
  }
});
