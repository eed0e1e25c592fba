/**
 * Says when the node is no longer what was applied, and when it is again: soon after a file of it was touched, and at
 * the end of operations. Looks and tells, and never acts.
 */
import type { ConfigReason } from "../api/contract.ts";
import { watchedSecrets } from "../apply/pending.ts";
import type { Document } from "../config/document.ts";
import { secretFields } from "../config/secrets.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host, WatchPaths } from "../kit/ports.ts";
import type { State } from "../state/open.ts";
import { type ConfigStatus, WRITING } from "./config-status.ts";
import { readRemembered } from "./remembered.ts";

export interface ConfigWatch {
  readonly host: Host;
  readonly state: Pick<State, "baseline" | "events" | "operations">;
  readonly paths: Pick<Paths, "config" | "marker" | "runDir">;
  readonly watchPaths: WatchPaths;
  readonly read: () => Promise<ConfigStatus>;
  /** The one that the node runs. */
  readonly document: () => Document | undefined;
  readonly say: (line: string) => void;
  /** Of source 1: the copy that the next boot has it from. Absent where `/etc` is no volatile one. */
  readonly keptConfig?: string;
  /** For what no file tells: units, arrays, mounts, links. Absent: never. */
  readonly pollMs?: number;
}

export interface ConfigWatcher {
  /** An operation is over: something may have changed. */
  wake(): void;
  /** Until the signal. What fails is said and tried again. */
  run(signal: AbortSignal): Promise<void>;
}

/** The same state; `tell` is called after each operation that this process ends. */
export const onOperationEnd = (state: State, tell: () => void): State => ({
  ...state,
  operations: {
    ...state.operations,
    end(...outcome) {
      const ended = state.operations.end(...outcome);
      tell();
      return ended;
    },
  },
});

/** Whoever writes one file often writes the next one too. */
const SETTLE_MS = 1_000;
/** Seen twice: a unit that is restarted may be down for a moment. */
const SURE_MS = 2_000;
/** A machine that starts has to get its addresses, mounts and links first. */
const BOOT_MS = 60_000;
const TOLD_AT_ONCE = 5;
const DOCUMENT_BYTES = 2 * 1024 * 1024;

export function configWatcher(watch: ConfigWatch): ConfigWatcher {
  const { host, say, paths } = watch;
  const memoryPath = `${paths.runDir}/config-state.json`;
  let woken = Promise.withResolvers<void>();
  let isOver = false;
  const wake = (): void => woken.resolve();

  async function look(): Promise<void> {
    await keepEdit(watch);
    const told = await readRemembered<readonly string[]>(host, memoryPath, []);
    const reasons = await sure(watch, told);
    if (reasons === undefined || isOver) return;
    const keys = reasons.map(keyOf).toSorted();
    if (keys.join("\n") === told.toSorted().join("\n")) return;
    const isNew = (reason: ConfigReason): boolean => !told.includes(keyOf(reason));
    tell(watch, reasons.length === 0 ? "in-sync" : reasons.filter(isNew));
    const written = await host.files.write(memoryPath, JSON.stringify(keys), { mode: 0o600 });
    if (!written.ok) say(written.error.message);
  }

  return {
    wake,
    async run(signal) {
      const stopped = Promise.withResolvers<void>();
      const stop = (): void => {
        isOver = true;
        stopped.resolve();
      };
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) stop();
      let inputs = inputPaths(watch);
      let watching = watch.watchPaths(inputs, wake);
      const early = BOOT_MS - host.clock.monotonicMs();
      if (early > 0) await host.clock.sleep(early, signal);
      while (!isOver) {
        woken = Promise.withResolvers();
        const looked = look().catch((thrown: unknown) => {
          const why = thrown instanceof Error ? thrown.message : String(thrown);
          if (!isOver) say(`the configuration could not be watched: ${why}`);
        });
        // A look may take long on a busy machine, and nobody who stops the program waits for it.
        await Promise.race([looked, stopped.promise]);
        if (isOver) break;
        // What an apply has brought is watched from now on.
        const now = inputPaths(watch);
        if (now.join("\n") !== inputs.join("\n")) {
          watching.close();
          watching = watch.watchPaths((inputs = now), wake);
        }
        const timer = new AbortController();
        const slept = watch.pollMs === undefined ? [] : [host.clock.sleep(watch.pollMs, timer.signal)];
        await Promise.race([woken.promise, stopped.promise, ...slept]);
        timer.abort();
        if (!isOver) await host.clock.sleep(SETTLE_MS, signal);
      }
      watching.close();
    },
  };
}

/** What a person writes into source 1 is there after a boot too: /etc is volatile but for what this program keeps. */
async function keepEdit({ host, paths, state, keptConfig, say }: ConfigWatch): Promise<void> {
  if (keptConfig === undefined || isWriting(state)) return;
  const limit = { maxBytes: DOCUMENT_BYTES };
  const [edited, kept] = [await host.files.readText(paths.config, limit), await host.files.readText(keptConfig, limit)];
  // One that was deleted comes back with the next boot, as it was.
  if (!edited.ok || (kept.ok && kept.value === edited.value)) return;
  const written = await host.files.write(keptConfig, edited.value, { mode: 0o600 });
  if (!written.ok) say(`${paths.config} was edited and could not be kept: ${written.error.message}`);
}

/** Source 1, what was rendered, and the secrets that are in files; before there is a baseline, what brings it. */
function inputPaths({ state, paths, document }: ConfigWatch): readonly string[] {
  const known = document();
  const secrets = known === undefined ? [] : watchedSecrets(secretFields(known)).map(({ file }) => file);
  const rendered = Object.keys(state.baseline.get()?.rendered ?? {});
  return [...new Set([paths.config, paths.marker, ...rendered, ...secrets])].toSorted();
}

const keyOf = ({ code, path = "" }: ConfigReason): string => `${code} ${path}`;

const isWriting = ({ operations }: ConfigWatch["state"]): boolean =>
  WRITING.includes(operations.running()?.kind ?? "drain");

/** What was told and is still so, and what is new and there at a second look; undefined while an operation writes. */
async function sure(
  { host, state, read }: ConfigWatch,
  told: readonly string[],
): Promise<readonly ConfigReason[] | undefined> {
  if (isWriting(state)) return undefined;
  const first = (await read()).reasons;
  if (first.every((reason) => told.includes(keyOf(reason)))) return first;
  await host.clock.sleep(SURE_MS);
  const second = (await read()).reasons;
  if (isWriting(state)) return undefined;
  const before = new Set([...told, ...first.map(keyOf)]);
  return second.filter((reason) => before.has(keyOf(reason)));
}

function tell({ host, state }: ConfigWatch, what: "in-sync" | readonly ConfigReason[]): void {
  const atMs = host.clock.nowMs();
  if (what === "in-sync") {
    const message = "the node is what was applied again";
    state.events.add({ atMs, kind: "config-in-sync", severity: "info", message });
    return;
  }
  for (const { class: effect, message } of what.slice(0, TOLD_AT_ONCE)) {
    const kind = effect === undefined ? "config-drifted" : "config-pending";
    state.events.add({ atMs, kind, severity: "warning", message });
  }
  const more = what.length - TOLD_AT_ONCE;
  if (more <= 0) return;
  const message = `and ${more} more differences; \`cctl diff\` shows all of them`;
  state.events.add({ atMs, kind: "config-drifted", severity: "warning", message });
}
