import type { RaidSpec } from "../config/document.ts";
import type { Disk, Inventory, MdArray } from "../kit/disk.ts";
import type { RaidAssembleStep, RaidConfigStep, RaidCreateStep, RaidMember } from "./model.ts";
import { renderArrayConfig } from "./render.ts";

export const levelName = (level: number): string => `raid${level}`;

const member = (disk: Disk): RaidMember => ({ path: disk.path, identity: disk.identity });

/** The array of this UUID that is on the disks, whole or in part. */
export const findArray = (inventory: Inventory, uuid: string): MdArray | undefined =>
  inventory.arrays.find((array) => array.uuid === uuid);

/** Which of the disks carry no superblock of this array. */
export const disksWithout = (array: MdArray, disks: readonly Disk[]): readonly Disk[] =>
  disks.filter((disk) => !array.memberPaths.includes(disk.path));

/**
 * An array that no record of ours names, but that can only be ours: name, level, the exact set of members and the
 * label of the filesystem on it all match. Anything less is somebody's data.
 */
export const findOurArray = (
  spec: RaidSpec,
  label: string,
  disks: readonly Disk[],
  inventory: Inventory,
): MdArray | undefined => findArrayWith(spec, { type: spec.filesystem, label }, disks, inventory);

/** By name, level, exact members, and what is in it. */
export function findArrayWith(
  spec: RaidSpec,
  { type, label }: { readonly type: string; readonly label: string },
  disks: readonly Disk[],
  inventory: Inventory,
): MdArray | undefined {
  return inventory.arrays.find(
    (array) =>
      array.name === spec.name &&
      array.level === levelName(spec.level) &&
      array.label === label &&
      (array.filesystemType ?? type) === type &&
      array.filesystemUuid !== undefined &&
      array.expectedMembers === spec.devices.length &&
      array.memberPaths.length === disks.length &&
      disksWithout(array, disks).length === 0,
  );
}

export function createStep(
  spec: RaidSpec,
  uuid: string,
  members: readonly Disk[],
  spares: readonly Disk[],
): RaidCreateStep {
  const extra = spares.length === 0 ? "" : ` and ${spares.length} spare`;
  return {
    kind: "raid:create",
    id: `raid:${spec.name}:create`,
    title: `create RAID ${spec.level} array ${spec.name} from ${members.length} disks${extra}`,
    name: spec.name,
    level: spec.level,
    uuid,
    members: members.map(member),
    spares: spares.map(member),
    destroys: [...members, ...spares].map((disk) => disk.identity),
  };
}

export function assembleStep(name: string, uuid: string, disks: readonly Disk[]): RaidAssembleStep {
  return {
    kind: "raid:assemble",
    id: `raid:${name}:assemble`,
    title: `start array ${name}`,
    name,
    uuid,
    members: disks.map(member),
  };
}

export function configStep(name: string, uuid: string, memberCount: number): RaidConfigStep {
  return {
    kind: "raid:config",
    id: `raid:${name}:config`,
    title: `record array ${name} for the next boots`,
    files: [renderArrayConfig({ name, uuid, memberCount })],
  };
}
