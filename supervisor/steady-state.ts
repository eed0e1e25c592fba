/**
 * The state, for a program that carries on while its disk can't be written: full, locked by somebody, failing for a while.
 *
 * How an operation goes, that it is over, and what is told of the node decides nothing: an apply in the middle must come to
 * the new state or back to the old one, and none may run for ever because its end found no room. These entries wait in
 * memory, in their order, and are written as soon as they can be; whoever asks is told of them all the same. All that
 * decides (begin, documents, baseline, claim, audit, transactions) fails as ever.
 */
import type { Clock } from "../kit/ports.ts";
import { isOver, type Operation } from "../state/model.ts";
import type { Operations } from "../state/operations.ts";
import { isSqliteError } from "../state/sqlite.ts";
import type { State } from "../state/open.ts";

const RETRY_MS = 2_000;
/** Of what is only shown or told; a disk may be full for weeks. */
const SHOWN_AT_MOST = 1_000;

interface Unwritten {
  readonly work: () => void;
  /** What it makes of an operation. */
  readonly tells?: { readonly id: string; readonly change: (operation: Operation) => Operation };
}

interface Steadying {
  readonly clock: Pick<Clock, "sleep">;
  readonly say: (line: string) => void;
}

export function steadyState(state: State, { clock, say }: Steadying): State {
  const unwritten: Unwritten[] = [];
  const closing = new AbortController();
  let isInTransaction = false;

  /** Whether nothing is left. */
  function flush(): boolean {
    for (let next = unwritten[0]; next !== undefined; next = unwritten[0]) {
      try {
        next.work();
      } catch (thrown) {
        if (isSqliteError(thrown)) return false;
        say(`left out of the record: ${String(thrown)}`);
      }
      unwritten.shift();
    }
    return true;
  }

  async function retry(): Promise<void> {
    while (!closing.signal.aborted) {
      await clock.sleep(RETRY_MS, closing.signal);
      if (closing.signal.aborted || !flush()) continue;
      say("the state database can be written again");
      return;
    }
  }

  function write(work: () => void, is: "needed" | "shown", tells?: Unwritten["tells"]): void {
    // What is taken back as a whole must not be written later.
    if (isInTransaction) return work();
    if (unwritten.length === 0) {
      try {
        return work();
      } catch (thrown) {
        if (!isSqliteError(thrown)) throw thrown;
        say(`the state database can't be written (${thrown.code}): what happens is recorded as soon as it can be`);
        void retry();
      }
    }
    if (is === "shown" && unwritten.length >= SHOWN_AT_MOST) return;
    unwritten.push({ work, ...(tells === undefined ? {} : { tells }) });
  }

  /** As it will be once all is written. */
  const told = (operation: Operation): Operation =>
    unwritten.reduce((at, { tells }) => (tells?.id === operation.id ? tells.change(at) : at), operation);

  const { operations, events } = state;
  const steady: Operations = {
    ...operations,
    begin(input) {
      // The one before may be over, and only its end unwritten.
      flush();
      return operations.begin(input);
    },
    plan: (...given) => write(() => operations.plan(...given), "needed"),
    step: (...given) => write(() => operations.step(...given), "shown"),
    message: (id, message, atMs) =>
      write(() => operations.message(id, message, atMs), "shown", {
        id,
        change: ({ message: _before, ...quiet }) => (message === undefined ? quiet : { ...quiet, message }),
      }),
    phase: (id, phase, atMs) =>
      write(() => operations.phase(id, phase, atMs), "needed", { id, change: (before) => ({ ...before, phase }) }),
    adopt: (...given) => write(() => operations.adopt(...given), "needed"),
    end(id, outcome, atMs) {
      let ended: Operation | undefined;
      write(() => void (ended = operations.end(id, outcome, atMs)), "needed", {
        id,
        change: ({ message: _over, ...operation }) => ({ ...operation, ...outcome, endedAtMs: atMs }),
      });
      if (ended !== undefined) return ended;
      const before = operations.get(id);
      if (before === undefined) throw new Error(`no operation ${id}`);
      return told(before);
    },
    get(id) {
      const operation = operations.get(id);
      return operation === undefined ? undefined : told(operation);
    },
    list: (limit) => operations.list(limit).map(told),
    running() {
      const operation = operations.running();
      const now = operation === undefined ? undefined : told(operation);
      return now === undefined || isOver(now.phase) ? undefined : now;
    },
    revision: (id) => operations.revision(id) + unwritten.filter(({ tells }) => tells?.id === id).length,
  };
  return {
    ...state,
    operations: steady,
    events: {
      ...events,
      add(event) {
        let seq: number | undefined;
        write(() => void (seq = events.add(event).seq), "shown");
        return { ...event, seq: seq ?? 0 };
      },
    },
    transaction<T>(work: () => T): T {
      isInTransaction = true;
      try {
        return state.transaction(work);
      } finally {
        isInTransaction = false;
      }
    },
    close() {
      closing.abort();
      flush();
      state.close();
    },
  };
}
