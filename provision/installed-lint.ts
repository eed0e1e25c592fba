/** A node that runs from a disk, and a document that says which disk it should have been installed onto. */
import { describeDevice, isUnstableDevice } from "../config/device.ts";
import type { Document } from "../config/document.ts";
import { describeDisk } from "../disks/describe.ts";
import { fitsDevice } from "../disks/select.ts";
import type { Inventory } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";

/** A warning only: the disk is chosen by the live system, and here it is too late to choose another. */
export function lintInstalled({ install }: Pick<Document, "install">, inventory: Inventory): readonly Finding[] {
  return install === undefined ? [] : [...lintDisk(install, inventory), ...lintMirror(install, inventory)];
}

type Install = NonNullable<Document["install"]>;

/** The other half may be away today; a system on one disk alone has no members at all. */
function lintMirror({ mirror }: Install, inventory: Inventory): readonly Finding[] {
  const running = inventory.disks.filter((disk) => disk.isSystemDisk);
  const isMirrored = running.some(({ signatures }) => signatures.some(({ type }) => type === "linux_raid_member"));
  if (mirror === undefined || isMirrored || running.length === 0) return [];
  return [
    {
      severity: "warning",
      code: "installed-elsewhere",
      path: "install.mirror",
      message: `install.mirror is ${describeDevice(mirror)}, but this node's system is on ${running.map(describeDisk).join(", ")} alone`,
      hint: "nothing is mirrored afterwards: boot the live system to install onto both, or take install.mirror out",
    },
  ];
}

function lintDisk({ disk: wanted }: Install, inventory: Inventory): readonly Finding[] {
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
