/**
 * Pure: the bytes by which a disk shows whose it is, for what no tool of a build machine can make: each as its owner
 * writes them and as libblkid (util-linux, libblkid/src/superblocks) asks for them, check sums included.
 */

/** Bytes to write at an offset; a negative one counts from the end of the device. */
export interface Imprint {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

const KIB = 1024;
const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
const at = (offset: number, bytes: Uint8Array): Imprint => ({ offset, bytes });

function block(size: number, fill: (view: DataView, bytes: Uint8Array) => void): Uint8Array {
  const bytes = new Uint8Array(size);
  fill(new DataView(bytes.buffer), bytes);
  return bytes;
}

/** Bit by bit, least significant first: CRC-32 and CRC-32C differ in the polynomial only. */
function crc32(bytes: Uint8Array, polynomial: number, start: number): number {
  let crc = start;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
  }
  return crc >>> 0;
}

/** CRC-64/WE, as bcache has it. */
function crc64(bytes: Uint8Array): bigint {
  const mask = (1n << 64n) - 1n;
  let crc = mask;
  for (const byte of bytes) {
    crc ^= BigInt(byte) << 56n;
    for (let bit = 0; bit < 8; bit += 1)
      crc = crc >> 63n === 1n ? ((crc << 1n) ^ 0x42f0e1eba9ea3693n) & mask : (crc << 1n) & mask;
  }
  return crc ^ mask;
}

const uuid = Uint8Array.from({ length: 16 }, (_, index) => 0x10 + index);

/** A physical volume of LVM: its label in the second sector. */
export const lvmMember = (): readonly Imprint[] => [
  at(
    512,
    block(512, (view, bytes) => {
      bytes.set(ascii("LABELONE"), 0);
      view.setBigUint64(8, 1n, true);
      view.setUint32(20, 32, true);
      bytes.set(ascii("LVM2 001"), 24);
      bytes.set(ascii("k1dJxuRNYsOd5fcBMfGZhjqv0tLw3Xab"), 32);
      view.setUint32(16, crc32(bytes.subarray(20), 0xedb88320, 0xf597a6cf), true);
    }),
  ),
];

export const btrfs = (sizeBytes: number): readonly Imprint[] => [
  at(
    64 * KIB,
    block(4 * KIB, (view, bytes) => {
      bytes.set(uuid, 32);
      view.setBigUint64(48, BigInt(64 * KIB), true);
      bytes.set(ascii("_BHRfS_M"), 64);
      view.setBigUint64(72, 1n, true);
      view.setBigUint64(112, BigInt(sizeBytes), true);
      view.setBigUint64(136, 1n, true);
      view.setUint32(144, 4096, true);
      view.setUint32(148, 16_384, true);
      bytes.set(ascii("movies"), 299);
      view.setUint32(0, ~crc32(bytes.subarray(32), 0x82f63b78, 0xffffffff) >>> 0, true);
    }),
  ),
];

/** Version 1 of a backing device, 3 of a cache (linux/bcache.h, `struct cache_sb`). */
export const bcache = (version: 1 | 3): readonly Imprint[] => [
  at(
    4 * KIB,
    block(4 * KIB, (view, bytes) => {
      view.setBigUint64(8, 8n, true);
      view.setBigUint64(16, BigInt(version), true);
      bytes.set(Uint8Array.fromHex("c68573f64e1a45ca8265f57f48ba6d81"), 24);
      bytes.set(uuid, 40);
      view.setUint16(192, 1, true);
      view.setUint16(194, 1024, true);
      view.setUint16(196, 1, true);
      view.setBigUint64(0, crc64(bytes.subarray(8, 208)), true);
    }),
  ),
];

export const bluestore = (): readonly Imprint[] => [
  at(0, ascii("bluestore block device\n8f4a2c1e-7d3b-4c6f-9e0a-1b2c3d4e5f60\n")),
];

/** The configuration of a pool in XDR, as it stands in each label: names, and strings or 64-bit numbers. */
function poolConfiguration(pairs: Readonly<Record<string, string | bigint>>): Uint8Array {
  const padded = (text: string): Uint8Array => {
    const bytes = new Uint8Array(Math.ceil(text.length / 4) * 4);
    bytes.set(ascii(text));
    return bytes;
  };
  const words = (...values: readonly number[]): Uint8Array =>
    block(values.length * 4, (view) => values.forEach((value, index) => view.setUint32(index * 4, value)));
  const parts: Uint8Array[] = [Uint8Array.of(1, 1, 0, 0), words(0, 1)];
  for (const [name, value] of Object.entries(pairs)) {
    const shown =
      typeof value === "string"
        ? [words(9, 1, value.length), padded(value)]
        : [words(8, 1), block(8, (view) => view.setBigUint64(0, value))];
    const pair = [words(name.length), padded(name), ...shown];
    const size = 8 + pair.reduce((sum, each) => sum + each.length, 0);
    parts.push(words(size, size), ...pair);
  }
  return new Uint8Array(Buffer.concat([...parts, words(0, 0)]));
}

/** An uberblock in each slot, and the pool's configuration, which newer versions of libblkid go by; `L0` and `L1` stand at the start, `L2` and `L3` at the end. */
export function zfsLabels(sizeBytes: number, where: readonly ("L0" | "L1" | "L2" | "L3")[]): readonly Imprint[] {
  const label = 256 * KIB;
  const end = Math.floor(sizeBytes / label) * label;
  const starts = { L0: 0, L1: label, L2: end - 2 * label, L3: end - label };
  const uberblocks = block(128 * KIB, (view) => {
    for (let slot = 0; slot < 128; slot += 1) {
      view.setBigUint64(slot * KIB, 0x00bab10cn, true);
      view.setBigUint64(slot * KIB + 8, 5000n, true);
      view.setBigUint64(slot * KIB + 16, BigInt(slot + 1), true);
    }
  });
  const configuration = poolConfiguration({
    version: 5000n,
    name: "tank",
    state: 0n,
    txg: 4n,
    pool_guid: 0x1122334455667788n,
    top_guid: 0x2233445566778899n,
    guid: 0x2233445566778899n,
  });
  return where.flatMap((name) => [
    at(starts[name] + 16 * KIB, configuration),
    at(starts[name] + 128 * KIB, uberblocks),
  ]);
}

