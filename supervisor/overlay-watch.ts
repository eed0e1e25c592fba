/**
 * Watches the peers of this node's overlays as long as the daemon runs: follows names that moved, says whom it hears no
 * more and why (docs/adr/0306-overlay-watch.md). Every half minute one `wg show`; who is silent, or just came, is asked.
 */
import type { Host } from "../kit/ports.ts";
import type { State } from "../state/open.ts";
import type { OverlayMemory, WatchedOverlay } from "../wireguard/watch.ts";
import { decide, withAnswer } from "../wireguard/watch.ts";
import { readRemembered } from "./remembered.ts";
import { ask, readInterfaces, refreshEndpoints } from "../wireguard/watch/driver.ts";

export interface OverlayWatch {
  readonly host: Host;
  readonly state: Pick<State, "events">;
  /** Of the document, as it is now. */
  readonly overlays: () => readonly WatchedOverlay[];
  /** Of this boot: what was said already. */
  readonly memoryPath: string;
  readonly say: (line: string) => void;
}

const POLL_MS = 30_000;

export interface OverlayWatcher {
  /** What was found out about peers so far. */
  readonly memory: () => OverlayMemory;
  /** One look with all that follows from it. */
  round(): Promise<void>;
  /** Until the signal. What fails is said and tried again at the next look. */
  watch(signal: AbortSignal): Promise<void>;
}

export function overlayWatcher({ host, state, overlays, memoryPath, say }: OverlayWatch): OverlayWatcher {
  let memory: OverlayMemory = [];
  let written = "";

  const round = async (): Promise<void> => {
    const specs = overlays();
    if (specs.length === 0) return;
    const interfaces = await readInterfaces(host);
    const decided = decide(memory, specs, interfaces, host.clock.nowMs() / 1000);
    memory = decided.memory;
    const atMs = host.clock.nowMs();
    for (const event of decided.events) state.events.add({ atMs, ...event });
    for (const message of await refreshEndpoints(host, specs, interfaces, memory)) {
      state.events.add({ atMs: host.clock.nowMs(), kind: "overlay-endpoint", severity: "info", message });
    }
    for (const probe of decided.probes) {
      const answer = await ask(host, probe);
      memory = withAnswer(memory, probe, answer, host.clock.nowMs() / 1000);
    }
    const text = JSON.stringify(memory);
    if (text === written) return;
    written = text;
    await host.files.write(memoryPath, text, { mode: 0o600 });
  };

  return {
    memory: () => memory,
    round,
    async watch(signal) {
      memory = await readRemembered(host, memoryPath, memory);
      while (!signal.aborted) {
        try {
          await round();
        } catch (thrown) {
          say(`overlays could not be watched: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
        }
        await host.clock.sleep(POLL_MS, signal);
      }
    },
  };
}
