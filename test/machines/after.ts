/** The machine after a step, as the next inventory would show it: whole, or broken off when the power went. */
import type { Disk, Inventory, MdArray, Signature } from "../../kit/disk.ts";
import type { StorageStep } from "../../provision/storage.ts";

const dashed = (uuid: string): string => {
  const hex = uuid.replace(/[^0-9a-f]/g, "");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
};

const change = (inventory: Inventory, paths: readonly string[], edit: (disk: Disk) => Disk): Inventory => ({
  ...inventory,
  disks: inventory.disks.map((disk) => (paths.includes(disk.path) ? edit(disk) : disk)),
});

const signature = (disk: Disk, type: string, uuid: string, label?: string): Signature => ({
  type,
  device: disk.path,
  where: "the whole disk at 0x438",
  uuid,
  ...(label === undefined ? {} : { label }),
});

const inArray = (inventory: Inventory, uuid: string, edit: (array: MdArray) => MdArray): Inventory => ({
  ...inventory,
  arrays: inventory.arrays.map((array) => (array.uuid === uuid ? edit(array) : array)),
});

const arrayOf = (path: string): string | undefined => /md-uuid-(.*)$/.exec(path)?.[1];

/** A header of ours; of the volume behind it nothing is shown. */
function afterFormat(inventory: Inventory, step: FormatStep, isWhole: boolean): Inventory {
  const array = arrayOf(step.device.path);
  if (array !== undefined)
    return inArray(inventory, array, (each) => ({ ...each, filesystemUuid: step.uuid, filesystemType: "crypto_LUKS" }));
  return change(inventory, [step.device.path], (disk) => ({
    ...disk,
    signatures: [signature(disk, "crypto_LUKS", step.uuid, isWhole ? step.label : undefined)],
  }));
}

interface FormatStep {
  readonly device: { readonly path: string };
  readonly uuid: string;
  readonly label: string;
}

export function afterStep(inventory: Inventory, step: StorageStep, isWhole: boolean): Inventory {
  if ((step.kind as string) === "luks:format") return afterFormat(inventory, step as unknown as FormatStep, isWhole);
  switch (step.kind) {
    case "disk:wipe": {
      if (!isWhole) return inventory;
      const { path } = step.device;
      const gone = inventory.disks.find((disk) => disk.path === path)?.users.map((user) => user.name) ?? [];
      const blank = change(inventory, [path], (disk) => ({ ...disk, signatures: [], partitions: [], users: [] }));
      return {
        ...blank,
        disks: blank.disks.map((disk) => ({ ...disk, users: disk.users.filter((user) => !gone.includes(user.name)) })),
        arrays: blank.arrays
          .map((array) => ({ ...array, memberPaths: array.memberPaths.filter((member) => !member.startsWith(path)) }))
          .filter((array) => array.memberPaths.length > 0),
      };
    }
    case "raid:create": {
      const members = [...step.members, ...step.spares].map((member) => member.path);
      // Cut off, mdadm has written some superblocks.
      const written = isWhole ? members : members.slice(0, 1);
      const label = `any:${step.name}`;
      const marked = change(inventory, written, (disk) => ({
        ...disk,
        signatures: [signature(disk, "linux_raid_member", dashed(step.uuid), label)],
        users: isWhole ? [{ kind: "md", name: "md127", isBusy: false }] : [],
      }));
      const array: MdArray = {
        uuid: step.uuid,
        name: step.name,
        level: `raid${step.level}`,
        memberPaths: written.toSorted(),
        expectedMembers: step.members.length,
        ...(isWhole ? { path: "/dev/md127" } : {}),
      };
      return { ...marked, arrays: [...marked.arrays.filter((each) => each.uuid !== step.uuid), array] };
    }
    case "disk:filesystem": {
      const array = arrayOf(step.device.path);
      // The label is set last of all.
      const label = isWhole ? { label: step.label } : {};
      if (array !== undefined)
        return inArray(inventory, array, (each) => ({
          ...each,
          filesystemUuid: step.uuid,
          filesystemType: step.filesystem,
          ...label,
        }));
      return change(inventory, [step.device.path], (disk) => ({
        ...disk,
        signatures: [signature(disk, step.filesystem, step.uuid, isWhole ? step.label : undefined)],
      }));
    }
    default:
      return inventory;
  }
}
