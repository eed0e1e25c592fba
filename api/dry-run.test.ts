import { expect, test } from "bun:test";
import { readDryRun } from "./dry-run.ts";

const read = (query: string) => readDryRun(new URLSearchParams(query));

test("a request is a plan only when it says so, and ?dryRun alone does", () => {
  const asked = ["", "other=1", "dryRun=false", "dryRun=true", "dryRun", "dryRun="].map((query) => read(query));
  expect(asked.map((each) => each.ok && each.value)).toEqual([false, false, false, true, true, true]);
  expect(asked.every(({ ok }) => ok)).toBe(true);
});

test("dryRun=yes is neither done nor planned: the refusal shows what was given and what is taken", async () => {
  const asked = read("dryRun=yes");
  if (asked.ok) throw new Error("it was taken");
  expect(asked.error.status).toBe(400);
  expect(await asked.error.json()).toEqual({
    error: 'dryRun is "yes", and takes true or false; nothing was done',
    reason: "invalid-query",
  });
});

test.each(["dryrun=true", "dry-run=true", "dry_run", "DRYRUN=1", "dryRun=false&dryRun=true", "dryRun&dryrun"])(
  "%s was asked to be a plan, and was carried out: refused",
  async (query) => {
    const asked = read(query);
    expect(asked.ok ? undefined : await asked.error.json()).toMatchObject({
      reason: "invalid-query",
      error: expect.stringContaining("nothing was done"),
    });
  },
);
