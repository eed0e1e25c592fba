/** A node that runs from a disk, and a document that says which disk it should have been installed onto. */
import { describeDevice, isUnstableDevice } from "../config/device.ts";
import type { Document } from "../config/document.ts";
import { describeDisk } from "../disks/describe.ts";
import { fitsDevice } from "../disks/select.ts";
import { SYSTEM_ARRAY } from "../iso/mirror/report.ts";
import { arrayNameOf, MIRRORED_ROLES } from "../iso/uuids.ts";
import type { Disk, Inventory } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";

/** Of the disks warnings only: they are chosen by the live system, and here it is too late to choose others. */
export function lintInstalled(
  { install, raid }: Pick<Document, "install" | "raid">,
  inventory: Inventory,
): readonly Finding[] {
  const onDisks = install === undefined ? [] : [...lintDisk(install, inventory), ...lintMirror(install, inventory)];
  return [...onDisks, ...lintNames(raid, inventory)];
}

const SYSTEM_NAMES: readonly string[] = [SYSTEM_ARRAY, ...MIRRORED_ROLES.map(arrayNameOf)];

/** The document's own rules know of a mirrored system only where it says `install.mirror`, and it need not say so. */
function lintNames(raid: Document["raid"], inventory: Inventory): readonly Finding[] {
  if (!isMirrored(systemDisks(inventory))) return [];
  return raid.flatMap(({ name }, at): Finding[] =>
    SYSTEM_NAMES.includes(name)
      ? [
          {
            severity: "error",
            code: "system-array",
            path: `raid[${at}].name`,
            message: `this node's system is mirrored, and ${name} is what its own array is called`,
            hint: "choose another name",
          },
        ]
      : [],
  );
}

const systemDisks = ({ disks }: Inventory): readonly Disk[] => disks.filter((disk) => disk.isSystemDisk);

/** The other half may be away today; a system on one disk alone has no members at all. */
const isMirrored = (running: readonly Disk[]): boolean =>
  running.some(({ signatures }) => signatures.some(({ type }) => type === "linux_raid_member"));

type Install = NonNullable<Document["install"]>;

function lintMirror({ mirror }: Install, inventory: Inventory): readonly Finding[] {
  const running = systemDisks(inventory);
  if (mirror === undefined || isMirrored(running) || running.length === 0) return [];
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
  const running = systemDisks(inventory);
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
