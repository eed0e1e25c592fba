/** The first boot of an installed node with its data on a mirror, every write of all its disks in one log. */
import { join } from "node:path";
import { createQcow2, runTool } from "./disk.ts";
import { MIRRORED_NODE } from "./documents.ts";
import type { TestImage } from "./image.ts";
import { synchronizeClock } from "./inside.ts";
import { installedDisk } from "./installed.ts";
import { openOperator } from "./node.ts";
import { withVm } from "./vm.ts";

const MIB = 1024 * 1024;

/** In the order of their places in the image. */
const DISKS = [
  { serial: "system", sizeMiB: 6144, bootIndex: 0 },
  { serial: "data-a", sizeMiB: 512 },
  { serial: "data-b", sizeMiB: 512 },
  { serial: "bystander", sizeMiB: 64 },
];

export interface LoggedBoot {
  readonly log: string;
  /** Raw, as all disks were before. */
  readonly base: string;
  readonly disks: readonly { readonly serial: string; readonly offsetBytes: number; readonly sizeBytes: number }[];
}

export async function loggedFirstBoot(image: TestImage, directory: string): Promise<LoggedBoot> {
  const installed = await installedDisk(image);
  const sizeMiB = DISKS.reduce((sum, disk) => sum + disk.sizeMiB, 0);
  const path = join(directory, "machine.qcow2");
  await createQcow2(path, { backing: installed, backingFormat: "qcow2", sizeMiB });
  const base = join(directory, "before.raw");
  await runTool(["qemu-img", "convert", "-q", "-O", "raw", path, base]);
  const log = join(directory, "first-boot.log");
  const operator = await openOperator();
  try {
    const sharedLog = { path, format: "qcow2" as const, log };
    await withVm({ name: "first-boot-log", memoryMiB: 1536, disks: DISKS, sharedLog, forwards: [7443] }, async (vm) => {
      await vm.shell.waitReady(600_000);
      await synchronizeClock(vm.shell);
      await operator.enroll(vm, "node1", 600_000, MIRRORED_NODE);
      await operator.waitInService("node1", 900_000);
      await vm.kill();
    });
  } finally {
    operator.dispose();
  }
  let offsetBytes = 0;
  const disks = DISKS.map(({ serial, sizeMiB: size }) => {
    const disk = { serial, offsetBytes, sizeBytes: size * MIB };
    offsetBytes += disk.sizeBytes;
    return disk;
  });
  return { log, base, disks };
}
