import type { DiskIdentity } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";

/** `Samsung SSD 870 S5Y1, 512110190592 bytes`: whatever names the disk for a person. */
export function describeIdentity(disk: DiskIdentity): string {
  const names = [disk.model, disk.serial ?? disk.wwn ?? disk.byPath].filter((name) => name !== undefined);
  return `${names.length > 0 ? names.join(" ") : "unnamed"}, ${disk.sizeBytes} bytes`;
}

/** The same disks, whatever their order; each is used up once, so that two of one kind don't hide a stranger. */
export function sameDisks(a: readonly DiskIdentity[], b: readonly DiskIdentity[]): boolean {
  if (a.length !== b.length) return false;
  const rest = [...b];
  return a.every((disk) => {
    const at = rest.findIndex((other) => sameDisk(disk, other));
    if (at === -1) return false;
    rest.splice(at, 1);
    return true;
  });
}
