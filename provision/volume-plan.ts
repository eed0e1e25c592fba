/** One encrypted volume: on a disk of its own, or on an array of the document. */
import { arrayName } from "../config/device.ts";
import type { LuksSpec, RaidSpec } from "../config/document.ts";
import { filesystemLabel } from "../disks/label.ts";
import type { DiskMountStep } from "../disks/model.ts";
import { filesystemStep, stepDevice } from "../disks/plan.ts";
import { cryptsetupUnit, mappingPath } from "../luks/argv.ts";
import { lintTpm } from "../luks/lint.ts";
import type { Disk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import type { TpmFacts } from "../luks/model.ts";
import type { VolumeOrder } from "../luks/plan.ts";
import { crypttabStep, enrollStep, formatStep, headerLabel, keyStep, openStep } from "../luks/plan.ts";
import { arrayPath } from "../raid/argv.ts";
import { findArrayWith } from "../raid/plan.ts";
import { mountStep } from "./mount-plan.ts";
import { LUKS_HEADER_BYTES, lintRoom } from "./room-lint.ts";
import type { Part, PlannedArray, StorageInput, StorageStep } from "./storage-part.ts";
import { claimed, nothing, resolve, wipeOf } from "./storage-part.ts";
import { OWN_HINT } from "./storage-standing.ts";
import type { VolumePlace, VolumeStanding } from "./volume-standing.ts";
import { arrayPlace, diskPlace, LUKS, volumeStanding } from "./volume-standing.ts";

const noTpm: TpmFacts = { isEfi: false, isSecureBoot: false, isAcknowledged: false };

export function planVolume(spec: LuksSpec, field: string, arrays: readonly PlannedArray[], input: StorageInput): Part {
  const path = `${field}.device`;
  const tpm = spec.unlock === "tpm2" ? lintTpm(spec.name, `${field}.unlock`, input.volumes?.tpm ?? noTpm) : [];
  const on = typeof spec.device === "string" ? arrayName(spec.device) : undefined;
  if (on !== undefined) {
    const array = arrays.find((each) => each.name === on);
    // Refused already, with the array.
    if (array === undefined) return { ...nothing, findings: tpm };
    const place = arrayPlace(array);
    const standing = volumeStanding(spec, field, place, input);
    const device = { path: arrayPath(array.uuid) };
    const findings = [...tpm, ...standing.findings, ...lintVolumeRoom(spec, path, array.sizeBytes, standing)];
    return { ...nothing, findings, ...build(spec, device, place, standing, input) };
  }
  const resolved = resolve([spec.device], path, () => path, input.inventory);
  const [disk] = resolved.disks;
  if (disk === undefined) return { ...nothing, findings: [...tpm, ...resolved.findings] };
  const place = diskPlace(disk);
  const standing = volumeStanding(spec, field, place, input);
  return {
    ...nothing,
    ...claimed([disk], () => path, spec.wipe, standing, [
      ...tpm,
      ...resolved.findings,
      ...lintVolumeRoom(spec, path, disk.sizeBytes, standing),
    ]),
    wipes: wipeOf(`luks:${spec.name}:wipe`, disk, spec, standing, input),
    ...build(spec, stepDevice(disk), place, standing, input),
  };
}

/**
 * The array of an earlier installation, with a volume of this very name in it. Nobody can look into the volume before the
 * array runs, so that it is not taken over; but `wipe: true` that stands in the document does not destroy it either.
 */
export function lintVolumesOn(
  spec: RaidSpec,
  field: string,
  disks: readonly Disk[],
  { document, inventory, ownLossSinceMs }: StorageInput,
): readonly Finding[] {
  if (!spec.wipe || ownLossSinceMs !== undefined) return [];
  return document.luks.flatMap(({ name, device }): Finding[] => {
    if (typeof device !== "string" || arrayName(device) !== spec.name) return [];
    const array = findArrayWith(spec, { type: LUKS, label: headerLabel(name) }, disks, inventory);
    if (array === undefined) return [];
    const message = `array ${spec.name} (${array.uuid}) holds volume ${name} of an earlier installation, which is not taken over: it can't be opened before the array runs`;
    return [{ severity: "error", code: "own-data", path: `${field}.devices`, message, hint: OWN_HINT }];
  });
}

const lintVolumeRoom = (
  { name, filesystem }: LuksSpec,
  path: string,
  sizeBytes: number,
  { isThere }: VolumeStanding,
): readonly Finding[] =>
  isThere ? [] : lintRoom(`volume ${name} will have`, path, sizeBytes - LUKS_HEADER_BYTES, filesystem);

function build(
  spec: LuksSpec,
  device: VolumeOrder["device"],
  place: VolumePlace,
  standing: VolumeStanding,
  input: StorageInput,
): Pick<Part, "volumes" | "filesystems" | "mounts" | "owned"> {
  const { name, unlock, filesystem } = spec;
  const order: VolumeOrder = {
    name,
    unlock,
    device,
    deviceName: place.name,
    uuid: standing.uuid ?? input.uuid(),
    disks: place.disks,
  };
  const volumes: StorageStep[] = [
    ...(unlock === "passphrase" ? [keyStep(order, `luks[${name}].${keyField(spec)}`)] : []),
    ...(standing.isThere ? [] : [formatStep(order)]),
    // One that was merely found open has whatever other keys its owner gave it.
    ...(unlock === "tpm2" && !standing.isFound ? [enrollStep(order)] : []),
    crypttabStep(order),
    openStep(order),
  ];
  const own = { kind: "luks", name, uuid: order.uuid, disks: place.disks } as const;
  if (filesystem === "none") return { volumes, filesystems: [], mounts: [], owned: [own] };
  const uuid = standing.filesystemUuid ?? input.uuid();
  const made = filesystemStep({
    id: `luks:${name}:filesystem`,
    device: { path: mappingPath(name) },
    deviceName: `volume ${name}`,
    filesystem,
    uuid,
    label: filesystemLabel(name, filesystem),
    disks: place.disks,
  });
  return {
    volumes,
    filesystems: standing.hasFilesystem ? [] : [made],
    mounts: mountOf(spec, filesystem, uuid, input),
    owned: [{ ...own, filesystemUuid: uuid }],
  };
}

const keyField = (spec: LuksSpec): string => (spec.passphrase === undefined ? "passphraseFrom" : "passphrase");

function mountOf(
  { name, mountPoint: point }: LuksSpec,
  filesystem: "ext4" | "xfs",
  uuid: string,
  { document }: StorageInput,
): readonly DiskMountStep[] {
  if (point === undefined) return [];
  // Names are unique per kind only, step ids must be unique at all.
  const isShared = [...document.disks, ...document.raid].some(
    (other) => other.name === name && other.mountPoint !== undefined,
  );
  const id = isShared ? `mount:luks:${name}` : `mount:${name}`;
  const { role } = document;
  return [mountStep({ id, name, point, uuid, filesystem, role, volumeUnit: cryptsetupUnit(name) })];
}
