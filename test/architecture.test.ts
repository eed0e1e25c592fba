/**
 * Holds docs/architecture.md: the table of rooms there is read here, so that the page can't drift from the code.
 * Each rule is a function from sources to complaints and is first shown a planted fault that it must find.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";

const root = join(import.meta.dir, "..");

type Sources = ReadonlyMap<string, string>;

/** One level each for what the table doesn't rank: the contract both ends of the wire share, and the tests. */
const contract = "api/contract.ts";
const contractLevel = 3.5;

/** Siblings that may know each other, with the reason. */
const allowedEdges: readonly (readonly [from: string, to: string])[] = [
  // One code path renders, plans and executes, at first boot and at the tenth apply.
  ["apply", "provision"],
  // The installer writes to the disk what the image room lays out: one layout, one boot environment.
  ["provision", "iso"],
];

/** Beside host/, state/ and composition roots, these files touch the machine. */
const effectful = ["api/listener.ts", "console/tty.ts", "iso/build.ts", "iso/compile.ts", "iso/build/"];
const isEffectful = (file: string): boolean =>
  effectful.some((named) => file === named || (named.endsWith("/") && file.startsWith(named)));

/** Keys are made by WebCrypto, which has no seam for somebody else's randomness. */
const randomFiles = ["pki/driver.ts"];

/** Rooms that live at the edge, where asynchronous code is at home. */
const asyncRooms = ["host", "state", "api", "cctl", "console", "supervisor", "iso"];

/** Effectful files of the pure rooms under another name than `driver.ts`. */
const asyncFiles = ["provision/execute.ts", "provision/steps.ts"];

const isTest = (file: string): boolean => file.startsWith("test/") || file.endsWith(".test.ts");
const isRoot = (file: string): boolean => file === "main.ts" || file.endsWith(".main.ts");
const roomOf = (file: string): string => (file.includes("/") ? (file.split("/")[0] ?? "") : "main.ts");

