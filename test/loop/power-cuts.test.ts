/**
 * An installation by the real tools onto a disk with a volatile cache: each cut is a flush of its log and a random subset
 * of the writes after it. Hundreds are looked at as the next boot does, some are gone on with.
 */
// budget: 900 s
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { standingOf } from "../../provision/install/standing.ts";
import { checkInstallCut, finishedDisk } from "../qemu/harness/cut-install.ts";
import { chooseCuts, isTableWrite, ReplayedImage } from "../qemu/harness/replayed-image.ts";
import { readWriteLog, type WriteLog } from "../qemu/harness/write-log.ts";
import {
  boot,
  detachAll,
  dropMedium,
  errorOf,
  install,
  inventoryOf,
  makeMedium,
  MIB,
  SIZE_MIB,
} from "./install-rig.ts";
import { attachFile, whyNoLoop } from "./loop-device.ts";
import { attachLogged, whyNoLog } from "./logged-device.ts";

const reason =
  whyNoLoop("mkfs.ext4", "mkfs.vfat", "sfdisk", "partx", "cmp", "mount", "mcopy", "debugfs", "e2fsck") ?? whyNoLog();
if (reason !== undefined) process.stderr.write(`skipped test/loop: ${reason}\n`);

const SEED = 20261130;
const sizeBytes = SIZE_MIB * MIB;
const directory = mkdtempSync(join(tmpdir(), "corium-cuts-"));
beforeAll(makeMedium);
afterAll(dropMedium);
afterAll(() => rmSync(directory, { recursive: true, force: true }));
afterEach(detachAll);

async function logged(): Promise<WriteLog> {
  const device = await attachLogged(SIZE_MIB);
  try {
    expect(errorOf(await install([device]))).toBe("");
  } finally {
    device.detach();
  }
  await Bun.sleep(1_000);
  const log = readWriteLog(device.log);
  device.drop();
  return log;
}

describe.skipIf(reason !== undefined)(
  "an installation [needs root, loop devices, qemu-storage-daemon, /dev/fuse]",
  () => {
    test("B109: power lost anywhere: nothing is refused, nothing half-made passes for whole, and it goes on to the end", async () => {
      const log = await logged();
      const whole = new ReplayedImage(log);
      whole.finish();
      const finished = finishedDisk(whole.view(0, sizeBytes));
      const cuts = chooseCuts(log, { count: 300, seed: SEED, isCritical: isTableWrite(sizeBytes) });
      // The rig writes FAT with mtools, in no order that a kernel would keep: of it nothing is asked.
      const check = async (ignoredFlushes: number, limit: number) => {
        const image = new ReplayedImage(log);
        const results = [];
        for (const cut of cuts) {
          image.cutAt({ ...cut, ignoredFlushes });
          const folder = join(directory, "cut");
          results.push({
            cut,
            ...(await checkInstallCut(image.view(0, sizeBytes), finished, folder, { hasFat: false })),
          });
          if (results.filter(({ problems }) => problems.length > 0).length >= limit) break;
        }
        return results;
      };
      const results = await check(0, 4);
      expect(results.filter(({ problems }) => problems.length > 0)).toEqual([]);
      expect(new Set(results.map(({ found }) => found))).toEqual(new Set(["blank", "begun", "installed"]));
      expect(results.at(-1)?.found).toBe("installed");
      // The control: disks that ignore flushes are found out.
      expect((await check(12, 1)).some(({ problems }) => problems.length > 0)).toBe(true);

      const begun = results.filter(({ found }) => found === "begun");
      const stride = Math.ceil(begun.length / 6);
      const image = new ReplayedImage(log);
      for (const { cut } of begun.filter((_, index) => index % stride === 0)) {
        image.cutAt(cut);
        const device = attachFile(image.view(0, sizeBytes).extract(join(directory, "disk.raw")));
        try {
          boot([device]);
          const run = await install([device]);
          const refusals = run.plan.findings.filter(({ severity }) => severity === "error");
          expect({ cut, refusals, error: errorOf(run) }).toEqual({ cut, refusals: [], error: "" });
          const inventory = await inventoryOf([device]);
          expect(inventory.ok && inventory.value.disks.map(standingOf)).toEqual(["installed"]);
        } finally {
          device.detach();
        }
      }
    }, 850_000);
  },
);
