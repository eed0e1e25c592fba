/** Documents for a machine: sound, loose, greedy and mistaken ones, and what a node remembers of earlier runs. */
import type fc from "fast-check";
import type { DeviceRef, DeviceSelector, DiskSpec, Document, LuksSpec, RaidSpec } from "../../config/document.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import { NOT_IN_RELEASE } from "../../provision/storage.ts";
import { storageDocument } from "./machines.ts";

export type Draw = fc.GeneratorValue;
type StorageDocument = ReturnType<typeof storageDocument>;

/** `fast-check` comes in as a parameter, so that this file has types only of it. */
export type Arbitraries = Pick<typeof fc, "boolean" | "constantFrom" | "integer" | "nat" | "shuffledSubarray">;

const MIB = 1024 * 1024;
/** Encrypted volumes, where this release has them. */
export const areVolumesThere = !(NOT_IN_RELEASE as readonly string[]).includes("luks");

export function drawReference(g: Draw, a: Arbitraries, disks: readonly Disk[]): DeviceRef {
  const disk = disks[g(a.nat, { max: Math.max(0, disks.length - 1) })];
  if (disk === undefined) return { serial: "NOTHING-HERE" };
  const { serial, wwn, model } = disk.identity;
  const bus = disk.bus === "other" ? {} : { bus: disk.bus };
  const choices: DeviceRef[] = [
    disk.path,
    ...disk.links.filter((link) => !link.startsWith("/dev/mapper/")),
    ...(serial === undefined ? [] : [{ serial }, { serial, type: disk.type }]),
    ...(wwn === undefined ? [] : [{ wwn }, { wwn: wwn.replace(/^0x/, "").toUpperCase() }]),
    ...(model === undefined ? [] : [{ model }, { model: `${model.slice(0, 4)}*` }]),
    { type: disk.type },
    { ...bus, type: disk.type, minSize: `${Math.floor(disk.sizeBytes / MIB)}MiB` },
    { maxSize: `${Math.ceil(disk.sizeBytes / MIB)}MiB` },
    { serial: "NOTHING-HERE" },
  ];
  return choices[g(a.nat, { max: choices.length - 1 })] ?? disk.path;
}

/** Mostly the disk that is meant by a name that is its own, so that a good part of the documents gets through. */
function drawSound(g: Draw, a: Arbitraries, disk: Disk): DeviceRef {
  const { serial, wwn } = disk.identity;
  const own: (string | DeviceSelector)[] = [
    disk.path,
    ...(serial === undefined ? [] : [{ serial }]),
    ...(wwn === undefined ? [] : [{ wwn }]),
  ];
  return own[g(a.nat, { max: own.length - 1 })] ?? disk.path;
}

export function drawDocument(
  g: Draw,
  a: Arbitraries,
  { disks }: Inventory,
  names: readonly string[],
  hasVolumes = false,
): StorageDocument {
  const bounds = { minLength: Math.min(disks.length, 6), maxLength: Math.min(disks.length, 8) };
  const order = g(() => a.shuffledSubarray([...disks.keys()], bounds));
  let next = 0;
  const isLoose = g(a.integer, { min: 0, max: 3 }) === 0;
  const reference = (): DeviceRef => {
    const disk = disks[order[next++ % Math.max(1, order.length)] ?? 0];
    return isLoose || disk === undefined ? drawReference(g, a, disks) : drawSound(g, a, disk);
  };
  const common = (name: string, at: number) => {
    const filesystem = g(() => a.constantFrom("ext4" as const, "xfs" as const, "none" as const));
    const isMounted = filesystem !== "none" && g(a.boolean);
    return {
      name,
      filesystem,
      wipe: g(a.integer, { min: 0, max: 2 }) > 0,
      ...(isMounted ? { mountPoint: `/srv/${name}-${at}` } : {}),
    };
  };
  const plain: DiskSpec[] = [];
  const arrays: RaidSpec[] = [];
  const volumes: LuksSpec[] = [];
  const volume = (name: string, at: number, device: DeviceRef): LuksSpec => ({
    ...common(name, at),
    device,
    unlock: "passphrase",
    passphrase: "correct horse",
  });
  for (const [at, name] of names.slice(0, g(a.integer, { min: 1, max: 3 })).entries()) {
    if (hasVolumes && g(a.integer, { min: 0, max: 3 }) === 0) {
      volumes.push(volume(name, at, reference()));
      continue;
    }
    if (g(a.boolean)) {
      plain.push({ ...common(name, at), device: reference() });
      continue;
    }
    const level = g(() => a.constantFrom(0 as const, 1 as const, 5 as const, 6 as const, 10 as const));
    const least = { 0: 2, 1: 2, 5: 3, 6: 4, 10: 4 }[level];
    const devices = Array.from({ length: g(() => a.constantFrom(2, least)) < least ? 2 : least }, reference);
    const spares = level !== 0 && g(a.integer, { min: 0, max: 3 }) === 0 ? [reference()] : [];
    // Too few members are the document's own affair, refused long before.
    if (devices.length >= least) arrays.push({ ...common(name, at), level, devices, spares });
    else arrays.push({ ...common(name, at), level: 1, devices, spares });
  }
  const bare = arrays.find((array) => array.filesystem === "none");
  if (hasVolumes && bare !== undefined && g(a.boolean)) volumes.push(volume("vault", 9, `/dev/md/${bare.name}`));
  return storageDocument({ disks: plain, raid: arrays, luks: volumes });
}

export type { Document, StorageDocument };
