/** What a reference of the document means after disks were replaced on request (kit/disk.ts, ReplacedDisk). */
import type { DiskIdentity, ReplacedDisk } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
import { deviceKey } from "./device.ts";
import type { DeviceRef, Document } from "./document.ts";

/** The disk that stands in for what `ref` named; `replaced` in the order in which it happened. */
export function standInFor(array: string, ref: DeviceRef, replaced: readonly ReplacedDisk[]): DiskIdentity | undefined {
  const ofArray = replaced.filter((each) => each.array === array);
  const first = ofArray.findLastIndex((each) => each.device === deviceKey(ref));
  const begun = ofArray[first];
  if (begun === undefined) return undefined;
  // The stand-in was replaced in its turn, by a document that named it.
  return ofArray.slice(first + 1).reduce((now, each) => (sameDisk(each.old, now) ? each.new : now), begun.new);
}

/**
 * The document with each replaced place written in one way, whether it names the old disk or the new one: two documents
 * that mean the same disks are equal then. Only for comparing.
 */
export function withStandIns(document: Document, replaced: readonly ReplacedDisk[]): Document {
  if (replaced.length === 0) return document;
  const settle = (array: string, ref: DeviceRef): DeviceRef => {
    const named = replaced.find((each) => each.array === array && names(ref, each));
    const now = standInFor(array, ref, replaced) ?? (named === undefined ? undefined : last(named, replaced));
    return now === undefined ? ref : JSON.stringify(now);
  };
  return {
    ...document,
    raid: document.raid.map((spec) => ({
      ...spec,
      devices: spec.devices.map((ref) => settle(spec.name, ref)),
      spares: spec.spares.map((ref) => settle(spec.name, ref)),
    })),
  };
}

function last(named: ReplacedDisk, replaced: readonly ReplacedDisk[]): DiskIdentity {
  const later = replaced.slice(replaced.indexOf(named) + 1).filter(({ array }) => array === named.array);
  return later.reduce((now, each) => (sameDisk(each.old, now) ? each.new : now), named.new);
}

function names(ref: DeviceRef, { new: disk, newLinks }: ReplacedDisk): boolean {
  if (typeof ref === "string") return newLinks.includes(ref);
  return (
    (ref.serial !== undefined && ref.serial.trim() === disk.serial) ||
    (ref.wwn !== undefined && ref.wwn.trim() === disk.wwn)
  );
}
