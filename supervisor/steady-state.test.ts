/** A state disk that is full in the middle of an apply: the new state or the old one, and never an operation that nothing ends. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { resumeApply } from "../apply/waiting/driver.ts";
import { serveApply } from "../apply/service/driver.ts";
import type { Operation } from "../state/model.ts";
import type { ServiceOutcome } from "../apply/service/model.ts";
import { memoryState, type State } from "../state/open.ts";
import { fakeK0s } from "../test/support/fake-k0s.ts";
import { type GateService, gateService, removeServices } from "../test/support/gate-service.ts";
import { steadyState } from "./steady-state.ts";

setDefaultTimeout(120_000);
afterEach(removeServices);

const BEFORE = "role: single\nnode: {name: n1}\n";
const ADDON = `${BEFORE}addons:\n  - {name: ingress, chart: "oci://r.example.com/ingress"}\n`;
const LATER = (document: string): string => `${document}backup: {enabled: true, keep: 3}\n`;
const requester = { kind: "local" } as const;

/** Each write of what it is made of is counted; from `fullAt` on they fail until somebody makes room. */
class Disk {
  fullAt = Number.POSITIVE_INFINITY;
  #writes = 0;

  get isFull(): boolean {
    return this.#writes >= this.fullAt;
  }

  makeRoom(): void {
    this.fullAt = Number.POSITIVE_INFINITY;
  }

  #write<R>(work: () => R): R {
    this.#writes += 1;
    if (this.isFull) throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    return work();
  }

  below(state: State): State {
    const { operations, events } = state;
    return {
      ...state,
      operations: {
        ...operations,
        begin: (...given) => this.#write(() => operations.begin(...given)),
        adopt: (...given) => this.#write(() => operations.adopt(...given)),
        step: (...given) => this.#write(() => operations.step(...given)),
        message: (...given) => this.#write(() => operations.message(...given)),
        phase: (...given) => this.#write(() => operations.phase(...given)),
        end: (...given) => this.#write(() => operations.end(...given)),
      },
      events: { ...events, add: (event) => this.#write(() => events.add(event)) },
      transaction: (work) => this.#write(() => state.transaction(work)),
    };
  }
}

interface Clocked {
  readonly state: State;
  readonly said: string[];
  /** The next try to write what is left. */
  readonly tick: () => Promise<void>;
}

function steadied(state: State): Clocked {
  let next = Promise.withResolvers<void>();
  const said: string[] = [];
  const clock = { sleep: () => next.promise };
  return {
    state: steadyState(state, { clock, say: (line) => void said.push(line) }),
    said,
    async tick() {
      next.resolve();
      next = Promise.withResolvers();
      await Bun.sleep(0);
    },
  };
}

interface Node extends Clocked {
  readonly one: GateService;
  readonly disk: Disk;
  readonly post: (document: string, isWaiting?: boolean) => Promise<ServiceOutcome>;
  readonly confirm: (operation: string) => Promise<ServiceOutcome>;
}

function node(): Node {
  const one = gateService(BEFORE, fakeK0s({ slowness: 0 }), { isInMemory: true });
  const disk = new Disk();
  const clocked = steadied(disk.below(one.state()));
  const dependencies = {
    ...one.dependencies,
    state: clocked.state,
    lastConnection: () => 1,
    holdFor: () => Promise.withResolvers<void>().promise,
  };
  return {
    ...clocked,
    one,
    disk,
    post: (document, isWaiting = false) =>
      serveApply(dependencies, {
        document,
        requester,
        acknowledge: false,
        isDryRun: false,
        ...(isWaiting ? { confirmWithinMs: 60_000 } : {}),
      }),
    confirm: (operation) =>
      resumeApply(dependencies, operation, { word: "confirm", teller: { connection: 2, isOfNewCa: false } }),
  };
}

describe("the disk is full from one write on, at each write of an apply", () => {
  test.each([false, true])(
    "to be confirmed: %p: as before or as after, its end is recorded, and the next one goes",
    async (isWaiting) => {
      const seen = new Set<unknown>();
      for (let fullAt = 1; ; fullAt += 1) {
        const { one, disk, state, post, confirm, tick } = node();
        disk.fullAt = fullAt;
        const begun = await post(ADDON, isWaiting).catch((thrown: unknown) => thrown);
        if (fullAt === 1) {
          // It could not even be begun.
          expect(begun).toMatchObject({ code: "SQLITE_FULL" });
          continue;
        }
        let outcome = begun as ServiceOutcome;
        if (outcome.kind === "answer" && outcome.answer.status === "awaiting-confirmation") {
          outcome = await confirm(outcome.answer.operation ?? "");
        }
        if (!disk.isFull) break;
        const isNew = outcome.kind === "answer";
        const at = [fullAt, isNew];
        expect([...at, one.fake.text("/etc/k0s/k0s.yaml")?.includes("ingress")]).toEqual([...at, isNew]);
        expect([...at, state.baseline.get()?.document.text === ADDON]).toEqual([...at, isNew]);
        disk.makeRoom();
        await tick();
        const [operation] = state.operations.list();
        expect([...at, operation?.phase]).toEqual([...at, isNew ? "succeeded" : "rolled-back"]);
        expect(await post(LATER(isNew ? ADDON : BEFORE))).toMatchObject({ answer: { status: "reconciled" } });
        seen.add(isNew);
      }
      expect(seen).toEqual(new Set([true, false]));
    },
  );
});

