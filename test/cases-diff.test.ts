/** All of ../shared/cases/diff.jsonl, through `corium diff` itself. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CommandIo } from "../kit/command.ts";
import { diffCommand } from "../supervisor/diff.main.ts";
import { type DiffCase, readDiffCases } from "./support/diff-cases.ts";

const cases = readDiffCases();

if (cases === undefined) test.skip("diff cases [needs ../shared]", () => {});
else {
  const folder = mkdtempSync(join(tmpdir(), "corium-diff-"));
  const passed: string[] = [];
  afterAll(() => rmSync(folder, { recursive: true }));
  for (const one of cases) {
    test(`diff: ${one.name}`, async () => {
      const [baseline, proposal] = [join(folder, "baseline.yaml"), join(folder, "proposal.yaml")];
      writeFileSync(baseline, one.baseline);
      writeFileSync(proposal, one.proposal);
      const said = { out: "", err: "" };
      const io: CommandIo = {
        out: (text) => void (said.out += text),
        err: (text) => void (said.err += text),
        readStdin: async () => "",
        env: {},
        isTerminal: false,
        columns: 80,
        signal: new AbortController().signal,
      };
      const exit = await diffCommand(["--output", "json", baseline, proposal], io);
      expect(said.out === "" ? said.err : "").toBe("");
      const diff = JSON.parse(said.out) as DiffCase & { readonly removed: readonly { readonly name: string }[] };
      const { result, restarts } = diff;
      const fields = diff.fields.map(({ path, class: fieldClass }) => ({ path, class: fieldClass }));
      const removed = (diff.removed as readonly { readonly name: string }[]).map(({ name }) => name);
      const wanted = { result: one.result, fields: one.fields, removed: one.removed, restarts: one.restarts };
      expect({ result, fields, removed, restarts } as object).toEqual(wanted);
      expect(exit).toBe(one.exit);
      passed.push(one.name);
    });
  }
  test("diff cases: the count", () => {
    process.stderr.write(`diff cases: ${passed.length} of ${cases.length} pass\n`);
    expect(passed.length).toBe(cases.length);
  });
}
