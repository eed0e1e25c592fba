import { describe, expect, test } from "bun:test";
import { parseArguments } from "./arguments.ts";

const specs = [
  { name: "output", short: "o", value: "FORMAT", help: "" },
  { name: "yes", short: "y", help: "" },
  { name: "file", value: "FILE", help: "" },
];

const parse = (...argv: string[]): unknown => {
  const parsed = parseArguments(argv, specs);
  return parsed.ok ? [parsed.value.positionals, Object.fromEntries(parsed.value.flags)] : parsed.error;
};

describe("parseArguments", () => {
  test("flags stand before or after positionals", () => {
    const wanted = [["apply", "n1"], { yes: "", file: "a.yaml" }];
    expect(parse("--yes", "apply", "--file", "a.yaml", "n1")).toEqual(wanted);
    expect(parse("apply", "n1", "--file=a.yaml", "-y")).toEqual(wanted);
  });

  test("-- ends the flags, - is a positional and a value", () => {
    expect(parse("-y", "--", "--file", "-y")).toEqual([["--file", "-y"], { yes: "" }]);
    expect(parse("apply", "-", "--file", "-")).toEqual([["apply", "-"], { file: "-" }]);
  });

  test("wrong flags are named", () => {
    expect(parse("--fiel", "a")).toBe("no such flag: --fiel");
    expect(parse("--file")).toBe("--file needs FILE");
    expect(parse("--file", "--yes")).toBe("--file needs FILE");
    expect(parse("--yes=no")).toBe("--yes takes no value");
    expect(parse("-o", "json", "--output", "text")).toBe("--output is given twice");
  });
});