/** Metadata of 8.4 at the very end of the device. */
export const drbd = (): readonly Imprint[] => [
  at(
    -4 * KIB,
    block(4 * KIB, (view) => {
      view.setBigUint64(0, 100_000n);
      view.setBigUint64(40, 0x1122334455667788n);
      view.setUint32(60, 0x8374026b);
      view.setUint32(64, 72);
      view.setInt32(68, -8);
      view.setUint32(72, 1237);
      view.setInt32(76, -72);
      view.setUint32(80, 4096);
    }),
  ),
];

/** Anchor and primary header of the SNIA disk data format. */
export function ddf(sizeBytes: number): readonly Imprint[] {
  const sectors = sizeBytes / 512;
  const header = block(512, (view, bytes) => {
    view.setUint32(0, 0xde11de11);
    bytes.set(ascii("LSI     \u0010\u0000 q"), 8);
    bytes.set(ascii("02.00.00"), 32);
    view.setBigUint64(96, BigInt(sectors - 2048));
    view.setBigUint64(104, BigInt(sectors - 1024));
  });
  return [at((sectors - 2048) * 512, header), at(-512, header)];
}

/** What firmware of cheap controllers writes at the end of a disk: Intel, LSI, Promise. */
export const ataRaid = {
  isw: (): readonly Imprint[] => [at(-1024, ascii("Intel Raid ISM Cfg Sig. 1.3.00\0\0"))],
  lsi: (): readonly Imprint[] => [at(-512, ascii("$XIDE$"))],
  promise: (): readonly Imprint[] => [at(-63 * 512, ascii("Promise Technology, Inc."))],
} as const;

/** Boot sector, and the two records of the master file table that say what it is. */
export function ntfs(sizeBytes: number): readonly Imprint[] {
  const record = block(1024, (view, bytes) => {
    bytes.set(ascii("FILE"), 0);
    view.setUint16(20, 56, true);
    view.setUint32(24, 64, true);
    view.setUint32(28, 1024, true);
    view.setUint32(56, 0xffffffff, true);
  });
  const boot = block(512, (view, bytes) => {
    bytes.set([0xeb, 0x52, 0x90], 0);
    bytes.set(ascii("NTFS    "), 3);
    view.setUint16(11, 512, true);
    view.setUint8(13, 8);
    view.setUint8(21, 0xf8);
    view.setBigUint64(40, BigInt(sizeBytes / 512 - 1), true);
    view.setBigUint64(48, 4n, true);
    view.setBigUint64(56, 2048n, true);
    view.setInt8(64, -10);
    view.setInt8(68, 1);
    view.setBigUint64(72, 0x1234567890abcdefn, true);
    view.setUint16(510, 0xaa55, true);
  });
  return [at(0, boot), at(4 * 4096, record), at(4 * 4096 + 3 * 1024, record)];
}

/** The first fields of both headers of LUKS 2, or the one of LUKS 1: as much as says whose the disk is. */
export function luks(version: 1 | 2): readonly Imprint[] {
  const header = (magic: string, offset: number): Imprint =>
    at(
      offset,
      block(512, (view, bytes) => {
        bytes.set(Uint8Array.fromHex(magic), 0);
        view.setUint16(6, version);
        if (version === 2) {
          view.setBigUint64(8, BigInt(16 * KIB));
          bytes.set(ascii("sha256"), 72);
          view.setBigUint64(256, BigInt(offset));
        } else bytes.set(ascii("aes"), 8);
        bytes.set(ascii("5d3a5a35-9aaf-4d11-93f6-0f8d9e6c4a11"), 168);
      }),
    );
  return version === 1 ? [header("4c554b53babe", 0)] : [header("4c554b53babe", 0), header("534b554cbabe", 16 * KIB)];
}

/** The oldest superblock of md: the last 64 KiB that are aligned to 64 KiB (linux/raid/md_p.h, `mdp_super_t`). */
export function md090(sizeBytes: number): readonly Imprint[] {
  const offset = Math.floor(sizeBytes / (64 * KIB)) * 64 * KIB - 64 * KIB;
  const bytes = block(4 * KIB, (view) => {
    const word = (index: number, value: number): void => view.setUint32(index * 4, value, true);
    [0xa92b4efc, 0, 90, 0, 0, 0x11111111, 1_718_000_000, 1].forEach((value, index) => word(index, value));
    [offset / KIB, 2, 2, 0, 0, 0x22222222, 0x33333333, 0x44444444].forEach((value, index) => word(8 + index, value));
    [1_718_000_000, 1, 2, 2, 0, 0].forEach((value, index) => word(32 + index, value));
    // `this_disk`, and both members: number, major, minor, raid_disk, state (active, in sync).
    for (const [index, disk] of [[992, 0] as const, [128, 0] as const, [160, 1] as const])
      [disk, 8, disk * 16, disk, 6].forEach((value, more) => word(index + more, value));
    let sum = 0n;
    for (let index = 0; index < 1024; index += 1) sum += BigInt(view.getUint32(index * 4, true));
    word(38, Number(((sum & 0xffffffffn) + (sum >> 32n)) & 0xffffffffn));
  });
  return [at(offset, bytes)];
}
