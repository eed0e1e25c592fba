import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { escapePath, escapeUnit } from "./escape.ts";
import { renderUnit } from "./render.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

describe("escapePath", () => {
  test("mount points of a document", () => {
    expect(escapePath("/var/lib/k0s")).toBe("var-lib-k0s");
    expect(escapePath("/srv/my-data")).toBe("srv-my\\x2ddata");
    expect(escapePath("/srv/a b")).toBe("srv-a\\x20b");
    expect(escapePath("/.hidden")).toBe("\\x2ehidden");
    expect(escapePath("/")).toBe("-");
    expect(escapePath("/srv/ü")).toBe("srv-\\xc3\\xbc");
  });

  test("agrees with the real tool", () => {
    const tool = Bun.which("systemd-escape");
    if (tool === null) {
      process.stderr.write("skipped: systemd-escape is not on this machine\n");
      return;
    }
    const segment = fc
      .string({ minLength: 1, maxLength: 12 })
      .filter((text) => !/[/\0]/.test(text) && text !== "." && text !== "..");
    const paths = fc.sample(fc.array(segment, { minLength: 1, maxLength: 4 }), { numRuns: 200, seed: 7 });
    const texts = paths.map((parts) => `/${parts.join("/")}`);
    const real = (args: readonly string[]): string[] => {
      const result = Bun.spawnSync([tool, ...args]);
      return result.stdout.toString().replace(/\n$/, "").split(" ");
    };
    expect(texts.map(escapePath)).toEqual(real(["--path", "--", ...texts]));
    const names = texts.map((text) => text.slice(1));
    expect(names.map(escapeUnit)).toEqual(real(["--", ...names]));
  });
});

test("renderUnit keeps the order given and leaves out empty sections", () => {
  expect(
    renderUnit("Written by corium.", [
      ["Unit", [["Description", "x"]]],
      ["Service", []],
      ["Install", [["WantedBy", ["a.target", "b.target"]]]],
    ]),
  ).toBe("# Written by corium.\n\n[Unit]\nDescription=x\n\n[Install]\nWantedBy=a.target\nWantedBy=b.target\n");
});
