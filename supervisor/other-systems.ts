/**
 * Another installed Corium in the machine is said, once per boot: nothing of it is used, and whoever put it in may have
 * meant something else. A disk with the very partitions of the system's own is a copy, and dangerous.
 */
import { describeDisk } from "../disks/describe.ts";
import type { AppError } from "../kit/app-error.ts";
import { formatError } from "../kit/app-error.ts";
import type { Disk, Inventory } from "../kit/disk.ts";
import type { BootFacts } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { standingOf } from "../provision/install/standing.ts";
import type { State } from "../state/open.ts";

export interface OtherSystems {
  readonly host: Pick<Host, "clock">;
  readonly state: Pick<State, "events" | "meta" | "bootId">;
  readonly boot: BootFacts;
  readonly inventory: () => Promise<Result<Inventory, AppError>>;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Looking at every disk has time until the boot is over. */
const LOOK_AFTER_MS = 30_000;
const SAID = "said-other-systems";

export async function reportOtherSystems(look: OtherSystems): Promise<void> {
  const { host, state, boot, say, signal } = look;
  if (boot.mode !== "disk" || state.meta.get(SAID) === state.bootId) return;
  await host.clock.sleep(LOOK_AFTER_MS, signal);
  if (signal.aborted) return;
  const inventory = await look.inventory();
  if (signal.aborted) return;
  if (!inventory.ok) return say(formatError(inventory.error));
  state.meta.set(SAID, state.bootId);
  for (const disk of inventory.value.disks.filter((each) => !each.isSystemDisk)) {
    const message = messageOn(disk, boot);
    if (message !== undefined)
      state.events.add({ atMs: host.clock.nowMs(), kind: "other-system", severity: "warning", message });
  }
}

function messageOn(disk: Disk, { partUuids }: BootFacts): string | undefined {
  const own = new Set(Object.values(partUuids ?? {}).map((each) => each.toLowerCase()));
  if (disk.partitions.some(({ partUuid }) => partUuid !== undefined && own.has(partUuid.toLowerCase())))
    return `disk ${describeDisk(disk)} has the same partitions as the disk of this system: a copy of it; take it out, or the next start may mix the two`;
  if (standingOf(disk) !== "installed") return undefined;
  return `disk ${describeDisk(disk)} holds another installed Corium; nothing of it is used`;
}