/** Comments may name what code may not use. Good enough for formatted code: no `//` in our strings but in URLs. */
const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|[^:"'`\w])\/\/.*$/gm, "$1");

function importsOf(text: string): { readonly specifier: string; readonly isType: boolean }[] {
  const found: { specifier: string; isType: boolean }[] = [];
  const code = withoutComments(text);
  for (const match of code.matchAll(/^(?:import|export)\s+(type\s)?[^;"]*?from\s+"([^"]+)"/gm)) {
    found.push({ specifier: match[2] ?? "", isType: match[1] !== undefined });
  }
  for (const match of code.matchAll(/(?:^import\s+|\bimport\(\s*)"([^"]+)"/gm)) {
    found.push({ specifier: match[1] ?? "", isType: false });
  }
  return found;
}

function edgesOf(file: string, text: string): { readonly to: string; readonly isType: boolean }[] {
  return importsOf(text)
    .filter(({ specifier }) => specifier.startsWith("."))
    .map(({ specifier, isType }) => ({ to: join(file, "..", specifier), isType }));
}

function levelsOf(page: string): ReadonlyMap<string, number> {
  const levels = new Map<string, number>();
  for (const row of page.matchAll(/^\| (\d) +\| ([^|]+)\|/gm)) {
    for (const room of (row[2] ?? "").matchAll(/([a-z0-9]+)\//g)) levels.set(room[1] ?? "", Number(row[1]));
  }
  return levels;
}

function brokenImports(sources: Sources, levels: ReadonlyMap<string, number>): string[] {
  const complaints: string[] = [];
  const levelOf = (file: string): number | undefined =>
    file === contract ? contractLevel : file === "main.ts" ? 9 : levels.get(roomOf(file));
  for (const [file, text] of sources) {
    if (isTest(file)) continue;
    const from = levelOf(file);
    if (from === undefined) {
      complaints.push(`${file}: its folder is no room of docs/architecture.md`);
      continue;
    }
    for (const { to, isType } of edgesOf(file, text)) {
      if (to.startsWith("node_modules/") || to === "package.json") continue;
      const level = levelOf(to);
      const isOwnRoom = roomOf(to) === roomOf(file) && file !== contract;
      const isAllowed = allowedEdges.some(([a, b]) => a === roomOf(file) && b === roomOf(to));
      if (level === undefined || isTest(to)) complaints.push(`${file}: imports ${to}, which is outside the rooms`);
      else if (!isOwnRoom && !isAllowed && level >= from) complaints.push(`${file}: imports ${to}, not below it`);
      if (roomOf(to) === "host" && roomOf(file) !== "host" && !isRoot(file) && !isEffectful(file)) {
        complaints.push(`${file}: imports ${to}; only composition roots make a host, all else takes the port`);
      }
      const isRow = isType && to === "state/model.ts";
      if (from === 3 && roomOf(to) === "state" && !isRow) complaints.push(`${file}: a domain doesn't know the state`);
    }
  }
  return complaints;
}

function cycles(sources: Sources): string[] {
  const complaints: string[] = [];
  const state = new Map<string, "open" | "closed">();
  const visit = (file: string, trail: readonly string[]): void => {
    if (state.get(file) === "closed") return;
    if (state.get(file) === "open") {
      complaints.push([...trail.slice(trail.indexOf(file)), file].join(" → "));
      return;
    }
    state.set(file, "open");
    for (const { to } of edgesOf(file, sources.get(file) ?? "")) if (sources.has(to)) visit(to, [...trail, file]);
    state.set(file, "closed");
  };
  for (const file of sources.keys()) visit(file, []);
  return complaints;
}

const effects: readonly (readonly [RegExp, string])[] = [
  [/"node:fs(\/promises)?"/, "node:fs"],
  [/"node:child_process"/, "node:child_process"],
  [/\bBun\.(spawn|spawnSync|file|write|\$)/, "Bun.spawn, Bun.file, Bun.write"],
  [/"(bun|better-sqlite3|bun:(sqlite|ffi))[/"]/, "bun:ffi or SQLite"],
  [/\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b/, "the clock"],
  [/\bMath\.random\b|\brandomBytes\b|\brandomUUID\b|\bgetRandomValues\b/, "randomness"],
];

/** Everything in the sources that reaches outside without going through a port. */
function strayEffects(sources: Sources): string[] {
  const complaints: string[] = [];
  for (const [file, text] of sources) {
    const isEdge = isTest(file) || isRoot(file) || isEffectful(file) || /^(host|state)\//.test(file);
    const code = withoutComments(text);
    for (const [pattern, what] of isEdge ? [] : effects) {
      if (pattern.test(code) && !(what === "randomness" && randomFiles.includes(file)))
        complaints.push(`${file}: ${what}`);
    }
    if (file !== "main.ts" && !isTest(file) && !isEffectful(file) && /\bprocess\.(argv|env)\b/.test(code)) {
      complaints.push(`${file}: argv and environment are read by main.ts only`);
    }
  }
  return complaints;
}

function strayAsync(sources: Sources): string[] {
  return [...sources]
    .filter(([file]) => !isTest(file) && !isRoot(file) && !asyncRooms.includes(roomOf(file)))
    .filter(([file]) => !file.endsWith("/driver.ts") && !asyncFiles.includes(file))
    .filter(([, text]) => /\basync\b|\bawait\b/.test(withoutComments(text)))
    .map(([file]) => `${file}: asynchronous code belongs into driver.ts`);
}

function badNames(sources: Sources): string[] {
  const words = /(^|-)(utils?|helpers?|managers?|common|misc)(-|$)/;
  return [...sources.keys()].flatMap((file) => {
    const name = (file.split("/").at(-1) ?? "").replace(/\.ts$/, "");
    if (name === "index") return [`${file}: a barrel`];
    if (!/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*$/.test(name)) return [`${file}: not kebab-case`];
    return words.test(name) ? [`${file}: says nothing about its job`] : [];
  });
}

function defaultExports(sources: Sources): string[] {
  return [...sources]
    .filter(([, text]) => /^export default\b|\bas default\b/m.test(withoutComments(text)))
    .map(([file]) => `${file}: default export`);
}

const lineCounts = (sources: Sources): (readonly [string, number])[] =>
  [...sources].map(([file, text]) => [file, text.split("\n").length - 1] as const);

async function readSources(): Promise<Sources> {
  const sources = new Map<string, string>();
  for await (const file of new Bun.Glob("**/*.ts").scan({ cwd: root })) {
    if (file.startsWith("node_modules/") || file.startsWith("out/")) continue;
    sources.set(file, await Bun.file(join(root, file)).text());
  }
  return new Map([...sources].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const sources = await readSources();
const levels = levelsOf(await Bun.file(join(root, "docs/architecture.md")).text());
const planted = (entries: Record<string, string>): Sources => new Map(Object.entries(entries));

describe("architecture", () => {
  test("the table of rooms is read", () => {
    expect(levels.get("kit")).toBe(0);
    expect(levels.get("wireguard")).toBe(3);
    expect(levels.get("cctl")).toBe(7);
    expect(sources.size).toBeGreaterThan(15);
  });

  test("imports go down only, siblings do not know each other", () => {
    const faults = planted({
      "kit/a.ts": 'import type { X } from "../config/b.ts";\n',
      "raid/a.ts": 'import { x } from "../disks/b.ts";\n',
      "k0s/a.ts": 'import type { S } from "../state/open.ts";\nimport type { R } from "../state/model.ts";\n',
      "api/b.ts": 'import { readDisk } from "../host/files.ts";\n',
      "elsewhere/a.ts": "",
      "config/a.ts": 'import { x } from "../test/support/x.ts";\nimport { y } from "./y.ts";\n',
      "supervisor/status.ts": 'import type { N } from "../api/contract.ts";\nimport { x } from "../api/app.ts";\n',
      "raid/types.ts": 'import {\n  type X,\n  y,\n} from "../wireguard/plan.ts";\n',
      "api/contract.ts": 'import type { X } from "./app.ts";\n',
    });
    expect(brokenImports(faults, levels)).toHaveLength(9);
    expect(brokenImports(sources, levels)).toEqual([]);
  });

  test("no cycles", () => {
    const faults = planted({
      "config/a.ts": 'import { b } from "./b.ts";\n',
      "config/b.ts": 'export { c } from "./c.ts";\n',
      "config/c.ts": 'import { a } from "./a.ts";\n',
    });
    expect(cycles(faults)).toEqual(["config/a.ts → config/b.ts → config/c.ts → config/a.ts"]);
    expect(cycles(sources)).toEqual([]);
  });

  test("only the edges touch files, processes, clock, randomness, argv and environment", () => {
    const faults = planted({
      "raid/a.ts":
        'import { readFileSync } from "node:fs";\nconst at = Date.now();\n// Math.random is only named here\n',
      "k0s/driver.ts": 'Bun.spawn(["k0s"]);\nconst at = new Date();\n',
      "api/app.ts": "const secret = process.env.TOKEN; crypto.randomUUID();\n",
      "host/files.ts": 'import { readFileSync } from "node:fs";\n',
      "config/a.ts": "const at = new Date(nowMs);\n",
    });
    expect(strayEffects(faults).map((line) => line.split(":")[0])).toEqual([
      "raid/a.ts",
      "raid/a.ts",
      "k0s/driver.ts",
      "k0s/driver.ts",
      "api/app.ts",
      "api/app.ts",
    ]);
    expect(strayEffects(sources)).toEqual([]);
  });

  test("B142: one program with one SQLite opens the database, never a second engine beside it", () => {
    const engines = (of: Sources): readonly string[] =>
      [...of]
        .filter(
          ([file, text]) =>
            !isTest(file) &&
            !file.endsWith(".d.ts") &&
            /"(?:(?:bun|node):sqlite|better-sqlite3\/)|\bopenDatabase\(/.test(withoutComments(text)),
        )
        .map(([file]) => file);
    expect(engines(planted({ "cctl/a.ts": 'import { Database } from "bun:sqlite";\n' }))).toEqual(["cctl/a.ts"]);
    expect(engines(planted({ "cctl/b.ts": "const database = openDatabase(path);\n" }))).toEqual(["cctl/b.ts"]);
    expect(engines(sources)).toEqual(["state/erase.ts", "state/open.ts", "state/sqlite.ts"]);
  });

  test("pure rooms are synchronous but for their driver", () => {
    const faults = planted({
      "raid/plan.ts": "export async function plan() {}\n",
      "raid/driver.ts": "export async function run() {}\n",
      "raid/parse.ts": "/** never async */\n",
    });
    expect(strayAsync(faults)).toEqual(["raid/plan.ts: asynchronous code belongs into driver.ts"]);
    expect(strayAsync(sources)).toEqual([]);
  });

  test("files are kebab-case and named after their job; nothing is exported by default", () => {
    const names = ["kit/appError.ts", "kit/index.ts", "raid/utils.ts", "disks/disk-helper.ts", "k0s/serve.main.ts"];
    expect(badNames(planted(Object.fromEntries(names.map((name) => [name, ""]))))).toHaveLength(4);
    expect(badNames(sources)).toEqual([]);
    expect(defaultExports(planted({ "a.ts": "export default 1;\n" }))).toHaveLength(1);
    expect(defaultExports(sources)).toEqual([]);
  });

  test("files over 500 lines are split; those over 300 are listed", () => {
    expect(lineCounts(planted({ "a.ts": "1\n2\n" }))).toEqual([["a.ts", 2]]);
    const long = lineCounts(sources).filter(([, lines]) => lines > 300);
    for (const [file, lines] of long) process.stderr.write(`${file}: ${lines} lines, explain itself in review\n`);
    expect(long.filter(([, lines]) => lines > 500)).toEqual([]);
  });
});
