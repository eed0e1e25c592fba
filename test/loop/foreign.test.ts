/**
 * Whatever makes a disk hold data, on a real block device: seen by the real tools through the inventory, refused by
 * name without consent, blank after a wipe; and a disk beside it that nobody named keeps each of its bytes.
 */
// budget: 400 s
import { spawnSync } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readInventory } from "../../disks/driver.ts";
import type { DiskWipeStep } from "../../disks/model.ts";
import { diskExecutors } from "../../disks/steps/driver.ts";
import { realHost } from "../../host/real.ts";
import { formatError } from "../../kit/app-error.ts";
import type { AppError } from "../../kit/app-error.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import type { Host } from "../../kit/ports.ts";
import type { Result } from "../../kit/result.ts";
import type { StepContext } from "../../kit/step.ts";
import type { StoragePlan } from "../../provision/storage.ts";
import { planStorage } from "../../provision/storage.ts";
import { countedUuids, plainDisk, storageDocument } from "../machines/machines.ts";
import { contents } from "./contents.ts";
import type { LoopDevice } from "./loop-device.ts";
import { attach, sh, whyNoLoop } from "./loop-device.ts";

const reason = whyNoLoop("sfdisk", "partx", "mkfs.ext4", "mdadm");
if (reason !== undefined) process.stderr.write(`skipped test/loop: ${reason}\n`);

// Real tools on real devices: slow when the machine is busy, and no verdict on the code.
setDefaultTimeout(120_000);

const MIB = 1024 * 1024;
const real = realHost();
// Nobody here has to be waited for.
const host: Host = { ...real, clock: { ...real.clock, sleep: async () => {} } };
const context: StepContext = { host, secrets: new Map(), report: () => {} };
const attached: LoopDevice[] = [];
afterEach(() => {
  for (const device of attached.splice(0)) device.detach();
});

function value<T>(result: Result<T, AppError>): T {
  if (!result.ok) throw new Error(formatError(result.error));
  return result.value;
}

/** Loop devices have no serial: their path stands in for it. */
async function inventory(): Promise<Inventory> {
  const read = value(await readInventory(host, { mode: "disk" }, { diskTypes: ["loop"] }));
  const paths = attached.map((device) => device.path);
  const disks = read.disks
    .filter((each) => paths.includes(each.path))
    .map((each): Disk => ({ ...each, identity: { ...each.identity, serial: each.path } }));
  return { ...read, disks };
}

const plan = (machine: Inventory, device: LoopDevice, wipe: boolean): StoragePlan =>
  planStorage({
    document: storageDocument({ disks: [plainDisk({ device: device.path, wipe })] }),
    inventory: machine,
    owned: [],
    intents: [],
    uuid: countedUuids(),
  });

const errors = (result: StoragePlan) => result.findings.filter((each) => each.severity === "error");

describe.skipIf(reason !== undefined)(
  "B015: a disk that holds data is refused for what is on it, and blank after a wipe",
  () => {
    for (const [what, content] of Object.entries(contents)) {
      const { types, sizeMib = 24, needs = [], make } = content;
      const missing = needs.filter((tool) => Bun.which(tool) === null);
      if (missing.length > 0) process.stderr.write(`skipped ${what}: needs ${missing.join(", ")}\n`);

      test.skipIf(missing.length > 0)(what, async () => {
        const device = attach(sizeMib);
        const bystander = attach(16);
        attached.push(device, bystander);
        sh("mkfs.ext4", "-q", "-F", "-L", "bystander", bystander.path);
        const untouched = bystander.digest();
        make(device, sizeMib * MIB);
        const before = device.digest();

        const machine = await inventory();
        const [refusal, ...more] = errors(plan(machine, device, false));
        expect(more).toEqual([]);
        expect(refusal).toMatchObject({ code: "holds-data", path: "disks[0].device" });
        for (const type of types) expect(refusal?.message).toMatch(new RegExp(`(: |, )${type} `));
        expect(refusal?.message.length).toBeLessThan(600);
        expect(device.digest()).toBe(before);

        const consented = plan(machine, device, true);
        expect(errors(consented)).toEqual([]);
        const step = consented.steps[0] as DiskWipeStep;
        expect(step).toMatchObject({ kind: "disk:wipe", device: { path: device.path } });
        // The stand-in for a serial is not the device's own.
        const bare = { ...step, device: { path: device.path } };
        const executor = diskExecutors["disk:wipe"];
        expect(value(await executor.check(bare, context))).toBe("todo");
        expect(device.digest()).toBe(before);
        value(await executor.run(bare, context));
        expect(value(await executor.check(bare, context))).toBe("done");

        expect(sh("wipefs", device.path)).toBe("");
        expect(spawnSync("blkid", ["-p", device.path]).status).toBe(2);
        const after = await inventory();
        expect(after.disks.find((each) => each.path === device.path)).toMatchObject({ signatures: [], partitions: [] });
        expect(plan(after, device, false).steps.map((each) => each.kind)).toEqual(["disk:filesystem", "disk:mount"]);
        expect(bystander.digest()).toBe(untouched);
      });
    }
  },
);

describe.skipIf(reason !== undefined)("a disk that somebody has open", () => {
  const bareStep = ({ path }: LoopDevice): DiskWipeStep => ({
    kind: "disk:wipe",
    id: "disk:x:wipe",
    title: "wipe",
    device: { path },
    destroys: [],
  });
  // What a partitioner or a probe of udev does: nobody else gets the device for itself.
  const hold = ({ path }: LoopDevice): number => openSync(path, constants.O_RDONLY | constants.O_EXCL);

  test("B016: a probe in the background is waited for", async () => {
    const device = attach(24);
    attached.push(device);
    sh("mkfs.ext4", "-q", "-F", device.path);
    const file = hold(device);
    let waits = 0;
    const sleep = async (): Promise<void> => {
      if ((waits += 1) === 2) closeSync(file);
    };
    const waiting = { ...context, host: { ...real, clock: { ...real.clock, sleep } } };
    value(await diskExecutors["disk:wipe"].run(bareStep(device), waiting));
    expect(waits).toBe(2);
    expect(sh("wipefs", device.path)).toBe("");
  });

  test("B016: who keeps it ends the wipe, which has changed nothing", async () => {
    const device = attach(24);
    attached.push(device);
    sh("mkfs.ext4", "-q", "-F", device.path);
    const before = device.digest();
    const file = hold(device);
    try {
      expect(await diskExecutors["disk:wipe"].run(bareStep(device), context)).toMatchObject({
        ok: false,
        error: { code: "wipe-failed", hint: "something still uses the disk; it was left as it is" },
      });
    } finally {
      closeSync(file);
    }
    expect(device.digest()).toBe(before);
  });
});