test("what could not be written is written in its order when there is room, and said once", async () => {
  const database = memoryState();
  const disk = new Disk();
  const { state, said, tick } = steadied(disk.below(database));
  const begun = state.operations.begin({ kind: "apply", requester, version: "1", atMs: 1 });
  const id = begun.ok ? begun.value.id : "";
  disk.fullAt = 0;
  state.operations.step(id, { id: "a", title: "a", state: "running" }, 2);
  state.operations.step(id, { id: "a", title: "a", state: "done" }, 3);
  state.events.add({ atMs: 4, kind: "applied", severity: "info", message: "it is over" });
  expect(state.operations.end(id, { phase: "failed", failureReason: "why" }, 5)).toMatchObject({
    phase: "failed",
    failureReason: "why",
    endedAtMs: 5,
  });
  await tick();
  expect(database.operations.get(id)).toMatchObject({ phase: "running", steps: [] });
  disk.makeRoom();
  await tick();
  expect(database.operations.get(id)).toMatchObject({
    phase: "failed",
    steps: [{ id: "a", state: "done", startedAtMs: 2, endedAtMs: 3 }],
    endedAtMs: 5,
  });
  expect(state.events.last()).toMatchObject([{ atMs: 4, message: "it is over" }]);
  expect(said).toEqual([
    "the state database can't be written (SQLITE_FULL): what happens is recorded as soon as it can be",
    "the state database can be written again",
  ]);
});

test("the disk stayed full, and the operation went on saying what it had waited for before", async () => {
  const database = memoryState();
  const disk = new Disk();
  const { state, tick } = steadied(disk.below(database));
  const begun = state.operations.begin({ kind: "apply", requester, version: "1", atMs: 1 });
  const id = begun.ok ? begun.value.id : "";
  state.operations.message(id, "waiting for k0s", 2);
  disk.fullAt = 0;
  const revisions = [state.operations.revision(id)];
  const shown = () => [state.operations.get(id), state.operations.list()[0], state.operations.running()];
  state.operations.message(id, "the files can't be put back yet", 3);
  revisions.push(state.operations.revision(id));
  expect(shown().map((operation) => operation?.message)).toEqual(Array(3).fill("the files can't be put back yet"));
  state.operations.phase(id, "awaiting-confirmation", 4);
  expect(shown().map((operation) => operation?.phase)).toEqual(Array(3).fill("awaiting-confirmation"));
  state.operations.end(id, { phase: "rolled-back", failureReason: "no room" }, 5);
  revisions.push(state.operations.revision(id));
  const [got, listed, running] = shown();
  expect(got).toMatchObject({ phase: "rolled-back", failureReason: "no room", endedAtMs: 5 });
  expect([listed, running, got?.message]).toEqual([got, undefined, undefined]);
  // A follower looks again where the revision has grown.
  expect(new Set(revisions).size).toBe(3);
  disk.makeRoom();
  await tick();
  expect(database.operations.get(id)).toEqual(got as Operation);
});

test("the next operation need not wait for the end of the one before to be tried again", () => {
  const disk = new Disk();
  const { state } = steadied(disk.below(memoryState()));
  const begin = () => state.operations.begin({ kind: "apply", requester, version: "1", atMs: 1 });
  const first = begin();
  disk.fullAt = 0;
  state.operations.end(first.ok ? first.value.id : "", { phase: "succeeded" }, 2);
  expect(begin).toThrow("disk is full");
  disk.makeRoom();
  expect(begin().ok).toBe(true);
});

test("an event of a transaction that is taken back is not written later", async () => {
  const disk = new Disk();
  const { state, tick } = steadied(disk.below(memoryState()));
  const event = { atMs: 1, kind: "ca-rotated", severity: "info", message: "it was not" } as const;
  const work = () =>
    state.transaction(() => {
      disk.fullAt = 0;
      state.events.add(event);
    });
  expect(work).toThrow("disk is full");
  disk.makeRoom();
  await tick();
  expect(state.events.last()).toEqual([]);
});

test("a mistake of the program is no full disk: it is thrown", () => {
  const { state } = steadied(memoryState());
  expect(() => state.operations.end("nothing", { phase: "succeeded" }, 1)).toThrow("no operation nothing");
});

test("what is left is written before the database is closed", () => {
  const database = memoryState();
  const disk = new Disk();
  let isWritten = false;
  const below = disk.below(database);
  const add: State["events"]["add"] = (event) => {
    const added = below.events.add(event);
    isWritten = true;
    return added;
  };
  const { state } = steadied({ ...below, events: { ...below.events, add } });
  disk.fullAt = 0;
  state.events.add({ atMs: 1, kind: "applied", severity: "info", message: "m" });
  expect(isWritten).toBe(false);
  disk.makeRoom();
  state.close();
  expect(isWritten).toBe(true);
});
