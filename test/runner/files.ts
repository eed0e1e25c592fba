/** Which test files there are, of which class, and how long each may take. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export type TestClass = "fast" | "loop" | "vm";

export interface TestFile {
  /** Relative to the repository. */
  readonly path: string;
  readonly kind: TestClass;
  readonly budgetSeconds: number;
  /** Boots the image, so it must be built before. */
  readonly needsImage: boolean;
  /** Goes after the others, and is left out where these took so long that the run would not end in time. */
  readonly isLast: boolean;
}

const DEFAULT_BUDGET: Readonly<Record<TestClass, number>> = { fast: 240, loop: 300, vm: 300 };

export function classOf(path: string): TestClass {
  if (path.endsWith(".vm.test.ts")) return "vm";
  return path.endsWith(".loop.test.ts") ? "loop" : "fast";
}

/** `// budget: 180 s`, near the top of the file. */
export function budgetOf(text: string, kind: TestClass): number {
  const head = text.split("\n").slice(0, 12).join("\n");
  const declared = /budget: (\d+) s/.exec(head)?.[1];
  return declared === undefined ? DEFAULT_BUDGET[kind] : Number(declared);
}

/** `// budget: 900 s, last`. */
export const isLast = (text: string): boolean => /^\/\/ budget: \d+ s, last$/m.test(text);

const ORDER: readonly TestClass[] = ["fast", "loop", "vm"];

/** Long ones, that only `--nightly` runs. */
const NIGHTLY = "test/nightly/";

export function findTestFiles(repository: string, isNightly = false): readonly TestFile[] {
  const paths = [...new Bun.Glob("**/*.test.ts").scanSync({ cwd: repository, onlyFiles: true })]
    .filter((path) => !/(?:^|\/)(?:node_modules|out)\//.test(path))
    .filter((path) => isNightly || !path.startsWith(NIGHTLY))
    .toSorted();
  const files = paths.map((path): TestFile => {
    const kind = classOf(path);
    const text = readFileSync(join(repository, path), "utf8");
    const needsImage = text.includes("harness/image.ts");
    return { path, kind, budgetSeconds: budgetOf(text, kind), needsImage, isLast: isLast(text) };
  });
  const place = (file: TestFile): number => ORDER.indexOf(file.kind) + (file.isLast ? 0.5 : 0);
  return files.toSorted((a, b) => place(a) - place(b));
}
