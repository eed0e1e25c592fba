/** Applies that wait for a word in this process: where they are found, and how they go on. */
import { readControlPlane } from "../../k0s/cluster/driver.ts";
import type { State } from "../../state/open.ts";
import { ownOf } from "../cluster-content.ts";
import { type Held, hold, type Word } from "../held/driver.ts";
import { type ApplyDependencies, refused, type ServiceOutcome, type Work } from "../service/model.ts";

/** Of this process, by operation; the state stands for the node. */
const waiting = new WeakMap<State, Map<string, Held<ServiceOutcome>>>();
const HOLD_MS = 60 * 60_000;

export interface Holding {
  readonly held: Held<ServiceOutcome>;
  readonly onBegin: (operation: string) => void;
}

/** The answer comes when everything is written; `resumeApply` goes on from there. */
export async function writeAndHold(
  dependencies: ApplyDependencies,
  work: Work,
  run: (holding: Holding) => Promise<ServiceOutcome>,
): Promise<ServiceOutcome> {
  const { host, state } = dependencies;
  const known = waiting.get(state) ?? new Map<string, Held<ServiceOutcome>>();
  waiting.set(state, known);
  let operation = "";
  const held = hold<ServiceOutcome>({
    sleep: dependencies.holdFor ?? ((signal) => host.clock.sleep(HOLD_MS, signal)),
    onWait: () => {
      const atMs = host.clock.nowMs();
      state.operations.phase(operation, "awaiting-confirmation", atMs);
      state.operations.message(operation, "written; waiting until every controller has it", atMs);
    },
  });
  held.outcome = run({
    held,
    onBegin: (id) => {
      operation = id;
      known.set(id, held);
    },
  }).finally(() => known.delete(operation));
  const first = await Promise.race([held.outcome, held.written]);
  if (first !== "written") return first;
  return { kind: "answer", answer: { ...work.answer, status: "written", operation } };
}

/** Goes on with an apply that has written and waits, or takes it back; answers when that is done. */
export async function resumeApply(
  { host, state }: Pick<ApplyDependencies, "host" | "state">,
  operation: string,
  word: Word,
): Promise<ServiceOutcome> {
  const held = waiting.get(state)?.get(operation);
  if (held?.outcome === undefined || !held.tell(word)) {
    const phase = state.operations.get(operation)?.phase ?? "unknown";
    return refused(409, "not-waiting", `operation ${operation} does not wait to be confirmed: it is ${phase}`, {
      operation,
    });
  }
  state.operations.phase(operation, "running", host.clock.nowMs());
  const outcome = await held.outcome;
  if (outcome.kind === "refused") return outcome;
  // Who leads may have changed since it was planned.
  const { controlPlane: _old, ...answer } = outcome.answer;
  const baseline = state.baseline.get();
  const now = baseline === undefined ? undefined : await readControlPlane(host, ownOf(baseline));
  return { kind: "answer", answer: { ...answer, ...(now?.ok === true ? { controlPlane: now.value } : {}) } };
}
