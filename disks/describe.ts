import type { Disk, DiskIdentity, DiskUser, Inventory, Signature } from "../kit/disk.ts";

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** `1.8 TiB`, `512 MiB`: for reading; decisions and errors that need it print the bytes beside it. */
export function formatSize(bytes: number): string {
  let value = bytes;
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${Number.isInteger(value) ? value : value.toFixed(1)} ${units[at] ?? "B"}`;
}

/** `/dev/sda (Samsung SSD 870, serial S5Y1, 465.8 GiB)`: what a person at the rack needs to find the disk. */
export function describeDisk(disk: { readonly path: string; readonly identity: DiskIdentity }): string {
  return `${disk.path} (${describeIdentity(disk.identity)})`;
}

export function describeIdentity(identity: DiskIdentity): string {
  const name =
    identity.serial !== undefined
      ? `serial ${identity.serial}`
      : identity.wwn !== undefined
        ? `wwn ${identity.wwn}`
        : (identity.byPath ?? "no serial");
  return [identity.model ?? "no model", name, formatSize(identity.sizeBytes)].join(", ");
}

/** `ext4 "data" on the whole disk at 0x438`. */
export function describeSignature(signature: Signature): string {
  const label = signature.label === undefined ? "" : ` ${JSON.stringify(signature.label)}`;
  return `${signature.type}${label} on ${signature.where}`;
}

/** ZFS repeats itself five hundred times on one disk: of more than two alike only the first is told, and how many. */
function describeAlike(alike: readonly Signature[]): readonly string[] {
  const [first] = alike;
  if (first === undefined || alike.length <= 2) return alike.map(describeSignature);
  return [`${describeSignature(first)} and ${alike.length - 1} other places`];
}

export function describeContent(disk: Disk): string {
  const kinds = Map.groupBy(disk.signatures, ({ type, label, device }) => JSON.stringify([type, label, device]));
  const seen = [...kinds.values()].flatMap(describeAlike);
  const bare = disk.partitions.filter((part) => !disk.signatures.some((each) => each.device === part.path));
  const partitions = bare.map((part) => `partition ${part.number} (${formatSize(part.sizeBytes)})`);
  return [...seen, ...partitions].join(", ");
}

/** Any signature anywhere, or a partition even without one, is data. */
export const holdsData = (disk: Disk): boolean => disk.signatures.length > 0 || disk.partitions.length > 0;

/** `program qemu-system-x86 (pid 4242)`; an array as whoever made it called it: `array data (md127)`. */
export const describeUser = (user: DiskUser, { arrays }: Pick<Inventory, "arrays">): string =>
  ({
    mount: `a mount at ${user.name}`,
    swap: `swap on ${user.name}`,
    md: `array ${describeArray(user.name, arrays)}`,
    dm: `mapping ${user.name}`,
    bcache: `bcache ${user.name}`,
    open: `program ${user.name}`,
    other: user.name,
  })[user.kind];

function describeArray(kernelName: string, arrays: Inventory["arrays"]): string {
  const name = arrays.find(({ path }) => path === `/dev/${kernelName}`)?.name;
  return name === undefined || name === kernelName ? kernelName : `${name} (${kernelName})`;
}
