import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realFiles } from "./files.ts";
import { watchPaths } from "./watch.ts";

/** For what hangs: an event that never comes. */
setDefaultTimeout(60_000);

const root = mkdtempSync(join(tmpdir(), "corium-watch-"));
afterAll(() => rmSync(root, { recursive: true }));

/** Until each act was told of, one after the other. */
async function tellsOf(path: string, acts: readonly (() => unknown)[]): Promise<number> {
  let told: (() => void) | undefined;
  const watching = watchPaths([path], () => told?.());
  for (const act of acts) {
    const next = new Promise<void>((resolve) => {
      told = resolve;
    });
    await act();
    await next;
    // Further events of the same act are not the next one's.
    await Bun.sleep(50);
  }
  watching.close();
  return acts.length;
}

test("a file is written in place, replaced, removed, and there again", async () => {
  const path = join(root, "a/config.yaml");
  mkdirSync(join(root, "a"));
  writeFileSync(path, "1");
  const told = await tellsOf(path, [
    () => writeFileSync(path, "2"),
    () => realFiles().write(path, "3", { mode: 0o600 }),
    () => rmSync(path),
    () => writeFileSync(path, "4"),
  ]);
  expect(told).toBe(4);
});

test("a folder on the way comes, is moved away, and comes again", async () => {
  const path = join(root, "b/stack/site.yaml");
  const make = (): void => {
    mkdirSync(join(root, "b/stack"), { recursive: true });
    writeFileSync(path, "x");
  };
  const told = await tellsOf(path, [
    make,
    () => writeFileSync(path, "y"),
    () => renameSync(join(root, "b"), join(root, "elsewhere")),
    make,
    () => writeFileSync(path, "z"),
  ]);
  expect(told).toBe(5);
});

test("a secret behind links, as agents lay them out: what they lead to was changed, and nobody was told", async () => {
  const folder = join(root, "d");
  for (const each of ["1", "2", "elsewhere"]) mkdirSync(join(folder, each), { recursive: true });
  for (const each of ["1", "2", "elsewhere"]) writeFileSync(join(folder, each, "key"), each);
  symlinkSync("1", join(folder, "..data"));
  const path = join(folder, "key");
  symlinkSync("./..data/../..data/key", path);
  const replace = (target: string, link: string): void => {
    symlinkSync(target, `${link}.new`);
    renameSync(`${link}.new`, link);
  };
  const told = await tellsOf(path, [
    () => writeFileSync(join(folder, "1/key"), "x"),
    () => replace("2", join(folder, "..data")),
    () => writeFileSync(join(folder, "2/key"), "y"),
    () => replace(join(folder, "elsewhere/key"), path),
    () => writeFileSync(join(folder, "elsewhere/key"), "z"),
  ]);
  expect(told).toBe(5);
});

test("links that lead to each other end the way, and the file in their place is seen", async () => {
  const path = join(root, "loop");
  symlinkSync("loop2", path);
  symlinkSync("loop", join(root, "loop2"));
  const told = await tellsOf(path, [() => realFiles().write(path, "1", { mode: 0o600 })]);
  expect(told).toBe(1);
});

test("what is beside it is nobody's business, and nothing is told after the end", async () => {
  const path = join(root, "c/file");
  mkdirSync(join(root, "c"));
  let count = 0;
  const watching = watchPaths([path], () => (count += 1));
  writeFileSync(join(root, "c/other"), "");
  // Told in order: once the file's own event is there, the other one is past.
  const own = new Promise<void>((resolve) => {
    const second = watchPaths([path], () => {
      second.close();
      resolve();
    });
  });
  expect(count).toBe(0);
  writeFileSync(path, "");
  await own;
  expect(count).toBeGreaterThan(0);
  watching.close();
  const before = count;
  const later = new Promise<void>((resolve) => {
    const third = watchPaths([path], () => {
      third.close();
      resolve();
    });
  });
  writeFileSync(path, "again");
  await later;
  expect(count).toBe(before);
});
