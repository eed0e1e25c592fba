import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import { describeDevice, parseSize } from "../config/device.ts";
import type { DeviceRef, DeviceSelector } from "../config/document.ts";
import type { Disk, Inventory } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import { describeDisk, describeUser } from "./describe.ts";
import { isAbout } from "./lint.ts";

/** The one disk that the document means. The error lists every disk of the machine with the reason and its bytes. */
export function resolveDevice(ref: DeviceRef, inventory: Inventory): Result<Disk, AppError> {
  const judged = inventory.disks.map((disk) => ({ disk, reasons: mismatches(ref, disk, inventory) }));
  const matching = judged.filter(({ reasons }) => reasons.length === 0);
  const [first] = matching;
  if (first !== undefined && matching.length === 1) return ok(first.disk);
  const wanted = describeDevice(ref);
  const details = judged.map(
    ({ disk, reasons }) =>
      `${describeDisk(disk)}, ${disk.sizeBytes} bytes: ${reasons.length === 0 ? "matches" : reasons.join("; ")}`,
  );
  if (matching.length > 1)
    return fail("disk-ambiguous", `${matching.length} disks match ${wanted}, it must be exactly one`, {
      details,
      hint: "name the disk by its serial or wwn",
    });
  return fail("disk-not-found", `no disk matches ${wanted}`, {
    details: details.length > 0 ? details : ["no disk was found at all"],
    hint: hintFor(ref, inventory),
  });
}

/** Disks that the document's author could name, and why or why not: for `GET /v1/disks` and the console. */
export function judgeDisk(disk: Disk, inventory: Inventory): { readonly usable: boolean; readonly reason: string } {
  const never = exclusions(disk, inventory);
  if (never.length > 0) return { usable: false, reason: never.join("; ") };
  const busy = disk.users.find((user) => user.isBusy);
  if (busy !== undefined) return { usable: false, reason: `in use by ${describeUser(busy, inventory)}` };
  const blind = inventory.unknown.filter((line) => isAbout(line, disk));
  if (blind.length > 0) return { usable: false, reason: `can't be judged: ${blind.join("; ")}` };
  const [holder] = disk.users;
  if (holder !== undefined)
    return { usable: true, reason: `held by ${describeUser(holder, inventory)}: needs wipe: true` };
  if (disk.signatures.length > 0 || disk.partitions.length > 0)
    return { usable: true, reason: "holds data: needs wipe: true" };
  return { usable: true, reason: disk.isRemovable ? "blank, but removable: name it by path or serial" : "blank" };
}

/** Whether this disk is what the document means, whatever else forbids it. */
export const fitsDevice = (ref: DeviceRef, disk: Disk, inventory: Inventory): boolean =>
  typeof ref === "string"
    ? disk.path === ref || disk.links.includes(ref)
    : selectorMismatches(ref, disk, inventory).length === 0;

function exclusions(disk: Disk, inventory: Inventory): string[] {
  const reasons: string[] = [];
  if (disk.isBootMedium) reasons.push("the medium that this system booted from");
  if (disk.isSystemDisk) reasons.push("the disk under the running system");
  if (disk.isReadOnly) reasons.push("read-only");
  const { wwn, serial, byPath } = disk.identity;
  // Whether it still is that disk is asked again before anything is written, and nothing could answer.
  if (wwn === undefined && serial === undefined && byPath === undefined)
    reasons.push("shows neither wwn nor serial nor its place: nothing tells it from another disk");
  const twin = inventory.disks.find((other) => other !== disk && sameDisk(other.identity, disk.identity));
  if (twin !== undefined) reasons.push(`can't be told apart from ${twin.path}: same serial or wwn`);
  return reasons;
}

function mismatches(ref: DeviceRef, disk: Disk, inventory: Inventory): string[] {
  if (typeof ref === "string") {
    if (!fitsDevice(ref, disk, inventory)) return [`not ${ref}`];
    return exclusions(disk, inventory);
  }
  const reasons = [...exclusions(disk, inventory), ...selectorMismatches(ref, disk, inventory)];
  const isNamed = ref.serial !== undefined || ref.wwn !== undefined || ref.bus === "usb";
  if (disk.isRemovable && !isNamed) reasons.push("removable, and not named by path, serial or wwn");
  return reasons;
}

function selectorMismatches(selector: DeviceSelector, disk: Disk, inventory: Inventory): string[] {
  const reasons: string[] = [];
  const { identity } = disk;
  const want = (field: string, wanted: string | undefined, got: string | undefined, isMatch: boolean): void => {
    if (wanted !== undefined && !isMatch) reasons.push(`${field} is ${got ?? "unknown"}, not ${wanted}`);
  };
  want("serial", selector.serial, identity.serial, identity.serial === selector.serial?.trim());
  want("wwn", selector.wwn, identity.wwn, isSameWwn(identity.wwn, selector.wwn));
  want("model", selector.model, identity.model, isGlobMatch(selector.model, identity.model));
  want("type", selector.type, disk.type, disk.type === selector.type);
  want("bus", selector.bus, disk.bus, disk.bus === selector.bus);
  if (selector.serial !== undefined && identity.serial === selector.serial.trim()) {
    const others = inventory.disks.filter((other) => other !== disk && other.identity.serial === identity.serial);
    if (others.length > 0)
      reasons.push(`its serial is also that of ${others.map((other) => other.path).join(", ")}, so it selects nothing`);
  }
  const least = selector.minSize === undefined ? undefined : parseSize(selector.minSize);
  const most = selector.maxSize === undefined ? undefined : parseSize(selector.maxSize);
  if (selector.minSize !== undefined && (least === undefined || disk.sizeBytes < least))
    reasons.push(`smaller than ${selector.minSize} (${least ?? "unreadable"} bytes)`);
  if (selector.maxSize !== undefined && (most === undefined || disk.sizeBytes > most))
    reasons.push(`larger than ${selector.maxSize} (${most ?? "unreadable"} bytes)`);
  return reasons;
}

const bareWwn = (wwn: string): string => wwn.trim().toLowerCase().replace(/^wwn-/, "").replace(/^0x/, "");

function isSameWwn(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && b !== undefined && bareWwn(a) === bareWwn(b);
}

/** `*` and `?`; a blank and an underscore are the same, for udev writes one where lsblk writes the other. */
function isGlobMatch(glob: string | undefined, text: string | undefined): boolean {
  if (glob === undefined || text === undefined) return false;
  const flat = (value: string): string => value.trim().replace(/[\s_]+/g, "_");
  return isWildcardMatch(flat(glob), flat(text));
}

/** Only the last `*` is ever tried again: as a regular expression, a dozen of them take longer than a boot may. */
function isWildcardMatch(glob: string, text: string): boolean {
  let [at, from] = [0, 0];
  let star: { readonly glob: number; readonly text: number } | undefined;
  while (from < text.length) {
    if (glob[at] === "*") star = { glob: ++at, text: from };
    else if (at < glob.length && (glob[at] === "?" || glob[at] === text[from])) [at, from] = [at + 1, from + 1];
    else if (star === undefined) return false;
    else {
      star = { glob: star.glob, text: star.text + 1 };
      [at, from] = [star.glob, star.text];
    }
  }
  return /^\**$/.test(glob.slice(at));
}

function hintFor(ref: DeviceRef, inventory: Inventory): string {
  if (typeof ref !== "string" && ref.serial !== undefined && inventory.disks.every((disk) => !disk.identity.serial))
    return "no disk here shows a serial: name it by its path under /dev/disk/by-path";
  return "correct the device to one that is listed, or connect the disk";
}
