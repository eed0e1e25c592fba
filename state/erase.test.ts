import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openErasable } from "./erase.ts";
import { openState } from "./open.ts";
import { openDatabase } from "./sqlite.ts";

let folder = "";
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "corium-erase-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const places = (): { database: string; marker: string } => ({
  database: join(folder, "corium.db"),
  marker: join(folder, "bootstrapped"),
});
const disk = { serial: "A", sizeBytes: 1 };
const erasure = { atMs: 9, isKeepingDisks: true, message: "this node was reset" };

function fill(): void {
  const opened = openState(places());
  if (!opened.ok) throw new Error(opened.error.message);
  const state = opened.value;
  state.claim.record({ operatorCA: "pem", fingerprint: "SHA256:ca", atMs: 1, by: "enroll" });
  const text = "role: single\njoin: { token: TOPSECRET }\n";
  const document = state.documents.add({ text, atMs: 1, requester: { kind: "local" }, origin: "enroll" });
  state.baseline.set({
    document,
    hostname: "n1",
    machineId: "0",
    addresses: {},
    k0sVersion: "v1",
    inputHash: "0",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: {},
    atMs: 1,
  });
  state.operations.begin({ kind: "reset", requester: { kind: "local" }, version: "1", atMs: 1 });
  state.audit.add({ atMs: 1, requester: { kind: "local" }, route: "POST /x", status: 200, outcome: "done" });
  state.journal.open({ stepId: "s", step: { kind: "k", id: "s", title: "t" }, disks: [disk], openedAtMs: 1 });
  state.meta.set("in-service-at-ms", "1");
  state.meta.set("installation", "ab");
  state.meta.set("fingerprint-key", "key");
  state.meta.raiseTimeFloor(5);
  for (const kind of ["raid", "luks"] as const) state.owned.put({ kind, name: "data", uuid: "u", disks: [disk] });
  const replaced = {
    array: "data",
    device: "d",
    old: disk,
    new: disk,
    newLinks: [],
    isWipeAllowed: false,
    begunAtMs: 1,
  };
  state.replacements.end(state.replacements.begin(replaced).id, "done", 2);
  state.close();
}

describe("the erased database", () => {
  test("knows the machine and its disks, and nothing of the node; it is nobody's, and held", () => {
    fill();
    const erasable = openErasable(places());
    expect(erasable.isErased()).toBe(false);
    expect(erasable.erase(erasure).ok).toBe(true);
    expect(erasable.isErased()).toBe(true);
    erasable.close();
    const opened = openState(places());
    if (!opened.ok) throw new Error(opened.error.message);
    const state = opened.value;
    expect([state.claim.get(), state.baseline.get(), state.documents.list()]).toEqual([undefined, undefined, []]);
    expect([state.operations.list(), state.audit.last(9), state.journal.intents()]).toEqual([[], [], []]);
    expect(state.events.last().map(({ kind, message }) => [kind, message])).toEqual([["reset", "this node was reset"]]);
    expect([state.meta.get("held"), state.meta.get("installation"), state.meta.timeFloorMs()]).toEqual(["9", "ab", 5]);
    expect([state.meta.get("fingerprint-key"), state.meta.get("in-service-at-ms")]).toEqual([undefined, undefined]);
    expect(state.owned.list().map(({ kind }) => kind)).toEqual(["luks", "raid"]);
    expect(state.replacements.done()).toHaveLength(1);
    const database = openDatabase(places().database);
    expect(() => database.exec("DELETE FROM entries")).toThrow("append-only");
    database.close();
    state.close();
  });

  test("keeps no secret of a document in its files, and no record of wiped disks", () => {
    fill();
    const erasable = openErasable(places());
    erasable.erase({ ...erasure, isKeepingDisks: false });
    expect([erasable.state?.owned.list(), erasable.state?.replacements.done()]).toEqual([[], []]);
    erasable.close();
    for (const name of readdirSync(folder))
      expect(readFileSync(join(folder, name), "latin1")).not.toContain("TOPSECRET");
  });

  test("a damaged or lost one is no obstacle: it is made anew", () => {
    for (const content of ["this is no database, however long it is".repeat(100), undefined]) {
      rmSync(places().database, { force: true });
      if (content !== undefined) writeFileSync(places().database, content);
      writeFileSync(places().marker, "");
      const erasable = openErasable(places());
      expect(erasable.erase(erasure)).toEqual({ ok: true, value: undefined });
      expect(erasable.isErased()).toBe(true);
      erasable.close();
      expect(existsSync(places().database)).toBe(true);
      // With the marker it still lets nobody in.
      expect(openState(places())).toMatchObject({ ok: false, error: { code: "state-lost" } });
      rmSync(places().marker);
      expect(openState(places()).ok).toBe(true);
    }
  });
});
