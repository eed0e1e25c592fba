/** A disk as a cut of an installation left it is booted from the medium again, to the end. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { readAt } from "./disk.ts";
import type { Finished } from "./cut-install.ts";
import { checkInstallCut, finishedDisk } from "./cut-install.ts";
import { liveBoot, type TestImage } from "./image.ts";
import { type GptPartition, readGpt } from "./gpt.ts";
import { ReplayedImage } from "./replayed-image.ts";
import { INSTALL_DOCUMENT } from "./installed.ts";
import { withVm } from "./vm.ts";
import type { Cut, WriteLog } from "./write-log.ts";

export interface CutBoot {
  readonly image: TestImage;
  readonly log: WriteLog;
  readonly cut: Cut;
  readonly sizeBytes: number;
  readonly finished: Finished;
  readonly directory: string;
}

/**
 * Ends with the machine's restart; the disk then has the same names and UUIDs as without the cut. Where nothing had been
 * written yet there was nothing to go on with: names and places are the same, the UUIDs those of a new installation.
 */
export async function bootInstallCut({ image, log, cut, sizeBytes, finished, directory }: CutBoot): Promise<void> {
  const replayed = new ReplayedImage(log);
  replayed.cutAt(cut);
  const view = replayed.view(0, sizeBytes);
  const { found } = await checkInstallCut(view, finished, directory);
  const path = view.extract(join(directory, `cut-${cut.at}.raw`));
  const disks = [{ serial: "system", path }];
  const live = liveBoot(image, { document: INSTALL_DOCUMENT });
  await withVm({ name: `cut-${cut.at}`, memoryMiB: 1536, disks, isRebootExit: true, ...live }, async (vm) => {
    await vm.console.expect(/reboot: Restarting system/, 900_000);
    await vm.waitExit(120_000);
  });
  const table = readGpt((offset, length) => readAt(path, offset, length), sizeBytes);
  const seen = (partitions: readonly GptPartition[] | undefined): string =>
    JSON.stringify(found === "blank" ? partitions?.map((each) => ({ ...each, partUuid: "new" })) : partitions);
  const wanted = finishedDisk(finished.view).partitions;
  const isWhole = JSON.stringify(table.primary) === JSON.stringify(table.backup);
  if (!isWhole || seen(table.primary) !== seen(wanted))
    throw new Error(
      `cut at ${cut.at} (${found}): the table is ${JSON.stringify(table)} instead of ${JSON.stringify(wanted)}`,
    );
  rmSync(path);
}
