/** Reads what a reset is planned from: the records, the machine, the cluster. Changes nothing. */
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Inventory } from "../kit/disk.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import { readMountUnits } from "../provision/reset/driver.ts";
import { readStanding } from "../provision/reset/leave/driver.ts";
import type { Standing } from "../provision/reset/model.ts";
import type { ResetPlan } from "../provision/reset/plan.ts";
import { planReset } from "../provision/reset/plan.ts";
import type { State } from "../state/open.ts";
import { documentReader } from "./known-document.ts";
import { readMachine } from "./machine.ts";

export interface ResetReading {
  readonly host: Host;
  /** Absent: the records can't be read. */
  readonly state?: State;
  readonly readInventory: () => Promise<Result<Inventory, AppError>>;
}

export interface ReadReset {
  readonly hostname: string;
  readonly plan: ResetPlan;
}

export async function readNodeStanding({ host, state }: ResetReading): Promise<Result<Standing, AppError>> {
  const document = state === undefined ? undefined : documentReader(state)()?.document;
  const peerAddress = state?.baseline.get()?.addresses.peerAddress;
  const hostname = state?.baseline.get()?.hostname ?? (await readMachine(host)).hostname;
  // Without it the own member would not be found, and taken for one that has left.
  if (hostname === "") return fail("hostname", "the host name can't be read");
  return readStanding(host, {
    hostname,
    isInService: state?.baseline.get() !== undefined,
    ...(document === undefined ? {} : { storage: document.storage.type }),
    ...(document?.role === undefined ? {} : { role: document.role }),
    ...(peerAddress === undefined ? {} : { peerAddress }),
  });
}

export async function readReset(
  reading: ResetReading,
  standing: Standing,
  isWipingDisks: boolean,
): Promise<Result<ReadReset, AppError>> {
  const { host, state } = reading;
  const [machine, inventory, mounts] = [
    await readMachine(host),
    await reading.readInventory(),
    await readMountUnits(host),
  ];
  if (!inventory.ok) return inventory;
  if (!mounts.ok) return mounts;
  const document = state === undefined ? undefined : documentReader(state)()?.document;
  const plan = planReset({
    hostname: machine.hostname,
    standing,
    isWipingDisks,
    owned: state?.owned.list() ?? [],
    inventory: inventory.value,
    mounts: mounts.value,
    passphraseVolumes: (document?.luks ?? []).filter(({ unlock }) => unlock === "passphrase").map(({ name }) => name),
    ...(document === undefined ? {} : { cluster: document.cluster.name }),
    ...(document?.role === undefined ? {} : { role: document.role }),
  });
  return ok({ hostname: machine.hostname, plan });
}
