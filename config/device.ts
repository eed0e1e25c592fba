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
  /^\/dev\/(?:nvme\d+n\d+|mmcblk\d+|loop\d+|nbd\d+)p\d+$/,
  /^\/dev\/disk\/.*-part\d+$/,
  /^\/dev\/disk\/by-(?:partuuid|partlabel|uuid|label)\//,
];

export type DevicePathProblem = "not-dev" | "not-normal" | "partition" | "array";

/** Undefined when the text can name a whole disk. Offline: whether it exists is for the node to say. */
export function devicePathProblem(path: string): DevicePathProblem | undefined {
  if (!path.startsWith("/dev/")) return "not-dev";
  if (!isNormalPath(path) || /\s/.test(path)) return "not-normal";
  if (PARTITION.some((pattern) => pattern.test(path))) return "partition";
  return /^\/dev\/(?:md\d+|md\/.*|md_.*|dm-\d+)$/.test(path) ? "array" : undefined;
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
