/**
 * Random documents, whole ones and broken ones, through everything that reads a document. budget: 600 s
 *
 * CORIUM_FUZZ_RUNS and CORIUM_FUZZ_SEED set how many and which; the run is in a process of its own, since nothing else
 * ends a document that never does.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { schemaFields } from "../../config/schema/walk.ts";
import { documentSchema } from "../../config/schema/root.ts";
import { parseDocument } from "../../config/load.ts";
import { growDocument } from "./grammar.ts";
import { NOW_MS } from "./properties.ts";
import { leakIn, type Draw } from "./secrets.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

/** The same documents each time, so that a change fails for what it changed; other seeds are for long runs. */
const SEED_OF_CI = 1_142_617_716;
const RUNS = Number(process.env["CORIUM_FUZZ_RUNS"] ?? 20_000);
const SEED = Number(process.env["CORIUM_FUZZ_SEED"] ?? SEED_OF_CI);
/** Without a sign of life. A slow document is judged by the run itself, by its time on the processor. */
const HANG_MS = 60_000;

/** Repeatable: Lehmer's generator. */
function drawFrom(seed: number): Draw {
  let state = seed;
  return (max) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % (max + 1);
  };
}

test("what the grammar makes is valid, and every field of the schema is in it", () => {
  const draw = drawFrom(7);
  const seen = new Set<string>();
  const collect = (value: unknown, pattern: string): void => {
    if (pattern !== "") seen.add(pattern);
    if (Array.isArray(value)) for (const item of value) collect(item, `${pattern}[]`);
    else if (typeof value === "object" && value !== null) {
      for (const [key, item] of Object.entries(value)) collect(item, pattern === "" ? key : `${pattern}.${key}`);
    }
  };
  let hasSecrets = 0;
  for (let count = 0; count < 600; count++) {
    const { tree, secrets } = growDocument(draw);
    const { findings } = parseDocument(JSON.stringify(tree), { nowMs: NOW_MS });
    expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
    collect(tree, "");
    if (secrets.length > 0) hasSecrets++;
  }
  const fields = schemaFields(documentSchema).map(({ pattern }) => pattern);
  expect(fields.filter((field) => !seen.has(field))).toEqual([]);
  expect(hasSecrets).toBeGreaterThan(100);
});

test("a part of a secret is found, escaped or over two lines", () => {
  const secret = '7QXZ"J39\nQX\\ZJé7Q';
  for (const output of [JSON.stringify({ a: secret }), JSON.stringify(JSON.stringify(secret)), "a: 7QX\n  ZJ39"]) {
    expect(leakIn(output, [secret])).toBeDefined();
  }
  expect(leakIn("7QXZJ", [secret])).toBeUndefined();
});

/** The document that the run was at, as it left it. */
const lastDocument = (folder: string): string => {
  const file = join(folder, "document");
  return existsSync(file) ? JSON.stringify(readFileSync(file, "utf8")) : "none yet";
};

test(`${RUNS} documents: no crash, no hang, no secret shown; what is valid renders, is recorded as it is, equals itself`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "corium-fuzz-"));
  const program = join(import.meta.dir, "documents.main.ts");
  const child = Bun.spawn([process.execPath, program, folder, String(RUNS), String(SEED)], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  let isHung = false;
  const started = Date.now();
  const watch = setInterval(() => {
    const file = join(folder, "document");
    const alive = existsSync(file) ? statSync(file).mtimeMs : started;
    isHung = Date.now() - alive > HANG_MS;
    if (isHung) child.kill("SIGKILL");
  }, 500);
  const said = await child.stderr.text();
  await child.exited;
  clearInterval(watch);
  const about = `CORIUM_FUZZ_SEED=${SEED} CORIUM_FUZZ_RUNS=${RUNS}`;
  if (isHung) throw new Error(`${about}: it hangs over ${lastDocument(folder)}`);
  if (child.exitCode !== 0) throw new Error(`${about}: ${said}\nlast document: ${lastDocument(folder)}`);
  const total = JSON.parse(readFileSync(join(folder, "total"), "utf8")) as Record<string, number>;
  process.stderr.write(`fuzz of documents: ${JSON.stringify(total)}, ${about}\n`);
  expect(total["documents"]).toBe(RUNS);
  expect(total["valid"]).toBeGreaterThan(RUNS / 10);
  rmSync(folder, { recursive: true, force: true });
}, 3_600_000);
