/** The API and bootstrap share one database. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { nodePaths } from "../kit/paths.ts";
import { openState } from "./open.ts";
import { openDatabase } from "./sqlite.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

let folder = "";
beforeAll(async () => {
  folder = await fs.mkdtemp(join(tmpdir(), "corium-two-"));
});
afterAll(() => fs.rm(folder, { recursive: true, force: true }));

const child = (body: string, stateDir: string) =>
  Bun.spawn(
    [
      "bun",
      "-e",
      `import { openState } from "${join(import.meta.dir, "open.ts")}";
       import { nodePaths } from "${join(import.meta.dir, "../kit/paths.ts")}";
       const opened = openState(nodePaths(${JSON.stringify(stateDir)}));
       if (!opened.ok) throw new Error(opened.error.message);
       const state = opened.value;
       ${body}`,
    ],
    { stdout: "pipe", stderr: "pipe" },
  );

test("B145: two processes that open and write at once neither lose an entry nor run two operations", async () => {
  const stateDir = join(folder, "both");
  const body = `
    for (let at = 0; at < 60; at += 1) {
      const begun = state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: at });
      if (begun.ok) {
        state.events.add({ atMs: at, kind: "begin", severity: "info", message: begun.value.id });
        await new Promise((go) => setImmediate(go));
        state.events.add({ atMs: at, kind: "end", severity: "info", message: begun.value.id });
        state.operations.end(begun.value.id, { phase: "succeeded" }, at);
      } else state.events.add({ atMs: at, kind: "busy", severity: "info", message: begun.error.running.id });
    }`;
  const children = [child(body, stateDir), child(body, stateDir)];
  for (const one of children) expect([await one.exited, await new Response(one.stderr).text()]).toEqual([0, ""]);

  const state = openState(nodePaths(stateDir));
  if (!state.ok) throw new Error(state.error.message);
  const events = state.value.events.last(10_000);
  expect(events.filter(({ kind }) => kind !== "end")).toHaveLength(120);
  let inside = "";
  for (const { kind, message } of events) {
    if (kind === "begin") {
      expect(inside).toBe("");
      inside = message;
    } else if (kind === "end") {
      expect(inside).toBe(message);
      inside = "";
    }
  }
  state.value.close();
}, 30_000);

test("B143, B144: a writer killed at any moment leaves a sound database with every acknowledged entry", async () => {
  const stateDir = join(folder, "killed");
  let acknowledged = 0;
  for (let round = 0; round < 8; round += 1) {
    const writer = child(
      `for (let at = 0; ; at += 1) {
         state.events.add({ atMs: at, kind: "k", severity: "info", message: "x".repeat(500) });
         process.stdout.write(".");
       }`,
      stateDir,
    );
    const reader = writer.stdout.getReader();
    const first = await reader.read();
    acknowledged += first.value?.length ?? 0;
    await Bun.sleep(5 + round * 7);
    writer.kill("SIGKILL");
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) acknowledged += chunk.value.length;
    await writer.exited;
  }
  const database = openDatabase(nodePaths(stateDir).database);
  expect(database.pragma("integrity_check", { simple: true })).toBe("ok");
  const { count } = database.prepare<[], { count: number }>("SELECT count(*) AS count FROM events").get() ?? {
    count: 0,
  };
  expect(acknowledged).toBeGreaterThan(8);
  expect(count).toBeGreaterThanOrEqual(acknowledged);
  database.close();
}, 30_000);
