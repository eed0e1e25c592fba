/** `bun run bench [NAME]…`: prints figures with machine and date. Nothing passes or fails here: docs/benchmarks.md. */
import { availableParallelism, release } from "node:os";
import type { Bench } from "./model.ts";
import { validate } from "./validate.ts";

const BENCHES: readonly Bench[] = [validate];

const say = (text: string): void => void process.stdout.write(`${text}\n`);

const names = process.argv.slice(2);
const unknown = names.find((name) => !BENCHES.some((bench) => bench.name === name));
if (unknown !== undefined) {
  process.stderr.write(`no bench '${unknown}'; there are: ${BENCHES.map(({ name }) => name).join(", ")}\n`);
  process.exit(2);
}
const date = new Date().toISOString().slice(0, 10);
say(`${date}, ${process.arch}, ${availableParallelism()} cores, Linux ${release().split("-")[0]}, Bun ${Bun.version}`);
for (const bench of BENCHES.filter(({ name }) => names.length === 0 || names.includes(name))) {
  say(`\n${bench.name}: ${bench.title}`);
  for (const line of await bench.run()) say(`  ${line}`);
}
