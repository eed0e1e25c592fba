/**
 * Any document on any machine with any memory of earlier runs: a plan never reaches beyond the disks that the document
 * consented to. Each property is first shown planners that break it.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { DeviceRef } from "../../config/document.ts";
import { fitsDevice } from "../../disks/select.ts";
import type { Inventory } from "../../kit/disk.ts";
import type { StepBase } from "../../kit/step.ts";
import type { StorageInput, StoragePlan, StorageStep } from "../../provision/storage.ts";
import { planStorage } from "../../provision/storage.ts";
import type { Intent } from "../../state/model.ts";
import { afterStep } from "./after.ts";
import { drawCase, freshUuids, inputOf, intentOf, tell } from "./cases.ts";
import type { StorageDocument } from "./generated.ts";
import { areVolumesThere, drawReference } from "./generated.ts";
import { install } from "./judged.ts";
import { machine, machineNames, recordedMachine, storageDocument } from "./machines.ts";
import { replay } from "./recorded.ts";
import { broken } from "./storage-rules.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

type Planner = (input: StorageInput) => StoragePlan;

/** What `fc.gen` drew shrinks badly and slowly; the seed finds it again. */
const runs = { numRuns: 3000, endOnFailure: true, includeErrorInReport: true };

const ids = (plan: StoragePlan): readonly string[] => plan.steps.map((step) => step.id);

const keepsToConsent = (planner: Planner) =>
  fc.property(fc.gen(), (g) => {
    const drawn = drawCase(g, areVolumesThere);
    const complaints = broken(planner(inputOf(drawn)).steps, drawn.document, drawn.inventory, drawn.memory);
    if (complaints.length > 0) throw new Error(`${complaints.join("\n")}\n${tell(drawn)}`);
  });

const sameAgain = (planner: Planner) =>
  fc.property(fc.gen(), (g) => {
    const drawn = drawCase(g);
    const first = planner(inputOf(drawn));
    const count = g(fc.nat, { max: first.steps.length });
    let { inventory } = drawn;
    const intents: Intent[] = [...drawn.memory.intents];
    const begun = new Set<string>();
    for (const [at, step] of first.steps.slice(0, count + 1).entries()) {
      const isWhole = at < count;
      inventory = afterStep(inventory, step, isWhole || g(fc.boolean));
      if ((step.destroys ?? []).length === 0) continue;
      begun.add(step.id);
      // The journal has one row for each step.
      const earlier = intents.findIndex((each) => each.stepId === step.id);
      if (earlier >= 0) intents.splice(earlier, 1);
      intents.push(intentOf(step, !isWhole));
    }
    const again = planner({ ...inputOf(drawn), inventory, intents, uuid: freshUuids("eeeeeeee") });
    const chosen = (plan: StoragePlan): Readonly<Record<string, unknown>> =>
      Object.fromEntries(
        plan.owned
          // Of a raw disk the UUID is on no disk, and of no consequence.
          .filter((each) => each.kind !== "disk" || each.filesystemUuid !== undefined)
          .map((each) => [`${each.kind} ${each.name}`, [each.uuid, each.filesystemUuid]]),
      );
    for (const step of again.steps) {
      const before = first.steps.find((each) => each.id === step.id);
      if (before === undefined || !begun.has(step.id) || !("uuid" in step) || !("uuid" in before)) continue;
      if (step.uuid !== before.uuid)
        throw new Error(
          `${step.id} gets another UUID\n${tell({ ...drawn, inventory, memory: { ...drawn.memory, intents } })}`,
        );
    }
    // With all of it done there is nothing left to destroy, and it is the same storage.
    if (count === first.steps.length && first.steps.length > 0) {
      expect(again.findings.filter((each) => each.severity === "error")).toEqual([]);
      expect(chosen(again)).toEqual(chosen(first));
      expect(ids(again).filter((id) => /:(wipe|create|filesystem)\b/.test(id))).toEqual([]);
    }
  });

