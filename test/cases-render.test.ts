/** All of ../shared/cases/render.jsonl, through the same functions as `corium render`. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { parseDocument } from "../config/load.ts";
import { addressesToRecord } from "../k0s/addresses.ts";
import { clusterConfigViolations } from "../k0s/schema.ts";
import { renderNode } from "../provision/render.ts";

interface RenderCase {
  readonly name: string;
  readonly document: string;
  readonly hostname: string;
  readonly address: string | null;
  readonly k0sYaml: object | null;
  readonly argv: readonly string[];
}

const file = join(import.meta.dir, "../../shared/cases/render.jsonl");
const NOW = Date.UTC(2026, 5, 1);

/** An empty map equals an absent one; chart values are compared by what they say, in both versions of YAML. */
function normal(value: unknown, key?: string): unknown {
  if (key === "values" && typeof value === "string") {
    const [old, now] = [parse(value, { version: "1.1" }), parse(value, { version: "1.2" })] as unknown[];
    expect(old).toEqual(now);
    return now;
  }
  if (Array.isArray(value)) return value.map((item) => normal(item));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, item]) => [name, normal(item, name)] as const);
  const isEmpty = (item: unknown): boolean =>
    typeof item === "object" && item !== null && Object.keys(item).length === 0;
  return Object.fromEntries(entries.filter(([, item]) => !isEmpty(item)));
}

if (!existsSync(file)) test.skip("render cases [needs ../shared]", () => {});
else {
  const cases = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as RenderCase);
  const passed: string[] = [];
  for (const one of cases) {
    test(`render: ${one.name}`, () => {
      const { document, findings } = parseDocument(one.document, { nowMs: NOW });
      expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
      if (document === undefined) throw new Error("no document");
      const { hostname } = one;
      const addresses = addressesToRecord(document, one.address ?? undefined);
      const rendered = renderNode({ document, hostname, machineId: "0123", addresses });
      const text = rendered.files.find(({ path }) => path === "/etc/k0s/k0s.yaml")?.content;
      if (one.k0sYaml === null) expect(text).toBeUndefined();
      else {
        const [old, now] = [parse(text ?? "", { version: "1.1" }), parse(text ?? "", { version: "1.2" })] as unknown[];
        expect(old).toEqual(now);
        expect(normal(now)).toEqual(normal(one.k0sYaml));
        const filled = parse((text ?? "").replace(/<secret:[^>]+>/g, "xxxxxxxx")) as unknown;
        expect(clusterConfigViolations(filled)).toEqual([]);
      }
      expect(rendered.argv.map((argv) => argv.slice(argv.indexOf("install")))).toEqual([[...one.argv]]);
      passed.push(one.name);
    });
  }
  test("render cases: the count", () => {
    process.stderr.write(`render cases: ${passed.length} of ${cases.length} pass\n`);
    expect(passed.length).toBe(cases.length);
  });
}
