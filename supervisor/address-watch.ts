/** Says when an address goes that this node was bootstrapped with, and when it is back. Reads of /proc, no program. */
import { isHeldHere } from "../k0s/vip/driver.ts";
import type { RecordedAddresses } from "../kit/addresses.ts";
import type { Host } from "../kit/ports.ts";
import type { State } from "../state/open.ts";
import { readRemembered } from "./remembered.ts";

export interface AddressWatch {
  readonly host: Host;
  readonly state: Pick<State, "events">;
  /** None before the node is in service. */
  readonly recorded: () => RecordedAddresses;
  /** Of this boot. */
  readonly memoryPath: string;
  readonly say: (line: string) => void;
}

const POLL_MS = 15_000;
/** A machine that starts has to be given its addresses first. */
const BOOT_MS = 60_000;

/** Until the signal. What fails is said and tried again at the next look. */
export async function watchAddresses(watch: AddressWatch, signal: AbortSignal): Promise<void> {
  const { host, memoryPath, say } = watch;
  let told: readonly string[] = await readRemembered<readonly string[]>(host, memoryPath, []);
  let before: readonly string[] = told;
  while (!signal.aborted) {
    try {
      const gone = await goneNow(watch);
      // Twice, for a lease that is renewed may be without its address for a moment.
      const sure = gone.filter((address) => before.includes(address));
      before = gone;
      const next = [
        ...told.filter((address) => gone.includes(address)),
        ...sure.filter((each) => !told.includes(each)),
      ];
      if (host.clock.monotonicMs() >= BOOT_MS && next.join(" ") !== told.join(" ")) {
        tell(watch, told, next);
        told = next;
        await host.files.write(memoryPath, JSON.stringify(told), { mode: 0o600 });
      }
    } catch (thrown) {
      say(`addresses could not be watched: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    }
    await host.clock.sleep(POLL_MS, signal);
  }
}

async function goneNow({ host, recorded }: AddressWatch): Promise<readonly string[]> {
  const wanted = new Set(Object.values(recorded()).filter((address): address is string => address !== undefined));
  const gone: string[] = [];
  for (const address of wanted) if ((await isHeldHere(host, address)) === false) gone.push(address);
  return gone;
}

function tell({ host, state }: AddressWatch, before: readonly string[], now: readonly string[]): void {
  const atMs = host.clock.nowMs();
  for (const address of now.filter((each) => !before.includes(each))) {
    const message = `address ${address} is on no interface; this node was bootstrapped with it, and k0s is not started without`;
    state.events.add({ atMs, kind: "address-gone", severity: "error", message });
  }
  for (const address of before.filter((each) => !now.includes(each))) {
    state.events.add({ atMs, kind: "address-back", severity: "info", message: `address ${address} is there again` });
  }
}
