/**
 * `bun test/fuzz/documents.main.ts FOLDER RUNS SEED`: the fuzz itself, in a process of its own that can be killed. Before
 * each document it puts it into FOLDER, so that a document that never ends, or ends the process, can be shown.
 */
import fc from "fast-check";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseDocument } from "../../config/load.ts";
import { secretFields } from "../../config/secrets.ts";
import { mutate } from "./mutations.ts";
import { checkAll, NOW_MS } from "./properties.ts";
import { pick, type Draw } from "./secrets.ts";
import { slippedDocument, type FuzzDocument } from "./slips.ts";

const MOST_MS = 1000;
const repository = join(import.meta.dir, "../..");

interface Base {
  readonly text: string;
  readonly secrets: readonly string[];
}

function readBases(): readonly Base[] {
  const folder = join(repository, "docs/examples");
  const examples = readdirSync(folder)
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => readFileSync(join(folder, name), "utf8"));
  const file = join(repository, "../shared/cases/config.jsonl");
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
  const cases = lines.map((line) => (JSON.parse(line) as { readonly document: string }).document);
  return [...examples, ...examples, ...cases].map((text) => {
    const { document } = parseDocument(text, { nowMs: NOW_MS });
    const fields = document === undefined ? [] : secretFields(document);
    const secrets = fields.map(({ inline }) => inline?.reveal() ?? "").filter(({ length }) => length >= 6);
    return { text, secrets };
  });
}

function draw(bases: readonly Base[], next: Draw): FuzzDocument {
  const kind = next(3);
  if (kind < 2) return slippedDocument(next);
  const { text, secrets } = kind === 2 ? pick(next, bases) : slippedDocument(next);
  return { text: mutate(next, typeof text === "string" ? text : new TextDecoder().decode(text)), secrets };
}

const show = (text: string | Uint8Array): string =>
  typeof text === "string" ? JSON.stringify(text) : `bytes ${Buffer.from(text).toString("base64")}`;

const natural = (max: number): fc.Arbitrary<number> => fc.nat(max);

async function main(folder: string, numRuns: number, seed: number): Promise<void> {
  const bases = readBases();
  const current = join(folder, "document");
  const total = { documents: 0, valid: 0, slowestMs: 0 };
  const property = fc.asyncProperty(fc.gen(), async (gen) => {
    const document = draw(bases, (max) => gen(natural, Math.max(0, max)));
    writeFileSync(current, document.text);
    const isValid = await measured(document);
    total.documents++;
    if (isValid) total.valid++;
  });
  async function measured(document: FuzzDocument): Promise<boolean> {
    const began = performance.now();
    try {
      const isValid = await checkAll(document);
      const tookMs = performance.now() - began;
      total.slowestMs = Math.max(total.slowestMs, tookMs);
      if (tookMs <= MOST_MS) return isValid;
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.stack : String(error)}\ndocument: ${show(document.text)}`);
    }
    // Once more: a pause of the machine is no fault of the document.
    const before = process.cpuUsage();
    const isValid = await checkAll(document);
    const tookMs = process.cpuUsage(before).user / 1000;
    if (tookMs > MOST_MS) throw new Error(`it took ${Math.round(tookMs)} ms\ndocument: ${show(document.text)}`);
    return isValid;
  }
  await fc.assert(property, { numRuns, seed });
  writeFileSync(join(folder, "total"), JSON.stringify(total));
}

const [folder = "", runs = "0", seed = "0"] = process.argv.slice(2);
await main(folder, Number(runs), Number(seed));
