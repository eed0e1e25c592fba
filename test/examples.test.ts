/** Every document of docs/examples and of the guides' folder is what it says it is. A new one is covered by being there. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import type { Command, CommandIo } from "../kit/command.ts";
import { diffCommand } from "../supervisor/diff.main.ts";
import { validateCommand } from "../supervisor/offline.main.ts";
import { renderCommand } from "../supervisor/render.main.ts";
import { NOT_IN_RELEASE } from "../provision/storage.ts";
import { examplesFolder, readExamples } from "./support/examples.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const examples = readExamples();
const names = examples.map(({ name }) => name);

async function run(command: Command, argv: readonly string[]): Promise<{ status: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const io: CommandIo = {
    out: (text) => (out += text),
    err: (text) => (err += text),
    readStdin: () => Promise.resolve(""),
    env: {},
    isTerminal: false,
    columns: 80,
    signal: new AbortController().signal,
  };
  return { status: await command(argv, io), out, err };
}

describe("docs/examples", () => {
  test("there are enough, from a few lines to a whole site, each with a situation of its own", () => {
    expect(names.length).toBeGreaterThanOrEqual(18);
    const situations = examples.map(({ situation }) => situation);
    expect(new Set(situations).size).toBe(names.length);
    expect(situations.filter((text) => text.length < 30 || text.length > 130)).toEqual([]);
    expect(names.filter((name) => !/^\d\d-[a-z-]+\.yaml$/.test(name))).toEqual([]);
  });

  test("every block of the schema, and every role, is in one of them", () => {
    const used = new Set(examples.flatMap(({ parsed }) => Object.keys(parsed.raw as object)));
    for (const block of ["cluster", "network", "join", "node", "addons", "manifests", "ha", "upgrades", "backup"]) {
      expect(used).toContain(block);
    }
    for (const block of ["raid", "luks", "disks", "zfs", "wireguard", "api", "k0s", "install"])
      expect(used).toContain(block);
    const roles = new Set(examples.map(({ parsed }) => parsed.document?.role));
    expect(roles).toEqual(new Set(["single", "controller", "controller+worker", "worker", undefined]));
  });

  test.each(names)("%s is valid, and all that is said is what this release does not do yet", async (name) => {
    const { status, out } = await run(validateCommand, ["--output", "json", join(examplesFolder, name)]);
    const [said] = JSON.parse(out) as [{ valid: boolean; problems: { code: string }[] }];
    expect(said).toMatchObject({ valid: true, problems: said.problems.map(() => ({ code: "not-yet" })) });
    expect(status).toBe(0);
  });

  test.each(names)("%s renders, without a warning and without a secret", async (name) => {
    const argv = ["--output", "json", "--address", "192.0.2.11", join(examplesFolder, name)];
    const { status, out, err } = await run(renderCommand, argv);
    const warnings = err.split("\n").filter((line) => /: (?:warning|error): /.test(line));
    expect({ status, warnings: warnings.filter((line) => !line.endsWith(": this release makes no backups")) }).toEqual({
      status: 0,
      warnings: [],
    });
    const { files, units } = JSON.parse(out) as { files: Record<string, { content: string }>; units: string[] };
    expect(Object.keys(files)).toContain("/etc/hostname");
    const { document } = examples.find((example) => example.name === name)?.parsed ?? {};
    const hasK0s = units.some((unit) => /^k0s(?:controller|worker)\.service$/.test(unit));
    expect(hasK0s).toBe(document?.role !== undefined);
    const blocks = NOT_IN_RELEASE.filter((kind) => (document?.[kind] ?? []).length > 0);
    const mounts = [...(document?.disks ?? []), ...(document?.raid ?? []), ...(document?.luks ?? [])].filter(
      (spec) => spec.mountPoint !== undefined,
    );
    if (blocks.length === 0) expect(units.filter((unit) => unit.endsWith(".mount")).length).toBe(mounts.length);
  });

  test.each(names)("%s is unchanged to itself", async (name) => {
    const file = join(examplesFolder, name);
    const { status, out } = await run(diffCommand, ["--output", "json", file, file]);
    expect(JSON.parse(out)).toEqual({ result: "unchanged", fields: [], removed: [], restarts: [] });
    expect(status).toBe(0);
  });

  test.each(examples.map(({ name, text }) => [name, text] as const))("%s fits a screen of 120 columns", (_, text) => {
    expect(text.split("\n").filter((line) => Bun.stringWidth(line) > 120 || /\s$|\t/.test(line))).toEqual([]);
  });

  test("the controllers of one cluster say the same of it", () => {
    const [first, second] = ["04-first-controller.yaml", "05-joining-controller.yaml"].map(
      (name) => examples.find((example) => example.name === name)?.parsed.document,
    );
    for (const block of ["role", "cluster", "network", "ha", "addons", "k0s"] as const) {
      expect([block, second?.[block]]).toEqual([block, first?.[block]]);
    }
    expect([first?.join, second?.join]).not.toEqual([undefined, undefined]);
  });
});
