/** A node that runs from a disk, and a document that says which disk it should have been installed onto. */
import { describeDevice, isUnstableDevice } from "../config/device.ts";
import type { Document } from "../config/document.ts";
import { describeDisk } from "../disks/describe.ts";
import { fitsDevice } from "../disks/select.ts";
import type { Inventory } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";

/** A warning only: the disk is chosen by the live system, and here it is too late to choose another. */
export function lintInstalled({ install }: Pick<Document, "install">, inventory: Inventory): readonly Finding[] {
  if (install === undefined) return [];
  const { disk: wanted } = install;
  // A kernel name was right when it was written, and names another disk since.
  if (typeof wanted === "string" && isUnstableDevice(wanted)) return [];
  const running = inventory.disks.filter((disk) => disk.isSystemDisk);
  if (running.length === 0 || running.some((disk) => fitsDevice(wanted, disk, inventory))) return [];
  return [
    {
      severity: "warning",
      code: "installed-elsewhere",
      path: "install.disk",
      message: `install.disk is ${describeDevice(wanted)}, but this node runs from ${running.map(describeDisk).join(", ")}`,
      hint: "nothing is moved: boot the live system to install onto the other disk, or correct install.disk",
    },
  ];
}
