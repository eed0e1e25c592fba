/** A GPT on a disk image, as the kernel reads it (block/partitions/efi.c): both copies, each with its checksums. */
import { crc32 } from "node:zlib";

export interface GptPartition {
  readonly number: number;
  readonly startBytes: number;
  readonly sizeBytes: number;
  readonly partUuid: string;
  readonly name: string;
}

export interface Gpt {
  /** Without it udev reads no names, and a kernel without `gpt` no table. */
  readonly hasMbr: boolean;
  /** Each copy only when it is valid. */
  readonly primary?: readonly GptPartition[];
  readonly backup?: readonly GptPartition[];
}

type Read = (offset: number, length: number) => Buffer;

export function readGpt(read: Read, sizeBytes: number, sectorBytes = 512): Gpt {
  const mbr = read(0, 512);
  const isProtective = [0, 1, 2, 3].some((slot) => mbr[446 + slot * 16 + 4] === 0xee);
  const primary = readCopy(read, 1, sectorBytes);
  const backup = readCopy(read, Math.floor(sizeBytes / sectorBytes) - 1, sectorBytes);
  return {
    hasMbr: mbr.readUInt16LE(510) === 0xaa55 && isProtective,
    ...(primary === undefined ? {} : { primary }),
    ...(backup === undefined ? {} : { backup }),
  };
}

function readCopy(read: Read, lba: number, sectorBytes: number): readonly GptPartition[] | undefined {
  const header = read(lba * sectorBytes, sectorBytes);
  if (header.toString("latin1", 0, 8) !== "EFI PART" || header.readBigUInt64LE(24) !== BigInt(lba)) return undefined;
  const size = header.readUInt32LE(12);
  const summed = Buffer.from(header.subarray(0, size));
  summed.writeUInt32LE(0, 16);
  if (crc32(summed) !== header.readUInt32LE(16)) return undefined;
  const [count, entryBytes] = [header.readUInt32LE(80), header.readUInt32LE(84)];
  const entries = read(Number(header.readBigUInt64LE(72)) * sectorBytes, count * entryBytes);
  if (crc32(entries) !== header.readUInt32LE(88)) return undefined;
  return Array.from({ length: count }, (_, index) => entries.subarray(index * entryBytes, (index + 1) * entryBytes))
    .map((entry, index): GptPartition => {
      const [first, last] = [32, 40].map((at) => Number(entry.readBigUInt64LE(at)));
      return {
        number: index + 1,
        startBytes: (first ?? 0) * sectorBytes,
        sizeBytes: ((last ?? 0) - (first ?? 0) + 1) * sectorBytes,
        partUuid: guid(entry.subarray(16, 32)),
        name: entry.toString("utf16le", 56, 128).replace(/\0.*$/s, ""),
      };
    })
    .filter((_, index) => !entries.subarray(index * entryBytes, index * entryBytes + 16).every((byte) => byte === 0));
}

/** The first three groups are little-endian. */
function guid(bytes: Buffer): string {
  const hex = [
    Buffer.from(bytes.subarray(0, 4)).reverse(),
    Buffer.from(bytes.subarray(4, 6)).reverse(),
    Buffer.from(bytes.subarray(6, 8)).reverse(),
    bytes.subarray(8, 10),
    bytes.subarray(10, 16),
  ];
  return hex.map((part) => part.toString("hex")).join("-");
}
