import { randomBytes } from "node:crypto";

import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";
import type { Entries, Entry } from "./entries.ts";
import type { Operation, OperationKind, OperationPhase, OperationStep, Requester } from "./model.ts";
import { isOver } from "./model.ts";
import type { Owners } from "./owners.ts";
import type { Database } from "./sqlite.ts";

export interface NewOperation {
  readonly kind: OperationKind;
  readonly requester: Requester;
  /** Of the program. */
  readonly version: string;
  readonly inputHash?: string;
  readonly steps?: readonly OperationStep[];
  readonly atMs: number;
}

/** Everything requested. Each change is one more entry; an operation is what its entries add up to. */
export interface Operations {
  /**
   * Starts one, owned by this process, unless another changing operation is not over yet: the error is that one.
   * Holds across processes.
   */
  begin(input: NewOperation): Result<Operation, { readonly running: Operation }>;
  get(id: string): Operation | undefined;
  /** Newest first. */
  list(limit?: number): readonly Operation[];
  /** The one that is not over. */
  running(): Operation | undefined;
  /** Replaces the list of steps: once the plan is known. */
  plan(id: string, steps: readonly OperationStep[], atMs: number, inputHash?: string): void;
  /** One step goes on: its times follow from the state. Unknown ids are appended. */
  step(id: string, step: Pick<OperationStep, "id" | "title" | "state">, atMs: number): void;
  /** What it is doing or waiting for; repeating the last one writes nothing. */
  message(id: string, message: string | undefined, atMs: number): void;
  phase(id: string, phase: OperationPhase, atMs: number): void;
  /** Over: the message is cleared. Ending it twice is a bug and throws. */
  end(id: string, outcome: Outcome, atMs: number): Operation;
  /** Not over, but the process that ran it is gone (it crashed, or power was lost). */
  abandoned(): readonly Operation[];
  /** This process goes on with it. */
  adopt(id: string, atMs: number): void;
  /** Grows with each change of it: what a follower polls. */
  revision(id: string): number;
}

export interface Outcome {
  readonly phase: "succeeded" | "failed" | "rolled-back" | "cancelled";
  readonly failureReason?: string;
}

type Change =
  | { readonly kind: "created"; readonly operation: Operation }
  | { readonly kind: "owner"; readonly owner: string }
  | { readonly kind: "plan"; readonly steps: readonly OperationStep[]; readonly inputHash?: string }
  | { readonly kind: "step"; readonly step: Pick<OperationStep, "id" | "title" | "state"> }
  | { readonly kind: "message"; readonly message?: string }
  | { readonly kind: "phase"; readonly phase: OperationPhase; readonly failureReason?: string };

interface Folded {
  readonly operation: Operation;
  readonly owner: string;
}

const LIST_LIMIT = 50;
/** Crockford's alphabet: nothing to mistake when read aloud. */
const SYMBOLS = "0123456789abcdefghjkmnpqrstvwxyz";

