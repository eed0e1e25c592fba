import type { Disk, DiskIdentity } from "../kit/disk.ts";
import { describeContent, describeDisk } from "./describe.ts";
import type { DiskFilesystemStep, DiskWipeStep, StepDevice } from "./model.ts";

export const stepDevice = (disk: Disk): StepDevice => ({ path: disk.path, identity: disk.identity });

/** What is lost stands in the title only: the rest of a step must be the same when it is planned anew half-way. */
export function wipeStep(id: string, disk: Disk): DiskWipeStep {
  const content = describeContent(disk);
  return {
    kind: "disk:wipe",
    id,
    title: `wipe ${describeDisk(disk)}${content === "" ? "" : `, which holds ${content}`}`,
    device: stepDevice(disk),
    destroys: [disk.identity],
  };
}

export interface FilesystemOrder {
  readonly id: string;
  readonly device: StepDevice;
  /** `disk /dev/sdb (…)`, `array data`. */
  readonly deviceName: string;
  readonly filesystem: "ext4" | "xfs";
  readonly uuid: string;
  readonly label: string;
  readonly disks: readonly DiskIdentity[];
}

export function filesystemStep(order: FilesystemOrder): DiskFilesystemStep {
  return {
    kind: "disk:filesystem",
    id: order.id,
    title: `create ${order.filesystem} filesystem ${order.label} on ${order.deviceName}`,
    device: order.device,
    filesystem: order.filesystem,
    uuid: order.uuid,
    label: order.label,
    destroys: order.disks,
  };
}
