/**
 * The partition table of an installed disk. Numbers, names, order and sizes are a contract
 * (docs/architecture.md, "Disk layout"): upgrades, GRUB and the initramfs rely on them.
 */
import { fail } from "../kit/app-error.ts";
import type { AppError } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import type { Result } from "../kit/result.ts";

const MIB = 1024 * 1024;

/** Every partition starts and ends on a multiple of this, whatever the sector size. */
export const ALIGNMENT_BYTES = MIB;

/** Below this a node has no room for container images: the disk is refused. */
export const MINIMUM_DATA_BYTES = 2048 * MIB;

const BIOS_BOOT = "21686148-6449-6e6f-744e-656564454649";
const EFI_SYSTEM = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b";
/** Plain Linux data on purpose: systemd-gpt-auto-generator mounts root, /usr and /var types by itself. */
const LINUX_DATA = "0fc63daf-8483-4772-8e79-3d69d8477de4";

export type PartitionRole = "bios" | "esp" | "bootA" | "bootB" | "rootA" | "rootB" | "state" | "data";

interface PartitionKind {
  readonly role: PartitionRole;
  readonly number: number;
  readonly name: string;
  readonly typeGuid: string;
}

/** In the order of their numbers. */
export const PARTITIONS: readonly PartitionKind[] = [
  { role: "bios", number: 1, name: "corium-bios", typeGuid: BIOS_BOOT },
  { role: "esp", number: 2, name: "corium-esp", typeGuid: EFI_SYSTEM },
  { role: "bootA", number: 3, name: "corium-boot-a", typeGuid: LINUX_DATA },
  { role: "bootB", number: 4, name: "corium-boot-b", typeGuid: LINUX_DATA },
  { role: "rootA", number: 5, name: "corium-root-a", typeGuid: LINUX_DATA },
  { role: "rootB", number: 6, name: "corium-root-b", typeGuid: LINUX_DATA },
  { role: "state", number: 7, name: "corium-state", typeGuid: LINUX_DATA },
  { role: "data", number: 8, name: "corium-data", typeGuid: LINUX_DATA },
];

export interface LayoutInput {
  readonly diskSizeBytes: number;
  /** The logical sector: 512 or 4096. Read it from the disk, never assume it. */
  readonly sectorBytes: number;
  /** Size of the root image (squashfs and verity tree); a slot holds twice as much, for the images to come. */
  readonly rootImageBytes: number;
  readonly diskGuid: string;
  /** One per partition, chosen before anything is written: the intent that is journalled. */
  readonly partUuids: Readonly<Record<PartitionRole, string>>;
}

export interface LayoutPartition extends PartitionKind {
  /** Lower case, as in /dev/disk/by-partuuid. */
  readonly partUuid: string;
  readonly startBytes: number;
  readonly sizeBytes: number;
}

export interface Layout {
  readonly diskGuid: string;
  readonly sectorBytes: number;
  readonly partitions: readonly LayoutPartition[];
}

const roundUp = (value: number): number => Math.ceil(value / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
const roundDown = (value: number): number => Math.floor(value / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;

function fixedSizeBytes(role: Exclude<PartitionRole, "data">, rootImageBytes: number): number {
  switch (role) {
    case "bios":
      return MIB;
    case "esp":
      return 512 * MIB;
    case "bootA":
    case "bootB":
      return 256 * MIB;
    case "rootA":
    case "rootB":
      return roundUp(2 * rootImageBytes);
    case "state":
      return 1024 * MIB;
    default:
      return role satisfies never;
  }
}

/** Protective MBR, header and 16 KiB of entries: LBA 34 with 512-byte sectors, 6 with 4096; mirrored at the end. */
export const gptBytes = (sectorBytes: number): number => sectorBytes + 16_384;

/** The smallest disk that takes this image. */
export function neededBytes(rootImageBytes: number, sectorBytes: number): number {
  const fixed = PARTITIONS.map(({ role }) => (role === "data" ? 0 : fixedSizeBytes(role, rootImageBytes)));
  const sum = fixed.reduce((total, size) => total + size, ALIGNMENT_BYTES);
  return sum + MINIMUM_DATA_BYTES + gptBytes(sectorBytes);
}

/** Where everything goes; refuses a disk that is too small, naming needed and found bytes. */
export function planLayout(input: LayoutInput): Result<Layout, AppError> {
  const { diskSizeBytes, sectorBytes, rootImageBytes } = input;
  if (sectorBytes !== 512 && sectorBytes !== 4096) {
    return fail("sector-size", `sectors of ${sectorBytes} bytes are not supported`, { hint: "use 512 or 4096" });
  }
  const needed = neededBytes(rootImageBytes, sectorBytes);
  if (diskSizeBytes < needed) {
    return fail("disk-too-small", `the disk has ${diskSizeBytes} bytes, ${needed} are needed`, {
      hint: "choose a larger disk",
    });
  }
  const endBytes = roundDown(diskSizeBytes - gptBytes(sectorBytes));
  let startBytes = ALIGNMENT_BYTES;
  const partitions = PARTITIONS.map((kind): LayoutPartition => {
    const sizeBytes = kind.role === "data" ? endBytes - startBytes : fixedSizeBytes(kind.role, rootImageBytes);
    const partition = { ...kind, partUuid: input.partUuids[kind.role].toLowerCase(), startBytes, sizeBytes };
    startBytes += sizeBytes;
    return partition;
  });
  return ok({ diskGuid: input.diskGuid.toLowerCase(), sectorBytes, partitions });
}

export function partitionOf(layout: Layout, role: PartitionRole): LayoutPartition {
  const found = layout.partitions.find((partition) => partition.role === role);
  if (found === undefined) throw new Error(`layout without ${role}`);
  return found;
}

/**
 * Standard input of `sfdisk --wipe always --wipe-partitions always DISK`. sfdisk counts in the sectors of the
 * disk itself, so start and size are computed for `layout.sectorBytes` (sfdisk(8), "unit: sectors").
 */
export function sfdiskScript(layout: Layout): string {
  const sectors = (bytes: number): number => bytes / layout.sectorBytes;
  const lines = layout.partitions.map(
    (partition) =>
      `start=${sectors(partition.startBytes)}, size=${sectors(partition.sizeBytes)}, type=${partition.typeGuid}, ` +
      `uuid=${partition.partUuid}, name="${partition.name}"`,
  );
  return ["label: gpt", `label-id: ${layout.diskGuid}`, "unit: sectors", ...lines, ""].join("\n");
}
