// budget: 2400 s, last
/** Ten cuts of one installation, each booted from the medium again: nightly/write-logs.vm.test.ts boots one. */
import { afterAll, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bootInstallCut } from "./harness/boot-cut.ts";
import { finishedDisk } from "./harness/cut-install.ts";
import { testImage } from "./harness/image.ts";
import { installationLog } from "./harness/installed.ts";
import { chooseCuts, isTableWrite, ReplayedImage } from "./harness/replayed-image.ts";
import { readWriteLog } from "./harness/write-log.ts";

const SEED = 20261130;

const image = await testImage();
const directory = mkdtempSync(join(tmpdir(), "corium-cut-boots-"));
afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});
const { log: path, sizeBytes } = await installationLog(image);
const log = readWriteLog(path);
const whole = new ReplayedImage(log);
whole.finish();
const finished = finishedDisk(whole.view(0, sizeBytes));

// Of those beside the table, where a cut is worst, one in three; the others anywhere.
const beside = chooseCuts(log, { count: 0, seed: SEED, isCritical: isTableWrite(sizeBytes) });
const anywhere = chooseCuts(log, { count: 10, seed: SEED + 1 });
const chosen = [...beside.filter((_, index) => index % 3 === 1).slice(0, 4), ...anywhere].slice(0, 10);

test.each(chosen.map((cut) => [cut.at, cut] as const))(
  `cut after entry %i of ${log.entries.length}: installed without a second consent, as what it was begun as`,
  (_, cut) => bootInstallCut({ image, log, cut, sizeBytes, finished, directory }),
  1_000_000,
);
