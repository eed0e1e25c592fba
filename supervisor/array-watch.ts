/**
 * Watches the arrays of this node as long as the daemon runs. Two files of the kernel are read every few seconds; only
 * when they differ is anything else looked at, and now and then without a reason (docs/adr/0303-array-watch.md).
 */
import type { DiskIdentity, OwnedStorage } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
import { formatError } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { WantedArray } from "../raid/report.ts";
import type { ArrayAction, Memory } from "../raid/watch.ts";
import { decide } from "../raid/watch.ts";
import { carryOut, glance, look } from "../raid/watch/driver.ts";
import type { State } from "../state/open.ts";
import type { ReadIdentities } from "./disk-identities.ts";
import { storageInUse } from "./storage-in-use.ts";

export interface ArrayWatch {
  readonly host: Host;
  readonly state: Pick<State, "owned" | "meta" | "events" | "operations" | "replacements">;
  /** Of this boot: what was said already. */
  readonly memoryPath: string;
  readonly identities: ReadIdentities;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

const POLL_MS = 3_000;
const SAFETY_MS = 60_000;
/** For so long after a boot an array that is not there yet may still be waited for (corium-arrays.service). */
const BOOT_MS = 150_000;
const ARRAYS_UNIT = "corium-arrays.service";

/** Ends with the signal. What fails is said and tried again at the next look. */
export async function watchArrays(watch: ArrayWatch): Promise<void> {
  const { host, signal } = watch;
  let memory = await remembered(watch);
  let seen: string | undefined;
  let lookedAtMs = 0;
  while (!signal.aborted) {
    try {
      const arrays = storageInUse(watch.state).filter(({ kind }) => kind === "raid");
      const now = arrays.length === 0 ? seen : await glance(host);
      const isDue = host.clock.monotonicMs() - lookedAtMs >= SAFETY_MS;
      if (arrays.length > 0 && (now !== seen || isDue)) {
        lookedAtMs = host.clock.monotonicMs();
        memory = await round(watch, arrays, memory);
        // What is not there yet is asked for again at the next look.
        if (memory !== undefined) seen = now;
      }
    } catch (thrown) {
      watch.say(`arrays could not be watched: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    }
    await host.clock.sleep(POLL_MS, signal);
  }
}

/** One look with all that follows from it; undefined: it is too early to say anything. */
export async function round(
  watch: Omit<ArrayWatch, "signal">,
  arrays: readonly OwnedStorage[],
  memory: Memory | undefined,
): Promise<Memory | undefined> {
  const { host, state } = watch;
  const leaving = state.replacements.open()?.old;
  const wanted = arrays.map(wantedArray).map((array) => (leaving === undefined ? array : without(array, leaving)));
  const found = await look(host, wanted, await watch.identities());
  if (memory === undefined && found.arrays.some(({ path }) => path === undefined) && !(await isStarted(host)))
    return undefined;
  const shown = isBusy(state) ? { ...found, returned: [] } : found;
  const decided = decide(memory, shown, leaving?.serial === undefined ? [] : [leaving.serial]);
  const atMs = host.clock.nowMs();
  for (const event of decided.events) state.events.add({ atMs, ...event });
  const text = JSON.stringify(decided.memory);
  if (text !== JSON.stringify(memory)) await host.files.write(watch.memoryPath, text, { mode: 0o600 });
  for (const action of decided.actions) await act(watch, action);
  return decided.memory;
}

export const wantedArray = ({ name, uuid, disks }: OwnedStorage): WantedArray => ({ name, uuid, disks });

async function act({ host, state, say }: Omit<ArrayWatch, "signal">, action: ArrayAction): Promise<void> {
  const done = await carryOut(host, action);
  if (done.ok) return;
  say(formatError(done.error));
  if (action.kind !== "re-add") return;
  state.events.add({
    atMs: host.clock.nowMs(),
    kind: "array-member-refused",
    severity: "warning",
    message: `array ${action.name}: ${action.device} came back but could not be added: ${done.error.details?.at(-1) ?? done.error.message}`,
  });
}

/** A disk that is being replaced is neither missed nor taken back. */
const without = (array: WantedArray, leaving: DiskIdentity): WantedArray => ({
  ...array,
  disks: (array.disks ?? []).filter((disk) => !sameDisk(disk, leaving)),
});

/** Bootstrap makes and starts arrays itself. */
const isBusy = (state: ArrayWatch["state"]): boolean => {
  const kind = state.operations.running()?.kind;
  return kind === "bootstrap" || kind === "install";
};

async function isStarted(host: Host): Promise<boolean> {
  if (host.clock.monotonicMs() > BOOT_MS) return true;
  const unit = await host.systemd.status(ARRAYS_UNIT);
  return unit.ok && (unit.value.activeState === "active" || unit.value.activeState === "failed");
}

async function remembered({ host, memoryPath }: ArrayWatch): Promise<Memory | undefined> {
  const text = await host.files.readText(memoryPath);
  if (!text.ok) return undefined;
  try {
    return JSON.parse(text.value) as Memory;
  } catch {
    return undefined;
  }
}
