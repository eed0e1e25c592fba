/**
 * Power cuts of a disk with a volatile cache, offline: QEMU's blklogwrites log (dm-log-writes, version 1) is replayed
 * up to the last flush before the cut, and of the writes after it each is there, lost, or torn.
 */
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";

export interface LogEntry {
  readonly sector: number;
  readonly sectors: number;
  readonly isFlush: boolean;
  readonly isFua: boolean;
  readonly isDiscard: boolean;
  /** Empty for flushes and discards. */
  readonly data: Uint8Array;
}

export interface WriteLog {
  readonly sectorBytes: number;
  readonly entries: readonly LogEntry[];
}

const MAGIC = 0x6a736677736872n;
const FLUSH = 1;
const FUA = 2;
const DISCARD = 4;

export function parseWriteLog(bytes: Buffer): WriteLog {
  if (bytes.length < 28 || bytes.readBigUInt64LE(0) !== MAGIC || bytes.readBigUInt64LE(8) !== 1n)
    throw new Error("this is no dm-log-writes log of version 1");
  const count = Number(bytes.readBigUInt64LE(16));
  const sectorBytes = bytes.readUInt32LE(24);
  const entries: LogEntry[] = [];
  let at = sectorBytes;
  for (let index = 0; index < count; index += 1) {
    if (at + sectorBytes > bytes.length) throw new Error(`the log ends within entry ${index} of ${count}`);
    const [sector, sectors, flags] = [0, 8, 16].map((offset) => Number(bytes.readBigUInt64LE(at + offset)));
    if (sector === undefined || sectors === undefined || flags === undefined) break;
    at += sectorBytes;
    const isDiscard = (flags & DISCARD) !== 0;
    const length = isDiscard ? 0 : sectors * sectorBytes;
    const data = bytes.subarray(at, at + length);
    entries.push({ sector, sectors, isFlush: (flags & FLUSH) !== 0, isFua: (flags & FUA) !== 0, isDiscard, data });
    at += length;
  }
  return { sectorBytes, entries };
}

export const readWriteLog = (path: string): WriteLog => parseWriteLog(readFileSync(path));

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export interface Cut {
  /** Entries before it were sent to the disk. */
  readonly at: number;
  readonly seed: number;
  /** The control that must find damage: so many of the last flushes are taken as if they had done nothing. */
  readonly ignoredFlushes?: number;
}

export interface Survivor {
  readonly entry: LogEntry;
  /** Of its data; less than all when the write was torn. */
  readonly keptSectors: number;
}

/** What of the log is on the disk after the cut, in order. */
export function survivors(log: WriteLog, cut: Cut): readonly Survivor[] {
  const sent = log.entries.slice(0, cut.at);
  const flushes = sent.flatMap((entry, index) => (entry.isFlush ? [index] : []));
  const durableUntil = flushes.at(-1 - (cut.ignoredFlushes ?? 0)) ?? -1;
  const random = seeded(cut.seed);
  const result: Survivor[] = [];
  for (const [index, entry] of sent.entries()) {
    if (entry.sectors === 0) continue;
    const chance = index <= durableUntil || entry.isFua ? 0 : random();
    if (chance < 0.45) result.push({ entry, keptSectors: entry.sectors });
    else if (chance >= 0.9 && !entry.isDiscard)
      result.push({ entry, keptSectors: Math.floor(random() * entry.sectors) });
  }
  return result;
}

/** Makes the disk as it is after the cut; `path` must be as the disk was before the log. */
export function replay(log: WriteLog, kept: readonly Survivor[], path: string): void {
  const file = openSync(path, "r+");
  try {
    for (const { entry, keptSectors } of kept) {
      const length = keptSectors * log.sectorBytes;
      const offset = entry.sector * log.sectorBytes;
      if (entry.isDiscard) clear(file, offset, length);
      else writeSync(file, entry.data, 0, length, offset);
    }
  } finally {
    closeSync(file);
  }
}

/** Zeros where there is something else, so that a discarded disk stays sparse. */
function clear(file: number, offset: number, length: number): void {
  const zeros = Buffer.alloc(1024 * 1024);
  const chunk = Buffer.alloc(zeros.length);
  for (let done = 0; done < length; done += zeros.length) {
    const size = Math.min(zeros.length, length - done);
    const count = readSync(file, chunk, 0, size, offset + done);
    if (!chunk.subarray(0, count).equals(zeros.subarray(0, count))) writeSync(file, zeros, 0, count, offset + done);
  }
}
