import { afterAll, beforeAll, expect, test } from "bun:test";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { realFiles } from "./files.ts";

let folder = "";
const files = realFiles();

beforeAll(async () => {
  folder = await fs.mkdtemp(join(tmpdir(), "corium-files-"));
});
afterAll(() => fs.rm(folder, { recursive: true }));

test("a written file has content and mode, its folders are made, nothing temporary stays", async () => {
  const path = join(folder, "a/b/c.txt");
  expect(await files.write(path, "one", { mode: 0o640 })).toEqual({ ok: true, value: undefined });
  expect(await files.write(path, "two", { mode: 0o604 })).toEqual({ ok: true, value: undefined });
  expect(await files.readText(path)).toEqual({ ok: true, value: "two" });
  const stat = await files.stat(path);
  expect(stat.ok && stat.value).toMatchObject({ kind: "file", mode: 0o604, sizeBytes: 3 });
  expect(await fs.readdir(join(folder, "a/b"))).toEqual(["c.txt"]);
});

test("a write that fails leaves the old file whole and no litter", async () => {
  await files.write(join(folder, "old"), "old", { mode: 0o600 });
  const refused = await files.write(join(folder, "old"), "new", {
    mode: 0o600,
    owner: { user: "nobody-x", group: "x" },
  });
  if (process.getuid?.() === 0) expect(refused.ok).toBe(false);
  expect(await fs.readdir(folder)).not.toContainEqual(expect.stringContaining("corium-tmp"));
  expect(await files.readText(join(folder, "old"))).toEqual({ ok: true, value: "old" });
});

test("of several programs that make the same new file exactly one does, and what is there stays", async () => {
  const path = join(folder, "new/key");
  const made = await Promise.all(["a", "b", "c"].map((text) => files.write(path, text, { mode: 0o600, isNew: true })));
  expect(made.filter(({ ok }) => ok)).toHaveLength(1);
  expect(made.flatMap((result) => (result.ok ? [] : [result.error.code]))).toEqual(["EEXIST", "EEXIST"]);
  expect(await files.readText(path)).toEqual({
    ok: true,
    value: ["a", "b", "c"][made.findIndex(({ ok }) => ok)] ?? "",
  });
  expect(await fs.readdir(join(folder, "new"))).toEqual(["key"]);
});

test("a pipe in place of a file made every read of it wait for ever: status and apply hung", async () => {
  const path = join(folder, "pipe");
  expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
  expect(await files.readText(path)).toMatchObject({ ok: false, error: { code: "EPIPE" } });
  expect(await files.read(path, { maxBytes: 10 })).toMatchObject({
    ok: false,
    error: { message: `${path} is a pipe, not a file` },
  });
  // What a person's shell makes of `--file <(…)`.
  const given = realFiles({ takesPipes: true }).readText(path);
  await fs.writeFile(path, "role: single\n");
  expect(await given).toEqual({ ok: true, value: "role: single\n" });
});

test("absence, caps and folders are told apart by code", async () => {
  const codeOf = async (result: Promise<{ ok: boolean }>): Promise<unknown> => {
    const settled = (await result) as { ok: boolean; error?: { code: string } };
    return settled.ok ? "ok" : settled.error?.code;
  };
  expect(await codeOf(files.readText(join(folder, "none")))).toBe("ENOENT");
  expect(await codeOf(files.list(join(folder, "none")))).toBe("ENOENT");
  expect(await codeOf(files.readText(folder))).toBe("EISDIR");
  expect(await codeOf(files.read("/proc/self/status", { maxBytes: 10 }))).toBe("EFBIG");
  expect(await codeOf(files.readText("/proc/self/status"))).toBe("ok");
  expect(await codeOf(files.remove(join(folder, "none")))).toBe("ok");
  expect(await files.stat(join(folder, "old/below"))).toEqual({ ok: true, value: null });
});

test("links and renames", async () => {
  const path = join(folder, "link");
  await files.symlink("/dev/null", path);
  await files.symlink("old", path);
  expect(await files.readlink(path)).toEqual({ ok: true, value: "old" });
  expect((await files.realpath(path)).ok).toBe(true);
  const stat = await files.stat(path, { noFollow: true });
  expect(stat.ok && stat.value?.kind).toBe("symlink");
  await files.rename(path, join(folder, "moved/link"));
  expect(await files.list(join(folder, "moved"))).toEqual({ ok: true, value: ["link"] });
  await files.remove(join(folder, "moved"), { recursive: true });
  expect(await files.stat(join(folder, "moved"))).toEqual({ ok: true, value: null });
});