/** Kernel names dealt anew among disks that keep everything else. */
function renamed(inventory: Inventory, order: readonly string[]): Inventory {
  const paths = inventory.disks.map((disk) => disk.path);
  const name = new Map(paths.map((path, at) => [path, order[at] ?? path]));
  const move = (path: string): string => {
    const disk = inventory.disks.find((each) => each.path === path || each.partitions.some((p) => p.path === path));
    if (disk === undefined) return path;
    return path === disk.path ? (name.get(path) ?? path) : `${name.get(disk.path)}-${path.slice(5)}`;
  };
  const disks = inventory.disks.map((disk) => ({
    ...disk,
    path: move(disk.path),
    partitions: disk.partitions.map((part) => ({ ...part, path: move(part.path) })),
    signatures: disk.signatures.map((each) => ({ ...each, device: move(each.device) })),
  }));
  return {
    ...inventory,
    disks: disks.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    arrays: inventory.arrays.map((array) => ({ ...array, memberPaths: array.memberPaths.map(move).toSorted() })),
    unknown: inventory.unknown.map((line) => line.replace(/^(\/dev\/[^:]+)/, (path) => move(path))),
  };
}

const hasKernelName = (document: StorageDocument): boolean =>
  [
    ...document.disks.map((each) => each.device),
    ...document.raid.flatMap((each) => [...each.devices, ...each.spares]),
  ].some((ref) => typeof ref === "string" && !ref.startsWith("/dev/disk/"));

/** What is done, to whom, in which order; titles and paths are for people. */
const meaning = (steps: readonly StorageStep[]): readonly unknown[] =>
  steps.map((step) =>
    JSON.parse(JSON.stringify(step, (key, value: unknown) => (key === "title" || key === "path" ? undefined : value))),
  );

const sameWhateverTheNames = (planner: Planner) =>
  fc.property(fc.gen(), (g) => {
    const drawn = drawCase(g);
    if (hasKernelName(drawn.document)) return;
    const paths = drawn.inventory.disks.map((disk) => disk.path);
    const order = g(() => fc.shuffledSubarray(paths, { minLength: paths.length }));
    const plan = planner(inputOf(drawn));
    const other = planner(inputOf({ ...drawn, inventory: renamed(drawn.inventory, order) }));
    expect(meaning(other.steps)).toEqual(meaning(plan.steps));
    const codes = (each: StoragePlan): readonly string[] => each.findings.map(({ code, path }) => `${code} ${path}`);
    expect(codes(other).toSorted()).toEqual(codes(plan).toSorted());
  });

const withDisks = (input: StorageInput, edit: (disk: Inventory["disks"][number]) => object): StorageInput => ({
  ...input,
  inventory: { ...input.inventory, disks: input.inventory.disks.map((disk) => ({ ...disk, ...edit(disk) })) },
});

/** Planners with one check less, each of which a property must catch. */
const careless: Readonly<Record<string, Planner>> = {
  "sees no users": (input) => planStorage(withDisks(input, () => ({ users: [] }))),
  "sees no signatures": (input) => planStorage(withDisks(input, () => ({ signatures: [], partitions: [] }))),
  "knows no system disk": (input) => planStorage(withDisks(input, () => ({ isSystemDisk: false, users: [] }))),
  "knows no medium": (input) => planStorage(withDisks(input, () => ({ isBootMedium: false, users: [] }))),
  "takes consent for granted": (input) => {
    const { disks, raid } = input.document;
    const wipe = true;
    const document = {
      ...input.document,
      disks: disks.map((each) => ({ ...each, wipe })),
      raid: raid.map((each) => ({ ...each, wipe })),
    };
    return planStorage({ ...input, document });
  },
  "wipes what is its own": (input) => planStorage({ ...input, ownLossSinceMs: 1000 }),
  "takes the neighbour": (input) => {
    const plan = planStorage(input);
    const [disk] = input.inventory.disks;
    const steps = plan.steps.map((step) =>
      step.kind === "disk:wipe" && disk !== undefined ? { ...step, device: { ...step.device, path: disk.path } } : step,
    );
    return { ...plan, steps };
  },
  "does not say whom it destroys": (input) => {
    const plan = planStorage(input);
    return { ...plan, steps: plan.steps.map((step) => ("destroys" in step ? { ...step, destroys: [] } : step)) };
  },
  "destroys one disk more than it says": (input) => {
    const plan = planStorage(input);
    const steps = plan.steps.map((step) =>
      step.kind === "raid:create" ? { ...step, destroys: step.destroys.slice(1) } : step,
    );
    return { ...plan, steps };
  },
};

