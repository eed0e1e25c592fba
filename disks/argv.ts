import type { DiskFilesystemStep } from "./model.ts";

/** `--lock`: udev does not probe a disk while somebody holds the BSD lock on it (systemd.io/BLOCK_DEVICE_LOCKING). */
export const wipeArgv = (path: string): string[] => ["wipefs", "--lock=yes", "-a", path];

/**
 * The filesystem without its label. One `-F` only: it spares questions, whereas two would also format what is in use.
 * One per cent is reserved instead of five: this is a data disk, root's reserve keeps no system alive.
 */
export function mkfsArgv(step: Pick<DiskFilesystemStep, "filesystem" | "uuid" | "device">): string[] {
  const { path } = step.device;
  return step.filesystem === "ext4"
    ? ["mkfs.ext4", "-q", "-F", "-m", "1", "-U", step.uuid, path]
    : ["mkfs.xfs", "-q", "-f", "-m", `uuid=${step.uuid}`, path];
}

/**
 * The label is the mark of completion, set when mkfs has ended well and all of it is on the platter. The UUID can't be
 * that mark: both mkfs write the superblock that holds it themselves, and what reaches the disk first is not ours to say.
 */
export const labelArgv = (step: Pick<DiskFilesystemStep, "filesystem" | "label" | "device">): string[] =>
  step.filesystem === "ext4"
    ? ["tune2fs", "-L", step.label, step.device.path]
    : ["xfs_admin", "-L", step.label, step.device.path];

/** fsync of the device node: flushes the page cache and the disk's own. */
export const syncArgv = (path: string): string[] => ["sync", path];

export function filesystemArgv(step: DiskFilesystemStep): string[][] {
  const sync = syncArgv(step.device.path);
  return [mkfsArgv(step), sync, labelArgv(step), sync];
}
