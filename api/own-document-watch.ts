import { formatError } from "../kit/app-error.ts";
import { isClockSynced } from "../provision/driver.ts";
import { documentReader } from "../supervisor/known-document.ts";
import type { ApiMode } from "../supervisor/own-document.ts";
import { readApiMode } from "../supervisor/own-document.ts";
import { isReKeyed } from "../supervisor/re-key.ts";
import type { State } from "../state/open.ts";
import { isSqliteError } from "../state/sqlite.ts";
import type { ApiServices } from "./services.ts";

const LOOK_AGAIN_MS = 15_000;
const FLOOR_EVERY_MS = 3_600_000;
/** Who confirmed it gets his answer. */
const ANSWER_FIRST_MS = 1_000;

interface Watch {
  readonly services: ApiServices;
  readonly state: State;
  readonly mode: ApiMode | undefined;
  readonly findOwn: ApiServices["config"]["findOwn"];
  readonly say: (text: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Until the node is claimed or in service its own document may still come (a URL, a file written by a person) and
 * claim it, ask for no code, or turn the API off; in service an apply that was confirmed may. Returns when the daemon shall
 * stop; `true`: the API was turned off.
 */
export async function watchOwnDocument({ services, state, mode, findOwn, say, signal }: Watch): Promise<boolean> {
  const { host, enrolment } = services;
  let next = mode;
  const readKnown = documentReader(state);
  /** By an apply that is over: what it has left to do is done. */
  const isTurnedOff = (): boolean =>
    state.baseline.get() !== undefined &&
    readKnown()?.document.api?.enabled === false &&
    state.operations.running() === undefined;
  let lastProblem = "";
  let seen = await readSource1(services);
  let isSettled = mode !== undefined && mode.problem === undefined;
  let floorAtMs = host.clock.monotonicMs();
  let isOpen = enrolment !== undefined;
  for (let waitedMs = 0; !signal.aborted;) {
    if (isOpen) {
      if (next?.isEnabled === false) return true;
      if (next?.claim !== undefined) claimByDocument(state, next.claim, host.clock.nowMs());
      if (next !== undefined) await enrolment?.setInsecure(next.isInsecure);
      const problem = next?.problem === undefined ? "" : formatError(next.problem);
      if (problem !== "" && problem !== lastProblem) say(`corium serve: ${problem}`);
      lastProblem = problem;
      next = undefined;
    }
    if (host.clock.monotonicMs() - floorAtMs > FLOOR_EVERY_MS) {
      floorAtMs = host.clock.monotonicMs();
      // Only a time that came from elsewhere: a clock that is wrong by itself must not shut out every certificate.
      if (services.stateProblem === undefined && (await isClockSynced(host)))
        raiseTimeFloor(state, host.clock.nowMs(), say);
    }
    await host.clock.sleep(1_000, signal);
    waitedMs += 1_000;
    if (isTurnedOff()) {
      await host.clock.sleep(ANSWER_FIRST_MS, signal);
      return true;
    }
    // Claimed by whomever, bootstrap included: the code leaves the consoles.
    const isMember = state.baseline.get() !== undefined && !isReKeyed(state);
    if (isOpen && (state.claim.get() !== undefined || isMember)) {
      await enrolment?.close();
      isOpen = false;
    }
    if (isOpen && waitedMs >= LOOK_AGAIN_MS && !signal.aborted) {
      waitedMs = 0;
      const text = await readSource1(services);
      // A URL that answered is not asked again; what a person writes on the node is seen.
      if (isSettled && text === seen) continue;
      seen = text;
      next = await readApiMode(host, await findOwn(), { isClaimed: isReKeyed(state), signal });
      isSettled = next.problem === undefined;
    }
  }
  return false;
}

/** On a disk that is full the floor stays where it was; the next hour tries again. */
function raiseTimeFloor({ meta }: State, toMs: number, say: Watch["say"]): void {
  try {
    meta.raiseTimeFloor(toMs);
  } catch (thrown) {
    if (!isSqliteError(thrown)) throw thrown;
    say(`corium serve: the time could not be recorded (${thrown.code})`);
  }
}

async function readSource1({ host, paths }: ApiServices): Promise<string> {
  const text = await host.files.readText(paths.config, { maxBytes: 2 * 1024 * 1024 });
  return text.ok ? text.value : "";
}

function claimByDocument(state: State, claim: NonNullable<ApiMode["claim"]>, atMs: number): void {
  if (!state.claim.record({ ...claim, atMs }).ok) return;
  const message = `claimed by the document for ${claim.fingerprint}`;
  state.events.add({ atMs, kind: "claimed", severity: "info", message });
}
