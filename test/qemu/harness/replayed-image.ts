/**
 * The disks of a write log as they are after a power cut, in memory: cuts are taken in the order of the log, so that what
 * had become durable before is applied once. Nothing is copied but what was cut.
 */
import { spawnSync } from "node:child_process";
import { closeSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { type Cut, type LogEntry, seeded, type WriteLog } from "./write-log.ts";

const PAGE = 4096;
const CHUNK = 4 * 1024 * 1024;
const ZEROS = new Uint8Array(PAGE);

/** A disk, or a part of one. */
export interface View {
  readonly sizeBytes: number;
  readonly read: (offset: number, length: number) => Buffer;
  part(offset: number, sizeBytes: number): View;
  /** The same for the same content, of one log. */
  fingerprint(): string;
  /** As a sparse file; `isWanted` leaves out what a check does not look at. */
  extract(path: string, isWanted?: (offset: number) => boolean): string;
}

export class ReplayedImage {
  readonly #log: WriteLog;
  readonly #flushes: readonly number[];
  #durable = new Map<number, Uint8Array>();
  #overlay = new Map<number, Uint8Array>();
  #applied = 0;

  /** `base`: a raw image as it was before the log; absent: blank. */
  constructor(log: WriteLog, base?: string) {
    this.#log = log;
    this.#flushes = log.entries.flatMap(({ isFlush }, index) => (isFlush ? [index] : []));
    if (base !== undefined) this.#load(base);
  }

  /** Only what the file holds of it: the images are sparse. */
  #load(path: string): void {
    const mapped = spawnSync("qemu-img", ["map", "--output=json", "-f", "raw", path], { encoding: "utf8" });
    const extents = JSON.parse(mapped.stdout) as readonly { start: number; length: number; data: boolean }[];
    const file = openSync(path, "r");
    for (const { start, length } of extents.filter(({ data }) => data)) {
      for (let at = start; at < start + length; at += CHUNK) {
        const chunk = Buffer.alloc(Math.min(CHUNK, start + length - at));
        readSync(file, chunk, 0, chunk.length, at);
        for (let within = 0; within < chunk.length; within += PAGE) {
          const page = chunk.subarray(within, within + PAGE);
          if (Buffer.compare(page, ZEROS) !== 0) this.#durable.set((at + within) / PAGE, page);
        }
      }
    }
    closeSync(file);
  }

  /** A cut behind all earlier ones. */
  cutAt(cut: Cut): void {
    const flushes = this.#flushes.filter((index) => index < cut.at);
    const durable = (flushes.at(-1 - (cut.ignoredFlushes ?? 0)) ?? -1) + 1;
    if (durable < this.#applied) throw new Error("cuts go forward only");
    this.#overlay = new Map();
    for (; this.#applied < durable; this.#applied += 1) {
      const entry = this.#log.entries[this.#applied];
      if (entry !== undefined) this.#apply(entry, entry.sectors, this.#durable);
    }
    const random = seeded(cut.seed);
    for (let index = durable; index < cut.at; index += 1) {
      const entry = this.#log.entries[index];
      if (entry === undefined || entry.sectors === 0) continue;
      const chance = entry.isFua ? 0 : random();
      if (chance < 0.45) this.#apply(entry, entry.sectors, this.#overlay);
      else if (chance >= 0.9 && !entry.isDiscard)
        this.#apply(entry, Math.floor(random() * entry.sectors), this.#overlay);
    }
  }

  /** Nothing is lost: as the disks were at the end of the log. */
  finish(): void {
    this.#overlay = new Map();
    for (; this.#applied < this.#log.entries.length; this.#applied += 1) {
      const entry = this.#log.entries[this.#applied];
      if (entry !== undefined) this.#apply(entry, entry.sectors, this.#durable);
    }
  }

  #apply(entry: LogEntry, sectors: number, into: Map<number, Uint8Array>): void {
    const start = entry.sector * this.#log.sectorBytes;
    const end = start + sectors * this.#log.sectorBytes;
    for (let at = start; at < end;) {
      const number = Math.floor(at / PAGE);
      const within = at - number * PAGE;
      const count = Math.min(PAGE - within, end - at);
      const data = entry.isDiscard ? ZEROS.subarray(0, count) : entry.data.subarray(at - start, at - start + count);
      // A whole disk is discarded at a time: of a blank one nothing has to be remembered.
      if (count === PAGE && entry.isDiscard && !this.#durable.has(number)) into.delete(number);
      else if (count === PAGE) into.set(number, data);
      else {
        const page = Uint8Array.from(this.#page(number));
        page.set(data, within);
        into.set(number, page);
      }
      at += count;
    }
  }

  #page(number: number): Uint8Array {
    const found = this.#overlay.get(number) ?? this.#durable.get(number);
    return found ?? ZEROS;
  }

  view(start: number, sizeBytes: number): View {
    return {
      sizeBytes,
      fingerprint: () => {
        let sum = 0n;
        for (const pages of [this.#durable, this.#overlay]) {
          for (const [number, page] of pages) {
            const offset = number * PAGE - start;
            if (offset < 0 || offset >= sizeBytes || (pages === this.#durable && this.#overlay.has(number))) continue;
            // Blank where nothing was written, and where zeros were, is one.
            if (Buffer.compare(page, ZEROS) !== 0) sum += Bun.hash.wyhash(page, BigInt(number));
          }
        }
        return sum.toString(16);
      },
      read: (offset, length) => {
        const result = Buffer.alloc(length);
        for (let done = 0; done < length;) {
          const at = start + offset + done;
          const number = Math.floor(at / PAGE);
          const within = at - number * PAGE;
          const count = Math.min(PAGE - within, length - done);
          result.set(this.#page(number).subarray(within, within + count), done);
          done += count;
        }
        return result;
      },
      part: (offset, size) => this.view(start + offset, size),
      extract: (path, isWanted = () => true) => {
        const file = openSync(path, "w");
        try {
          ftruncateSync(file, sizeBytes);
          for (const pages of [this.#durable, this.#overlay]) {
            for (const [number, page] of pages) {
              const offset = number * PAGE - start;
              if (offset < 0 || offset >= sizeBytes || !isWanted(offset)) continue;
              if (pages === this.#durable && this.#overlay.has(number)) continue;
              writeSync(file, page, 0, PAGE, offset);
            }
          }
        } finally {
          closeSync(file);
        }
        return path;
      },
    };
  }
}

/**
 * Cuts spread over the log, one before and after each entry that `isCritical`, and one at the very end; in order, the same
 * for one seed. Two at one place are two: other writes survive.
 */
export function chooseCuts(
  log: WriteLog,
  options: { readonly count: number; readonly seed: number; readonly isCritical?: (entry: LogEntry) => boolean },
): readonly Cut[] {
  const random = seeded(options.seed);
  const critical = log.entries.flatMap((entry, index) =>
    options.isCritical?.(entry) === true ? [index, index + 1] : [],
  );
  const spread = Array.from({ length: options.count }, () => 1 + Math.floor(random() * log.entries.length));
  return [...critical, ...spread, log.entries.length]
    .filter((at) => at > 0)
    .toSorted((a, b) => a - b)
    .map((at) => ({ at, seed: Math.floor(random() * 2 ** 31) }));
}

/** Of the partition table of a disk that the log begins with: what a cut must be tried beside. */
export const isTableWrite =
  (sizeBytes: number) =>
  ({ isDiscard, sector, sectors }: LogEntry): boolean =>
    !isDiscard && sectors > 0 && (sector < 34 || (sector * 512 < sizeBytes && sector * 512 >= sizeBytes - 34 * 512));
