import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { RULES } from "./all.ts";

test("each file of rules has its cases beside it", () => {
  const files = readdirSync(import.meta.dir);
  const rules = files.filter((file) => !file.endsWith(".test.ts") && !["all.ts", "rule.ts", "free.ts"].includes(file));
  expect(rules.filter((file) => !files.includes(file.replace(".ts", ".test.ts")))).toEqual([]);
  expect(rules.length).toBeGreaterThan(15);
});

test("each rule of the folder is in the list", async () => {
  const listed = new Set<unknown>(RULES);
  const missing: string[] = [];
  for (const file of readdirSync(import.meta.dir).filter(
    (name) => !/\.test\.ts$|^rule\.ts$|^free\.ts$|^all\.ts$/.test(name),
  )) {
    const module = (await import(`./${file}`)) as Readonly<Record<string, unknown>>;
    for (const [name, rule] of Object.entries(module)) if (!listed.has(rule)) missing.push(`${file}: ${name}`);
  }
  expect(missing).toEqual([]);
});
