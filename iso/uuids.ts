/**
 * Every UUID of an installed system follows from its installation id: 32 hex digits, which are also the UUID of the
 * table and of the first partition of its disk. So a half-made disk names itself, and nothing has to be remembered.
 */
import { createHash } from "node:crypto";
import type { PartitionRole } from "./layout.ts";
import { PARTITIONS } from "./layout.ts";
import { sha256Of } from "../kit/sha256.ts";

/** What of a mirrored system is an array of one partition of each disk; firmware and GRUB's first stage read no md. */
export type MirroredRole = Exclude<PartitionRole, "bios" | "esp">;

export const isMirrored = (role: PartitionRole): role is MirroredRole => role !== "bios" && role !== "esp";

/** The digits alone, as the boot environment has them. */
export const bare = (uuid: string): string => uuid.replaceAll("-", "").toLowerCase();

export const guidOf = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;

/** The first partition is called as the table; the others follow by hash (RFC 9562 version 8: an own recipe). */
export function partUuidsOf(installation: string): Readonly<Record<PartitionRole, string>> {
  const entries = PARTITIONS.map(({ role }) => [
    role,
    role === "bios" ? guidOf(installation) : derived(installation, role),
  ]);
  return Object.fromEntries(entries) as Record<PartitionRole, string>;
}

function derived(installation: string, role: string): string {
  const hex = sha256Of(`corium ${installation} ${role}`);
  return guidOf(`${hex.slice(0, 12)}8${hex.slice(13, 16)}8${hex.slice(17, 32)}`);
}

const MASK = createHash("sha256").update("corium mirror").digest();

/**
 * The second disk of a mirrored system is laid out as if it were the disk of an installation of this name. The twin of
 * the twin is the installation again: either disk alone says whose it is, and no two partitions are called the same.
 */
export const twinOf = (installation: string): string =>
  [...Buffer.from(installation, "hex")]
    .map((byte, at) => (byte ^ (MASK[at] ?? 0)).toString(16).padStart(2, "0"))
    .join("");

/** `8:8:8:8`, as mdadm writes it. */
export function arrayUuidOf(installation: string, role: MirroredRole): string {
  const hex = bare(derived(installation, `array ${role}`));
  return (hex.match(/.{8}/g) ?? []).join(":");
}

/** `/dev/md/corium-root-a`, and its name in the superblock. */
export const arrayNameOf = (role: MirroredRole): string => PARTITIONS.find((each) => each.role === role)?.name ?? role;

export const MIRRORED_ROLES: readonly MirroredRole[] = PARTITIONS.map(({ role }) => role).filter(isMirrored);