export function operationsIn(database: Database, entries: Entries, owners: Owners): Operations {
  const ids = database.prepare<[number], { id: string }>("SELECT id FROM operations ORDER BY first_seq DESC LIMIT ?");
  // One index seek per operation, newest first; stops at the first that is not over.
  const open = database.prepare<[], { id: string }>(
    `SELECT id FROM operations WHERE NOT EXISTS (
       SELECT 1 FROM entries WHERE stream = 'operation' AND subject = operations.id AND kind = 'over')
     ORDER BY first_seq DESC`,
  );
  const append = (id: string, change: Change, atMs: number): void => {
    const { kind, ...data } = change;
    const isEnd = change.kind === "phase" && isOver(change.phase);
    entries.append({ atMs, stream: "operation", subject: id, kind: isEnd ? "over" : kind, data });
  };
  const fold = (id: string): Folded | undefined => foldEntries(entries.of("operation", id));
  const known = (id: string): Operation => {
    const folded = fold(id);
    if (folded === undefined) throw new Error(`no operation ${id}`);
    return folded.operation;
  };
  const openOnes = (): readonly Folded[] =>
    open
      .all()
      .map(({ id }) => fold(id))
      .filter((folded) => folded !== undefined);

  const begin = database.transaction((input: NewOperation): Result<Operation, { readonly running: Operation }> => {
    const [running] = openOnes();
    if (running !== undefined) return err({ running: running.operation });
    const operation: Operation = {
      id: newId(),
      kind: input.kind,
      phase: "running",
      steps: input.steps ?? [],
      requester: input.requester,
      version: input.version,
      createdAtMs: input.atMs,
      ...(input.inputHash === undefined ? {} : { inputHash: input.inputHash }),
    };
    append(operation.id, { kind: "created", operation }, input.atMs);
    append(operation.id, { kind: "owner", owner: owners.self }, input.atMs);
    return ok(operation);
  });
  const end = database.transaction((id: string, outcome: Outcome, atMs: number): Operation => {
    if (isOver(known(id).phase)) throw new Error(`operation ${id} is over already`);
    append(id, { kind: "phase", ...outcome }, atMs);
    return known(id);
  });

  return {
    begin: (input) => begin.immediate(input),
    get: (id) => fold(id)?.operation,
    list: (limit = LIST_LIMIT) => ids.all(limit).map(({ id }) => known(id)),
    running: () => openOnes()[0]?.operation,
    plan: (id, steps, atMs, inputHash) =>
      append(id, { kind: "plan", steps, ...(inputHash === undefined ? {} : { inputHash }) }, atMs),
    step: (id, { id: stepId, title, state }, atMs) =>
      append(id, { kind: "step", step: { id: stepId, title, state } }, atMs),
    message(id, message, atMs) {
      if (known(id).message === message) return;
      append(id, { kind: "message", ...(message === undefined ? {} : { message }) }, atMs);
    },
    phase: (id, phase, atMs) => append(id, { kind: "phase", phase }, atMs),
    end: (id, outcome, atMs) => end.immediate(id, outcome, atMs),
    abandoned: () =>
      openOnes()
        .filter(({ owner }) => !owners.isAlive(owner))
        .map(({ operation }) => operation),
    adopt: (id, atMs) => append(id, { kind: "owner", owner: owners.self }, atMs),
    revision: (id) => entries.lastSeq("operation", id),
  };
}

function foldEntries(rows: readonly Entry[]): Folded | undefined {
  let folded: Folded | undefined;
  for (const row of rows) {
    const kind = row.kind === "over" ? "phase" : row.kind;
    const change = { kind, ...(JSON.parse(row.data) as object) } as Change;
    if (change.kind === "created") folded = { operation: change.operation, owner: "" };
    else if (folded !== undefined) folded = applyChange(folded, change, row.at_ms);
  }
  return folded;
}

function applyChange({ operation, owner }: Folded, change: Exclude<Change, { kind: "created" }>, atMs: number): Folded {
  const { message: _message, ...quiet } = operation;
  switch (change.kind) {
    case "owner":
      return { operation, owner: change.owner };
    case "plan": {
      const inputHash = change.inputHash ?? operation.inputHash;
      return {
        operation: { ...operation, steps: change.steps, ...(inputHash === undefined ? {} : { inputHash }) },
        owner,
      };
    }
    case "step":
      return { operation: { ...operation, steps: withStep(operation.steps, change.step, atMs) }, owner };
    case "message":
      return { operation: change.message === undefined ? quiet : { ...quiet, message: change.message }, owner };
    case "phase": {
      if (!isOver(change.phase)) return { operation: { ...operation, phase: change.phase }, owner };
      const reason = change.failureReason === undefined ? {} : { failureReason: change.failureReason };
      return { operation: { ...quiet, phase: change.phase, endedAtMs: atMs, ...reason }, owner };
    }
    default: {
      // A newer program's entry, read after a rollback: what it adds is not known here.
      const unknown: never = change;
      void unknown;
      return { operation, owner };
    }
  }
}

function withStep(
  steps: readonly OperationStep[],
  change: Pick<OperationStep, "id" | "title" | "state">,
  atMs: number,
): readonly OperationStep[] {
  const old = steps.find(({ id }) => id === change.id);
  const startedAtMs = change.state === "running" ? atMs : old?.startedAtMs;
  const isEnded = change.state === "done" || change.state === "skipped" || change.state === "failed";
  const next: OperationStep = {
    ...change,
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
    ...(isEnded ? { endedAtMs: atMs } : {}),
  };
  return old === undefined ? [...steps, next] : steps.map((step) => (step.id === change.id ? next : step));
}

const newId = (): string => [...randomBytes(8)].map((byte) => SYMBOLS[byte & 31]).join("");
