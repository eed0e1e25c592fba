import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { nodePaths } from "../kit/paths.ts";
import type { Paths } from "../kit/paths.ts";
import type { Requester } from "./model.ts";
import type { State } from "./open.ts";
import { openState, openWithoutBaseline } from "./open.ts";
import { openDatabase } from "./sqlite.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

let folder = "";
let paths: Paths;
const opened: State[] = [];

beforeEach(async () => {
  folder = await fs.mkdtemp(join(tmpdir(), "corium-state-"));
  paths = nodePaths(join(folder, "state"), join(folder, "run"));
});
afterEach(async () => {
  for (const state of opened.splice(0)) state.close();
  await fs.rm(folder, { recursive: true, force: true });
});

function open(): State {
  const state = openState(paths);
  if (!state.ok) throw new Error(state.error.message);
  opened.push(state.value);
  return state.value;
}
const refusal = (): string => {
  const state = openState(paths);
  if (state.ok) state.value.close();
  return state.ok ? "opened" : state.error.code;
};
const local: Requester = { kind: "local" };
const alice: Requester = {
  kind: "operator",
  name: "alice",
  role: "admin",
  fingerprint: "SHA256:x",
  address: "10.0.0.1",
};
const begin = (state: State, atMs = 1) =>
  state.operations.begin({ kind: "apply", requester: alice, version: "1.0.0", atMs });

function withBaseline(state: State): void {
  const document = state.documents.add({ text: "role: single\n", atMs: 5, requester: local, origin: "apply" });
  state.baseline.set({
    document,
    hostname: "n1",
    machineId: "abc",
    addresses: { nodeIp: "10.0.0.2" },
    k0sVersion: "v1.34.1+k0s.0",
    inputHash: "h",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: { "/etc/k0s/k0s.yaml": "00" },
    atMs: 7,
  });
}

test("the database is 0600 in a 0700 folder, WAL, and synchronous FULL", async () => {
  open().meta.set("installation", "x");
  expect((await fs.stat(paths.database)).mode & 0o777).toBe(0o600);
  expect((await fs.stat(`${paths.database}-wal`)).mode & 0o777).toBe(0o600);
  expect((await fs.stat(paths.stateDir)).mode & 0o777).toBe(0o700);
  const database = openDatabase(paths.database);
  expect(database.pragma("journal_mode", { simple: true })).toBe("wal");
  expect(database.pragma("synchronous", { simple: true })).toBe(2);
  database.close();
});

