// budget: 2400 s
/**
 * Power cuts of disks with a volatile cache. What an installation from the medium, and the first boot after it, sent to
 * the disks was logged write by write; each cut is a flush and a random subset of the writes after it. What the next boot
 * would find is checked offline, hundreds of times; one is booted (ten in power-cuts.vm.test.ts).
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseDocument } from "../../config/load.ts";
import { bootInstallCut } from "../qemu/harness/boot-cut.ts";
import { loggedFirstBoot } from "../qemu/harness/logged-first-boot.ts";
import { checkInstallCut, environmentOf, finishedDisk, isForGrub } from "../qemu/harness/cut-install.ts";
import { checkProvisionCut } from "../qemu/harness/cut-provision.ts";
import { MIRRORED_NODE } from "../qemu/harness/documents.ts";
import { testImage } from "../qemu/harness/image.ts";
import { installationLog } from "../qemu/harness/installed.ts";
import { chooseCuts, isTableWrite, ReplayedImage } from "../qemu/harness/replayed-image.ts";
import { readWriteLog } from "../qemu/harness/write-log.ts";

const SEED = 20261130;
const CUTS = 300;

const image = await testImage();
const directory = mkdtempSync(join(tmpdir(), "corium-power-"));
afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

const { log: path, bystanderLog, sizeBytes } = await installationLog(image);
const installLog = readWriteLog(path);
const whole = new ReplayedImage(installLog);
whole.finish();
const finished = finishedDisk(whole.view(0, sizeBytes));
const installCuts = chooseCuts(installLog, { count: CUTS, seed: SEED, isCritical: isTableWrite(sizeBytes) });
const checkInstall = async (ignoredFlushes = 0, limit = 4) => {
  const replayed = new ReplayedImage(installLog);
  const results = [];
  for (const cut of installCuts) {
    replayed.cutAt({ ...cut, ignoredFlushes });
    results.push({ cut, ...(await checkInstallCut(replayed.view(0, sizeBytes), finished, join(directory, "cut"))) });
    if (results.filter(({ problems }) => problems.length > 0).length >= limit) break;
  }
  return results;
};

describe("an installation", () => {
  test("cut anywhere, the disk is blank, gone on with as what it was begun as, or installed as a whole", async () => {
    const results = await checkInstall();
    expect(results.filter(({ problems }) => problems.length > 0)).toEqual([]);
    const found = results.map((each) => each.found);
    expect(new Set(found)).toEqual(new Set(["blank", "begun", "installed"]));
    expect(found.length).toBeGreaterThan(CUTS);
    // The installation restarted the machine: what it had reported was durable.
    expect(found.at(-1)).toBe("installed");
  }, 800_000);

  test("the check can fail: a disk that ignored its last flushes is found out", async () => {
    const results = await checkInstall(12, 1);
    expect(results.filter(({ problems }) => problems.length > 0).length).toBeGreaterThan(0);
  }, 800_000);

  test("no other disk was written", () =>
    expect(statSync(bystanderLog).size === 0 || readWriteLog(bystanderLog).entries.length === 0).toBe(true));

  test("cut where the boot environment has a name and no content, it is installed by the next boot, without a second consent", async () => {
    const replayed = new ReplayedImage(installLog);
    const cut = installCuts.find((each) => {
      if (each.at < installLog.entries.length / 2) return false;
      replayed.cutAt(each);
      const environment = environmentOf(replayed.view(0, sizeBytes), finished, join(directory, "cut"));
      return environment !== undefined && !isForGrub(environment);
    });
    // Of another installation's log no cut may hit that moment: then one late in it.
    const chosen = cut ?? installCuts.find(({ at }) => at > installLog.entries.length * 0.6);
    if (chosen === undefined) throw new Error("no cut");
    process.stdout.write(
      `cut after entry ${chosen.at}${cut === undefined ? "" : ", the boot environment without content"}\n`,
    );
    await bootInstallCut({ image, log: installLog, cut: chosen, sizeBytes, finished, directory });
  }, 900_000);
});

describe("the storage of a first boot", () => {
  test("cut anywhere, the next boot goes on under the same UUIDs and refuses nothing; the control is found out", async () => {
    const logged = await loggedFirstBoot(image, directory);
    const log = readWriteLog(logged.log);
    const bystander = logged.disks.at(-1);
    const touched = log.entries.filter(
      ({ sector, sectors }) => sectors > 0 && (sector + sectors) * log.sectorBytes > (bystander?.offsetBytes ?? 0),
    );
    expect(touched).toEqual([]);
    const parsed = parseDocument(MIRRORED_NODE, { nowMs: Date.now() });
    if (parsed.document === undefined) throw new Error("the document is refused");
    const { document } = parsed;
    const cuts = chooseCuts(log, { count: CUTS, seed: SEED });
    const check = async (ignoredFlushes: number, limit: number) => {
      const replayed = new ReplayedImage(log, logged.base);
      const results = [];
      for (const cut of cuts) {
        replayed.cutAt({ ...cut, ignoredFlushes });
        const views = logged.disks.map((disk) => ({
          serial: disk.serial,
          view: replayed.view(disk.offsetBytes, disk.sizeBytes),
        }));
        const [system, ...data] = views;
        if (system === undefined) throw new Error("no system disk");
        const result = await checkProvisionCut({ system: system.view, data }, document, join(directory, "cut"));
        results.push({ cut, ...result });
        if (results.filter(({ problems }) => problems.length > 0).length >= limit) break;
      }
      return results;
    };
    const results = await check(0, 4);
    expect(results.filter(({ problems }) => problems.length > 0)).toEqual([]);
    expect(results).toHaveLength(cuts.length);
    const steps = results.map((each) => each.steps.join(" "));
    process.stdout.write(
      `${cuts.length} cuts of ${log.entries.length} writes: ${JSON.stringify([...new Set(steps)])}\n`,
    );
    expect(new Set(steps).size).toBeGreaterThan(1);
    const control = await check(200, 1);
    expect(control.some(({ problems }) => problems.length > 0)).toBe(true);
  }, 1_800_000);
});
