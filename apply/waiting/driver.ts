/** Applies that wait for a word in this process: where they are found, and how they go on. */
import type { ApplyAnswer } from "../../api/contract.ts";
import type { State } from "../../state/open.ts";
import { type Held, hold, NOT_WAITING, type Teller, type Word } from "../held/driver.ts";
import { type ApplyDependencies, refused, type ServiceOutcome } from "../service/model.ts";

/** Of this process, by operation; the state stands for the node. */
const waiting = new WeakMap<State, Map<string, Held<ServiceOutcome>>>();

/** The work of one operation, which begins to wait somewhere. */
export interface Holding {
  readonly held: Held<ServiceOutcome>;
  readonly onBegin: (operation: string) => void;
}

/** Begins it; resolves when it waits, or when it is over without. */
export async function untilItWaits(
  state: State,
  { answer, run }: { readonly answer: ApplyAnswer; readonly run: (holding: Holding) => Promise<ServiceOutcome> },
): Promise<ServiceOutcome> {
  const known = waiting.get(state) ?? new Map<string, Held<ServiceOutcome>>();
  waiting.set(state, known);
  const held = hold<ServiceOutcome>();
  let operation = "";
  const onBegin = (id: string): void => {
    operation = id;
    known.set(id, held);
  };
  held.outcome = run({ held, onBegin }).finally(() => known.delete(operation));
  const first = await Promise.race([held.outcome, held.waits]);
  return first === "waits" ? { kind: "answer", answer: { ...answer, operation } } : first;
}

/** Goes on with an apply that waits, or takes it back; answers when that is done. */
export async function resumeApply(
  { host, state }: Pick<ApplyDependencies, "host" | "state">,
  operation: string,
  { word, teller }: { readonly word: Word; readonly teller: Teller },
): Promise<ServiceOutcome> {
  const held = waiting.get(state)?.get(operation);
  const told = held?.tell(word, teller);
  if (told?.ok === false && told.error.code !== NOT_WAITING) {
    const { code, message, hint } = told.error;
    return refused(409, code, hint === undefined ? message : `${message}; ${hint}`, { operation });
  }
  if (held?.outcome === undefined || told?.ok !== true) {
    const phase = state.operations.get(operation)?.phase ?? "unknown";
    return refused(409, NOT_WAITING, `operation ${operation} does not wait to be confirmed: it is ${phase}`, {
      operation,
    });
  }
  const atMs = host.clock.nowMs();
  state.operations.phase(operation, "running", atMs);
  state.operations.message(operation, undefined, atMs);
  return held.outcome;
}

/** The CA that becomes the node's if the change that waits is confirmed: its operators are let in until then. */
export const newCaOf = (state: State): string | undefined =>
  [...(waiting.get(state)?.values() ?? [])].map((held) => held.current()?.newCa).find((pem) => pem !== undefined);

/** Somebody came with a certificate of the new CA: where that alone is what is waited for, it is done when this resolves. */
export async function confirmByConnection(
  dependencies: Pick<ApplyDependencies, "host" | "state">,
  connection: number,
): Promise<void> {
  const known = [...(waiting.get(dependencies.state) ?? [])];
  const operation = known.find(([, held]) => held.current()?.isByConnection === true)?.[0];
  if (operation === undefined) return;
  await resumeApply(dependencies, operation, { word: "confirm", teller: { connection, isOfNewCa: true } });
}