describe("operations", () => {
  test("an operation is what its entries add up to", () => {
    const { operations } = open();
    const begun = begin({ operations } as State, 10);
    if (!begun.ok) throw new Error("busy");
    const { id } = begun.value;
    operations.plan(id, [{ id: "a", title: "do a", state: "pending" }], 11, "hash");
    operations.step(id, { id: "a", title: "do a", state: "running" }, 12);
    operations.message(id, "waiting for a", 13);
    const before = operations.revision(id);
    operations.message(id, "waiting for a", 14);
    expect(operations.revision(id)).toBe(before);
    expect(operations.get(id)).toMatchObject({ phase: "running", message: "waiting for a", inputHash: "hash" });
    operations.step(id, { id: "a", title: "do a", state: "done" }, 15);
    expect(operations.end(id, { phase: "failed", failureReason: "no" }, 16)).toEqual({
      id,
      kind: "apply",
      phase: "failed",
      failureReason: "no",
      steps: [{ id: "a", title: "do a", state: "done", startedAtMs: 12, endedAtMs: 15 }],
      requester: alice,
      inputHash: "hash",
      version: "1.0.0",
      createdAtMs: 10,
      endedAtMs: 16,
    });
    expect(() => operations.end(id, { phase: "succeeded" }, 17)).toThrow();
  });

  test("one changing operation at a time, across connections; a failed one does not block the next", () => {
    const one = open();
    const two = open();
    const first = begin(one);
    const refused = begin(two);
    expect(!refused.ok && first.ok && refused.error.running.id === first.value.id).toBe(true);
    if (first.ok) one.operations.end(first.value.id, { phase: "failed", failureReason: "x" }, 2);
    expect(begin(two).ok).toBe(true);
    expect(two.operations.list()).toHaveLength(2);
  });

  test("what a dead process left running is abandoned, what a living one runs is not", async () => {
    const script = `
      import { openState } from "${join(import.meta.dir, "open.ts")}";
      const state = openState(${JSON.stringify(paths)}).value;
      state.operations.begin({ kind: "apply", requester: { kind: "local" }, version: "1", atMs: 1 });
      console.log("begun");
      await new Promise((done) => process.stdin.once("data", done));
      process.kill(process.pid, "SIGKILL");`;
    const child = Bun.spawn(["bun", "-e", script], { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    await child.stdout.getReader().read();
    const { operations } = open();
    expect(operations.running()).toBeDefined();
    expect(operations.abandoned()).toEqual([]);
    await child.stdin.write("\n");
    await child.stdin.flush();
    await child.exited;
    const [abandoned] = operations.abandoned();
    expect(abandoned?.phase).toBe("running");
    operations.adopt(abandoned?.id ?? "", 2);
    expect(operations.abandoned()).toEqual([]);
  });
});

test("entries can't be changed or deleted, by no connection", () => {
  open().events.add({ atMs: 1, kind: "k", severity: "info", message: "m" });
  const database = openDatabase(paths.database);
  expect(() => database.exec("UPDATE entries SET at_ms = 0")).toThrow("append-only");
  expect(() => database.exec("DELETE FROM entries")).toThrow("append-only");
  database.close();
});

test("events and audit are read oldest first, and after a sequence number", () => {
  const { events, audit } = open();
  const first = events.add({ atMs: 1, kind: "a", severity: "info", message: "one" });
  audit.add({ atMs: 2, requester: alice, route: "POST /v1/config", status: 200, outcome: "reconciled" });
  events.add({ atMs: 3, kind: "b", severity: "error", message: "two" });
  expect(events.last().map(({ message }) => message)).toEqual(["one", "two"]);
  expect(events.since(first.seq).map(({ message }) => message)).toEqual(["two"]);
  expect(audit.last()).toEqual([
    { seq: 2, atMs: 2, requester: alice, route: "POST /v1/config", status: 200, outcome: "reconciled" },
  ]);
});

test("the journal keeps an intent as it was opened, and opening it again replaces it", () => {
  const { journal } = open();
  const disks = [{ serial: "S1", sizeBytes: 10 }];
  const step = { kind: "raid:create", id: "raid:data:create", title: "t", destroys: disks };
  journal.open({ stepId: step.id, step, disks, openedAtMs: 1 });
  expect(journal.intents()).toEqual([{ stepId: step.id, step, disks, openedAtMs: 1 }]);
  journal.close(step.id, 2);
  journal.close(step.id, 3);
  expect(journal.intents()[0]?.closedAtMs).toBe(2);
  journal.open({ stepId: step.id, step, disks, openedAtMs: 4 });
  expect(journal.intents()).toEqual([{ stepId: step.id, step, disks, openedAtMs: 4 }]);
});

test("the last ten documents are kept, and the baseline's as long as it is one", () => {
  const state = open();
  withBaseline(state);
  for (let at = 0; at < 12; at += 1) {
    state.documents.add({ text: `n: ${at}`, atMs: at, requester: alice, origin: "apply" });
  }
  expect(state.documents.list()).toHaveLength(11);
  expect(state.documents.latest()?.text).toBe("n: 11");
  expect(state.baseline.get()).toMatchObject({
    hostname: "n1",
    document: { text: "role: single\n", requester: local },
  });
});

test("a claim is one way: the second is refused", () => {
  const state = open();
  const claim = { operatorCA: "PEM", fingerprint: "SHA256:a", atMs: 1, by: "enroll" } as const;
  expect(state.claim.record(claim).ok).toBe(true);
  const second = open().claim.record({ ...claim, fingerprint: "SHA256:b" });
  expect(!second.ok && second.error.code).toBe("claimed");
  expect(state.claim.get()).toEqual(claim);
  state.claim.revoke("CN=ops", "AB01", 1);
  expect(state.claim.isRevoked("CN=ops", "ab01")).toBe(true);
  expect(state.claim.isRevoked("CN=other", "ab01")).toBe(false);
});

test("owned storage by kind and name; the time floor only rises", () => {
  const { owned, meta } = open();
  owned.put({ kind: "raid", name: "data", uuid: "u", filesystemUuid: "f", disks: [{ wwn: "w", sizeBytes: 1 }] });
  owned.put({ kind: "raid", name: "data", uuid: "u2", disks: [] });
  expect(owned.list()).toEqual([{ kind: "raid", name: "data", uuid: "u2", disks: [] }]);
  owned.remove("raid", "data");
  expect(owned.list()).toEqual([]);
  meta.raiseTimeFloor(1000);
  meta.raiseTimeFloor(900);
  expect(meta.timeFloorMs()).toBe(1000);
  meta.raiseTimeFloor(20_000);
  expect(meta.timeFloorMs()).toBe(20_000);
});

test("B147: a copy is taken through the database, whole and readable by itself", async () => {
  const state = open();
  state.meta.set("installation", "x");
  const copy = join(folder, "copy.db");
  state.snapshotTo(copy);
  state.meta.set("installation", "y");
  const copied = openState({ database: copy, marker: join(folder, "none") });
  expect(copied.ok && copied.value.meta.get("installation")).toBe("x");
  if (copied.ok) copied.value.close();
});

test("a transaction is all or nothing", () => {
  const state = open();
  expect(() =>
    state.transaction(() => {
      state.meta.set("held", "1");
      throw new Error("no");
    }),
  ).toThrow("no");
  expect(state.meta.get("held")).toBeUndefined();
});

describe("marker and database (invariant 3)", () => {
  const mark = () => fs.mkdir(paths.stateDir, { recursive: true }).then(() => fs.writeFile(paths.marker, ""));

  test("a marker without its database is refused, and none is made", async () => {
    await mark();
    expect(refusal()).toBe("state-lost");
    expect(await fs.readdir(paths.stateDir)).toEqual(["bootstrapped"]);
    await fs.writeFile(paths.database, "");
    expect(refusal()).toBe("state-lost");
  });

  test("a marker beside a database without baseline is refused", async () => {
    open().close();
    opened.pop();
    await mark();
    expect(refusal()).toBe("no-baseline");
    // Whoever commands the node may name what it runs, on a node that was not reset.
    const incomplete = openWithoutBaseline(paths);
    expect(incomplete?.baseline.get()).toBeUndefined();
    incomplete?.meta.set("held", "1");
    incomplete?.close();
    expect(refusal()).toBe("state-lost");
    expect(openWithoutBaseline(paths)).toBeUndefined();
  });

  test("a baseline without a marker goes on with bootstrap; once in service it is damage", async () => {
    withBaseline(open());
    expect(refusal()).toBe("opened");
    await mark();
    expect(open().meta.get("in-service-at-ms")).toBe("7");
    await fs.rm(paths.marker);
    expect(refusal()).toBe("state-unmarked");
  });

  test("a damaged database is told apart from one that can't be opened", async () => {
    open().close();
    opened.pop();
    await fs.writeFile(paths.database, Buffer.alloc(8192, 7));
    expect(refusal()).toBe("state-corrupt");
    await fs.rm(paths.database);
    await fs.mkdir(paths.database);
    expect(refusal()).toBe("state-unreadable");
  });
});
