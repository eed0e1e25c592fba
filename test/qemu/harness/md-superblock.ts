/**
 * Pure: the superblock of an md member, version 1 (linux/raid/md_p.h, `struct mdp_superblock_1`). The kernel of a
 * build machine may have no md, so arrays of somebody else can't be made there with mdadm.
 */
export interface MdMember {
  /** `host:name`, at most 32 bytes. */
  readonly name: string;
  readonly level: number;
  readonly members: number;
  readonly role: number;
  readonly setUuid: Uint8Array;
  readonly deviceUuid: Uint8Array;
  readonly deviceBytes: number;
  /** Seconds since 1970. Default: a day in 2024. */
  readonly createdAt?: number;
  readonly events?: number;
  /** Where it stands: 1.0 near the end, 1.1 at the start, 1.2 (default) 4 KiB into the device. */
  readonly version?: "1.0" | "1.1" | "1.2";
}

const MAGIC = 0xa92b4efc;
const DATA_OFFSET = 2048n;
const CLEAN = 0xffffffffffffffffn;
const MAX_DEV = 128;

/** Where the superblock stands, in bytes from the start of the device. */
export function mdSuperblockOffset({ version, deviceBytes }: Pick<MdMember, "version" | "deviceBytes">): number {
  if (version === "1.1") return 0;
  return version === "1.0" ? Math.floor((Math.floor(deviceBytes / 512) - 16) / 8) * 4096 : 4096;
}

/** The bytes to write there. */
export function mdSuperblock(member: MdMember): Buffer {
  const block = Buffer.alloc(256 + MAX_DEV * 2);
  const sectors = BigInt(Math.floor(member.deviceBytes / 512));
  const isStriped = member.level === 0 || member.level >= 4;
  const chunkSectors = isStriped ? 1024 : 0;
  const superSector = BigInt(mdSuperblockOffset(member) / 512);
  // With the superblock at the end the data begin at the start.
  const dataOffset = member.version === "1.0" ? 0n : DATA_OFFSET;
  const usable = member.version === "1.0" ? superSector : sectors - DATA_OFFSET;
  // Whole chunks, as mdadm rounds.
  const unit = BigInt(Math.max(chunkSectors, 2));
  const dataSectors = (usable / unit) * unit;
  const createdAt = BigInt(member.createdAt ?? 1_718_000_000);
  block.writeUInt32LE(MAGIC, 0);
  block.writeUInt32LE(1, 4);
  block.set(member.setUuid, 16);
  block.write(member.name, 32, 32, "utf8");
  block.writeBigUInt64LE(createdAt, 64);
  block.writeInt32LE(member.level, 72);
  block.writeUInt32LE(member.level >= 5 ? 2 : 0, 76);
  // RAID 0 has no used size.
  block.writeBigUInt64LE(member.level === 0 ? 0n : dataSectors, 80);
  block.writeUInt32LE(chunkSectors, 88);
  block.writeUInt32LE(member.members, 92);
  block.writeBigUInt64LE(dataOffset, 128);
  block.writeBigUInt64LE(dataSectors, 136);
  block.writeBigUInt64LE(superSector, 144);
  block.writeUInt32LE(member.role, 160);
  block.set(member.deviceUuid, 168);
  block.writeBigUInt64LE(createdAt, 192);
  block.writeBigUInt64LE(BigInt(member.events ?? 17), 200);
  block.writeBigUInt64LE(CLEAN, 208);
  block.writeUInt32LE(MAX_DEV, 220);
  for (let slot = 0; slot < MAX_DEV; slot += 1)
    block.writeUInt16LE(slot < member.members ? slot : 0xffff, 256 + slot * 2);
  block.writeUInt32LE(checksum(block), 216);
  return block;
}

/** The sum of all 32-bit words, its carries folded back once; the checksum's own field counts as 0. */
export function checksum(block: Buffer): number {
  let sum = 0n;
  for (let at = 0; at + 4 <= block.length; at += 4) if (at !== 216) sum += BigInt(block.readUInt32LE(at));
  return Number(((sum & 0xffffffffn) + (sum >> 32n)) & 0xffffffffn);
}
