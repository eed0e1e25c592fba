import type { DeviceRef, DeviceSelector } from "./document.ts";

const UNIT_BYTES: Readonly<Record<string, number>> = {
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

/** `500GB`, `1.8 TiB` → bytes. The unit is required: a bare number is more often wrong than bytes. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d{1,9}(?:\.\d{1,6})?) ?([kKMGT]i?B)$/.exec(text);
  const unit = UNIT_BYTES[match?.[2] ?? ""];
  return unit === undefined ? undefined : Math.round(Number(match?.[1]) * unit);
}

/** A path without `//`, `.`, `..` and trailing slash. */
export const isNormalPath = (path: string): boolean =>
  path.startsWith("/") &&
  // oxlint-disable-next-line no-control-regex -- exactly those are refused
  !/[\u0000-\u001f\u007f\\]/.test(path) &&
  path
    .slice(1)
    .split("/")
    .every((part) => part !== "" && part !== "." && part !== "..");

/** `/dev/md/NAME` → NAME. */
export const arrayName = (device: string): string | undefined => /^\/dev\/md\/([^/]+)$/.exec(device)?.[1];

const PARTITION = [
  /^\/dev\/(?:sd|hd|vd|xvd)[a-z]+\d+$/,
  /^\/dev\/(?:nvme\d+n\d+|mmcblk\d+|loop\d+|nbd\d+|pmem\d+|md\d+)p\d+$/,
  /^\/dev\/disk\/.*-part\d+$/,
  /^\/dev\/disk\/by-(?:partuuid|partlabel|uuid|label)\//,
];

/** Of /dev itself: what the kernel makes there beside disks. */
const NO_DISK = new RegExp(
  `^/dev/(?:${[
    // Memory, compressed memory, files that stand for disks: gone or another one at the next boot.
    "z?ram\\d+|loop\\d+|loop-control",
    // Controllers, their character devices, and the hidden areas of an MMC.
    "nvme\\d+|nvme-fabrics|ng\\d+n\\d+|sg\\d+|mmcblk\\d+(?:boot\\d+|rpmb|gp\\d+)",
    // Drives of discs, floppies and tapes.
    "sr\\d+|scd\\d+|cdrom|cdrw|dvd|dvdrw|fd\\d+|n?st\\d+",
    "null|zero|full|u?random|mem|port|kmsg|console|tty.*|ptmx|stdin|stdout|stderr|fd|core|log|initctl",
    "fuse|kvm|rtc\\d*|hpet|watchdog\\d*|tpm\\d+|tpmrm\\d+|autofs|btrfs-control|snapshot|uinput|vhost-.*",
    "disk|mapper|md|block|char|bus|cpu|dri|input|net|pts|shm|snd|mqueue|hugepages|vfio|usb",
  ].join("|")})$`,
);

/** Folders of /dev that have disks in them; of all others what is in them is none (`/dev/vg/lv`). */
const DISK_FOLDER = /^\/dev\/(?:disk\/by-[a-z-]+|mapper|block)\/[^/]+$/;

export type DevicePathProblem = "not-dev" | "not-normal" | "glob" | "partition" | "array" | "no-disk";

/** Undefined when the text can name a whole disk. Offline: whether it exists is for the node to say. */
export function devicePathProblem(path: string): DevicePathProblem | undefined {
  if (!path.startsWith("/dev/")) return "not-dev";
  if (!isNormalPath(path) || /\s/.test(path)) return "not-normal";
  if (PARTITION.some((pattern) => pattern.test(path))) return "partition";
  if (/^\/dev\/(?:md\d+|md\/.*|md_.*|dm-\d+)$/.test(path)) return "array";
  // udev writes none of these into a name.
  if (/[*?[\]{}]/.test(path)) return "glob";
  const isInFolder = path.lastIndexOf("/") > "/dev".length;
  const isNone = isInFolder ? !DISK_FOLDER.test(path) : NO_DISK.test(path);
  return isNone || path === "/dev/mapper/control" ? "no-disk" : undefined;
}

/** Names given by discovery order, which change when a disk is added. */
export const isUnstableDevice = (path: string): boolean =>
  /^\/dev\/(?:sd|hd|vd|xvd)[a-z]+$|^\/dev\/(?:nvme\d+n\d+|mmcblk\d+)$/.test(path);

/** References that are certainly the same disk have equal keys: same path, or same selector. */
export function deviceKey(device: DeviceRef): string {
  if (typeof device === "string") return device;
  const fields = Object.entries(device as DeviceSelector).filter(([, value]) => value !== undefined);
  return JSON.stringify(fields.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** For people: the path, or `{serial: X, type: ssd}`. */
export function describeDevice(device: DeviceRef): string {
  if (typeof device === "string") return device;
  const fields = Object.entries(device).filter(([, value]) => value !== undefined);
  return `{${fields.map(([key, value]) => `${key}: ${String(value)}`).join(", ")}}`;
}
