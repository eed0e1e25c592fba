/** One disk, one purpose: what the document wants for data once the system stands on the disks that it is installed onto. */
import { arrayName, isUnstableDevice } from "../../config/device.ts";
import type { DeviceRef, Document } from "../../config/document.ts";
import { describeDisk } from "../../disks/describe.ts";
import { resolveDevice } from "../../disks/select.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import type { Finding } from "../../kit/finding.ts";

export type DataBlocks = Partial<Pick<Document, "disks" | "raid" | "luks" | "zfs">>;

/**
 * Once it is the system's a disk is none for data, and the first boot would find that out: after what was on it is lost.
 * A selector that matches a target and another disk means the other one then, and a kernel name may as well.
 */
export function lintPurposes(
  document: DataBlocks,
  targets: readonly { readonly field: string; readonly disk: Disk }[],
  inventory: Inventory,
): readonly Finding[] {
  return dataDevices(document).flatMap(({ path, device }): Finding[] => {
    if (typeof device === "string" && (isUnstableDevice(device) || arrayName(device) !== undefined)) return [];
    const found = resolveDevice(device, inventory);
    const target = found.ok ? targets.find(({ disk }) => disk === found.value) : undefined;
    if (target === undefined) return [];
    const message = `disk ${describeDisk(target.disk)} is claimed already by ${target.field}`;
    return [{ severity: "error", code: "claimed-twice", path, message, hint: "name another disk" }];
  });
}

function dataDevices(document: DataBlocks): readonly { readonly path: string; readonly device: DeviceRef }[] {
  const { disks = [], raid = [], luks = [], zfs = [] } = document;
  const list = (path: string, devices: readonly DeviceRef[]) =>
    devices.map((device, at) => ({ path: `${path}[${at}]`, device }));
  return [
    ...disks.map(({ device }, at) => ({ path: `disks[${at}].device`, device })),
    ...raid.flatMap(({ devices, spares }, at) => [
      ...list(`raid[${at}].devices`, devices),
      ...list(`raid[${at}].spares`, spares),
    ]),
    ...luks.map(({ device }, at) => ({ path: `luks[${at}].device`, device })),
    ...zfs.flatMap(({ vdevs }, at) =>
      vdevs.flatMap(({ devices }, vdev) => list(`zfs[${at}].vdevs[${vdev}].devices`, devices)),
    ),
  ];
}
