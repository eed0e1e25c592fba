/** Disks that are too small for what shall be made in them: known before anything is wiped for it. */
import type { RaidLevel } from "../config/document.ts";
import type { Disk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";

const MIB = 1024 ** 2;

/** mkfs.xfs refuses less than 300 MiB since xfsprogs 5.19; ext4 needs next to nothing. */
const LEAST_BYTES = { ext4: MIB, xfs: 300 * MIB, none: 0 } as const;

/** Both headers of LUKS 2 and the areas of its keys, as cryptsetup lays them out by default. */
export const LUKS_HEADER_BYTES = 16 * MIB;

/** With metadata 1.2 the data of a member begin 1 MiB from its start at the earliest. */
const MEMBER_OFFSET_BYTES = MIB;

/** What an array of these members holds at the most. */
export function arrayBytes(level: RaidLevel, members: readonly Pick<Disk, "sizeBytes">[]): number {
  const sizes = members.map(({ sizeBytes }) => Math.max(0, sizeBytes - MEMBER_OFFSET_BYTES));
  const least = Math.min(...sizes);
  switch (level) {
    case 0:
      return sizes.reduce((sum, size) => sum + size, 0);
    case 1:
      return least;
    case 5:
      return (sizes.length - 1) * least;
    case 6:
      return (sizes.length - 2) * least;
    case 10:
      return Math.floor((sizes.length * least) / 2);
    default:
      return level satisfies never;
  }
}

/** `what`: `disk /dev/sdb (…) has`, `array data will have`. */
export function lintRoom(
  what: string,
  path: string,
  bytes: number,
  filesystem: keyof typeof LEAST_BYTES,
): readonly Finding[] {
  const needed = LEAST_BYTES[filesystem];
  if (bytes >= needed && bytes > 0) return [];
  const message = `${what} ${Math.max(0, bytes)} bytes, and ${filesystem === "none" ? "that is nothing" : `${filesystem} needs ${needed}`}`;
  const hint = filesystem === "xfs" ? "take a larger one, or filesystem: ext4" : "take a larger one";
  return [{ severity: "error", code: "disk-too-small", path, message, hint }];
}
