/**
 * Watches the virtual address as long as the daemon runs: whether it comes or goes here is two reads every three seconds;
 * who else answers for it, the link is asked once a minute, and soon after a change (docs/adr/0307-virtual-address.md).
 */
import type { NodeAnswer } from "../api/contract.ts";
import type { Document } from "../config/document.ts";
import { isHeldHere, whoAnswers } from "../k0s/vip/driver.ts";
import type { VipDecision, VipMemory } from "../k0s/vip/watch.ts";
import { askAgainMs, noteAnswers, noteHolding } from "../k0s/vip/watch.ts";
import type { Host } from "../kit/ports.ts";
import { ownAddressOn, vrrpLink } from "../provision/addresses.ts";
import { readNetwork } from "../provision/driver.ts";
import type { State } from "../state/open.ts";
import { readRemembered } from "./remembered.ts";

export interface VipWatch {
  readonly host: Host;
  readonly state: Pick<State, "events">;
  /** Of a node in service; absent before. */
  readonly document: () => Document | undefined;
  /** Of this boot. */
  readonly memoryPath: string;
  readonly say: (line: string) => void;
}

const POLL_MS = 3_000;

export interface VipWatcher {
  readonly memory: () => VipMemory;
  /** Until the signal. What fails is said and tried again at the next look. */
  watch(signal: AbortSignal): Promise<void>;
}

export function vipWatcher({ host, state, document: read, memoryPath, say }: VipWatch): VipWatcher {
  let memory: VipMemory = {};
  let written = "";
  let askedAtMs = Number.NEGATIVE_INFINITY;

  const take = (decided: VipDecision): void => {
    const atMs = host.clock.nowMs();
    for (const event of decided.events) state.events.add({ atMs, ...event });
    memory = decided.memory;
  };

  const round = async (): Promise<void> => {
    const document = read();
    const vip = document?.ha.enabled === true ? document.ha.virtualIP?.split("/")[0] : undefined;
    if (document === undefined || vip === undefined) return;
    const isHeld = await isHeldHere(host, vip);
    if (isHeld === undefined) return;
    if (isHeld !== memory.isHeld) askedAtMs = host.clock.monotonicMs();
    take(noteHolding(memory, isHeld, vip));
    if (host.clock.monotonicMs() - askedAtMs >= askAgainMs(memory)) {
      const others = await askLink(host, document, vip);
      askedAtMs = host.clock.monotonicMs();
      // It may have moved meanwhile: then the answers are of nothing.
      if (others !== undefined && (await isHeldHere(host, vip)) === isHeld) {
        take(noteAnswers(memory, { isHeld, others }, vip));
      }
    }
    const text = JSON.stringify(memory);
    if (text === written) return;
    written = text;
    await host.files.write(memoryPath, text, { mode: 0o600 });
  };

  return {
    memory: () => memory,
    async watch(signal) {
      memory = await readRemembered(host, memoryPath, memory);
      while (!signal.aborted) {
        try {
          await round();
        } catch (thrown) {
          say(`the virtual address could not be watched: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
        }
        await host.clock.sleep(POLL_MS, signal);
      }
    },
  };
}

/** `NodeAnswer.ha`: whether it is here is looked at now, who else has it was asked at most a minute ago. */
export async function readHa(
  host: Host,
  document: Document | undefined,
  { isHeld, others, told }: VipMemory,
): Promise<NodeAnswer["ha"]> {
  const vip = document?.ha.enabled === true ? document.ha.virtualIP?.split("/")[0] : undefined;
  if (vip === undefined) return undefined;
  const holder = await isHeldHere(host, vip);
  // It has just come or gone: what is remembered is of the time before.
  const isOfNow = holder !== undefined && holder === isHeld;
  return {
    vip,
    ...(holder === undefined ? {} : { holder }),
    ...(isOfNow && others !== undefined ? { others } : {}),
    ...(isOfNow && told !== undefined ? { state: told } : {}),
  };
}

/** On the link that VRRP runs on, with an address of this node's own. */
async function askLink(host: Host, document: Document, vip: string): Promise<readonly string[] | undefined> {
  const network = await readNetwork(host);
  const link = network.ok ? vrrpLink(document, network.value) : undefined;
  if (link === undefined) return undefined;
  const own = ownAddressOn(link, vip);
  return whoAnswers(host, { device: link.name, address: vip, ...(own === undefined ? {} : { own }) });
}
