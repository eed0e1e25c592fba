/** A machine, a document and what an earlier run left: in the journal, in the records and on the disks. */
import fc from "fast-check";
import type { Inventory } from "../../kit/disk.ts";
import type { StepBase } from "../../kit/step.ts";
import type { StorageInput, StoragePlan } from "../../provision/storage.ts";
import { planStorage } from "../../provision/storage.ts";
import type { Intent } from "../../state/model.ts";
import { afterStep } from "./after.ts";
import type { Memory } from "./consent.ts";
import type { Draw, StorageDocument } from "./generated.ts";
import { drawDocument } from "./generated.ts";
import { countedUuids, machine, machineNames } from "./machines.ts";

export interface Case {
  readonly document: StorageDocument;
  readonly inventory: Inventory;
  readonly memory: Memory;
}

export const intentOf = (step: StepBase, isOpen: boolean): Intent => ({
  stepId: step.id,
  step,
  disks: step.destroys ?? [],
  openedAtMs: 1,
  ...(isOpen ? {} : { closedAtMs: 2 }),
});

/** An earlier run that got as far as it got: what it left on the disks, in the journal and in the records. */
function earlierRun(g: Draw, inventory: Inventory, names: readonly string[], hasVolumes: boolean): Case {
  let document = drawDocument(g, fc, inventory, names, hasVolumes);
  const planned = (): StoragePlan => planStorage({ document, inventory, owned: [], intents: [], uuid: countedUuids() });
  let plan = planned();
  for (let tries = 0; plan.steps.length === 0 && tries < 5; tries += 1) {
    document = drawDocument(g, fc, inventory, names, hasVolumes);
    plan = planned();
  }
  const done = g(fc.nat, { max: plan.steps.length });
  const isCut = g(fc.boolean);
  let left = inventory;
  const intents: Intent[] = [];
  for (const [at, step] of plan.steps.slice(0, isCut ? done + 1 : done).entries()) {
    const isWhole = at < done;
    left = afterStep(left, step, isWhole || g(fc.boolean));
    if ((step.destroys ?? []).length > 0) intents.push(intentOf(step, !isWhole));
  }
  const isRecorded = done === plan.steps.length;
  return { document, inventory: left, memory: { intents, owned: isRecorded ? plan.owned : [] } };
}

export function drawCase(g: Draw, hasVolumes = false): Case {
  const start = machine(g(() => fc.constantFrom(...machineNames)));
  const names = g(() => fc.shuffledSubarray(["data", "logs", "photos"], { minLength: 3 }));
  if (g(fc.boolean)) {
    const memory = { owned: [], intents: [] };
    return { document: drawDocument(g, fc, start, names, hasVolumes), inventory: start, memory };
  }
  const earlier = earlierRun(g, start, names, hasVolumes);
  // The same document again, or another one with the same names.
  return g(fc.boolean) ? earlier : { ...earlier, document: drawDocument(g, fc, earlier.inventory, names, hasVolumes) };
}

/** No UUID is chosen twice: other ones than in the earlier run. */
export function freshUuids(prefix: string): () => string {
  const next = countedUuids();
  return () => `${prefix}${next().slice(prefix.length)}`;
}

export const inputOf = ({ document, inventory, memory }: Case): StorageInput => ({
  document,
  inventory,
  ...memory,
  uuid: freshUuids("dddddddd"),
});

/** What a person needs to see of a case that failed. */
export const tell = ({ document, inventory, memory }: Case): string => {
  const disks = inventory.disks.filter((disk) => disk.signatures.length + disk.users.length > 0);
  return JSON.stringify({ document, memory, arrays: inventory.arrays.slice(0, 5), disks: disks.slice(0, 20) }, null, 1);
};