describe("a plan never reaches beyond what the document consented to", () => {
  test("whatever the machine, the document and the memory", () => {
    const seen = { destroying: 0, resuming: 0, refused: 0 };
    const watched: Planner = (input) => {
      const plan = planStorage(input);
      const isDestroying = plan.steps.some((step) => (step.destroys ?? []).length > 0);
      if (isDestroying) seen.destroying += 1;
      if (isDestroying && input.intents.length > 0) seen.resuming += 1;
      if (plan.steps.length === 0) seen.refused += 1;
      return plan;
    };
    fc.assert(keepsToConsent(watched), runs);
    // Cases of each kind by the hundred: a property of refusals alone would hold for a planner that does nothing.
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(runs.numRuns / 50);
  }, 120_000);

  for (const [what, planner] of Object.entries(careless)) {
    test(`a planner that ${what} is found out`, () => {
      expect(fc.check(keepsToConsent(planner), runs).failed).toBe(true);
    }, 120_000);
  }
});

type Installer = (
  inventory: Inventory,
  disk: DeviceRef,
  wipe: boolean,
  mirror?: DeviceRef,
) => { readonly steps: readonly StepBase[] };

const installsOntoTheDisk = (installer: Installer) =>
  fc.property(fc.gen(), (g) => {
    const inventory = machine(g(() => fc.constantFrom(...machineNames)));
    const disk = drawReference(g, fc, inventory.disks);
    const wipe = g(fc.boolean);
    const mirror = g(fc.boolean) ? drawReference(g, fc, inventory.disks) : undefined;
    const document = { ...storageDocument({}), install: { disk, wipe, ...(mirror === undefined ? {} : { mirror }) } };
    const { steps } = installer(inventory, disk, wipe, mirror);
    expect(broken(steps, document, inventory, { owned: [], intents: [] })).toEqual([]);
  });

const carelessInstallers: Readonly<Record<string, Installer>> = {
  "takes consent for granted": (inventory, disk, _wipe, mirror) => install(inventory, disk, true, mirror),
  "does not know an installed Corium": (inventory, disk, wipe) => {
    const disks = inventory.disks.map((each) => ({ ...each, partitions: each.partitions.slice(0, 1) }));
    return install({ ...inventory, disks }, disk, wipe);
  },
  "takes the first disk that fits": (inventory, disk, wipe) => {
    const [first] = inventory.disks.filter((each) => fitsDevice(disk, each, inventory));
    return install(inventory, first?.path ?? disk, wipe);
  },
};

describe("an installation reaches no other disk than the one it was given", () => {
  test("whatever the machine and the selector", () => {
    fc.assert(installsOntoTheDisk(install), runs);
  }, 120_000);

  for (const [what, installer] of Object.entries(carelessInstallers)) {
    test(`an installer that ${what} is found out`, () => {
      expect(fc.check(installsOntoTheDisk(installer), runs).failed).toBe(true);
    }, 120_000);
  }
});

describe("a plan that was broken off is gone on with", () => {
  test("planned again with the open intents it is the same storage under the same UUIDs", () => {
    fc.assert(sameAgain(planStorage), runs);
  }, 120_000);

  test("a planner that forgets the intents is found out", () => {
    const forgetful: Planner = (input) => planStorage({ ...input, intents: [] });
    expect(fc.check(sameAgain(forgetful), runs).failed).toBe(true);
  }, 120_000);
});

describe("discovery order decides nothing", () => {
  test("kernel names dealt anew: the same steps on the same disks", () => {
    fc.assert(sameWhateverTheNames(planStorage), runs);
  }, 120_000);

  test("a planner that goes by kernel names is found out", () => {
    const byName: Planner = (input) =>
      planStorage(withDisks(input, (disk) => ({ identity: { ...disk.identity, serial: disk.path } })));
    expect(fc.check(sameWhateverTheNames(byName), runs).failed).toBe(true);
  }, 120_000);

  test("lsblk lists the disks in another order: the same inventory", async () => {
    for (const name of machineNames) {
      const recorded = recordedMachine(name);
      const blockdevices = recorded.lsblk.blockdevices.toReversed();
      expect([name, await replay({ ...recorded, lsblk: { blockdevices } })]).toEqual([name, machine(name)]);
    }
  });
});
