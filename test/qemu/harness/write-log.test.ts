import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRaw, sha256 } from "./disk.ts";
import { parseWriteLog, readWriteLog, replay, seeded, survivors, type LogEntry, type WriteLog } from "./write-log.ts";

const directory = mkdtempSync(join(tmpdir(), "corium-log-"));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const log = readWriteLog(join(import.meta.dir, "testdata/blklogwrites-small.log"));
const all = log.entries.length;

const write = (sector: number, byte: number): LogEntry => ({
  sector,
  sectors: 1,
  isFlush: false,
  isFua: false,
  isDiscard: false,
  data: new Uint8Array(512).fill(byte),
});
const flush: LogEntry = {
  sector: 0,
  sectors: 0,
  isFlush: true,
  isFua: false,
  isDiscard: false,
  data: new Uint8Array(),
};
const made: WriteLog = {
  sectorBytes: 512,
  entries: [write(0, 1), flush, write(1, 2), flush, write(2, 3), write(3, 4)],
};
const sectorsLeft = (at: number, seed: number, ignoredFlushes = 0): readonly number[] =>
  survivors(made, { at, seed, ignoredFlushes }).map((kept) => kept.entry.sector);

test("a captured log is read to its end", () => {
  expect(all).toBeGreaterThan(10);
  expect(log.sectorBytes).toBe(512);
  expect(log.entries.some((entry) => entry.isFlush)).toBe(true);
  expect(() => parseWriteLog(Buffer.alloc(4096))).toThrow("no dm-log-writes log");
});

test("the same cut with the same seed gives the same disk, another seed another one", () => {
  const disk = (seed: number, name: string): string => {
    const path = createRaw(join(directory, name), 64);
    replay(log, survivors(log, { at: all, seed, ignoredFlushes: 1000 }), path);
    return sha256(path);
  };
  expect(disk(7, "a")).toBe(disk(7, "b"));
  expect(disk(8, "c")).not.toBe(disk(7, "d"));
});

test("what was flushed is never lost, what came after may be", () => {
  const lost = new Set<number>();
  for (let seed = 0; seed < 200; seed += 1) {
    const left = sectorsLeft(6, seed);
    expect(left).toContain(0);
    expect(left).toContain(1);
    for (const sector of [2, 3]) if (!left.includes(sector)) lost.add(sector);
  }
  expect(lost).toEqual(new Set([2, 3]));
});

test("the control that ignores flushes loses what was acknowledged: the check can fail", () => {
  const losses = Array.from({ length: 50 }, (_, seed) => !sectorsLeft(6, seed, 1).includes(1));
  expect(losses.some(Boolean)).toBe(true);
});

test("seeded numbers spread from 0 to 1", () => {
  const random = seeded(1);
  const numbers = Array.from({ length: 1000 }, random);
  const mean = numbers.reduce((sum, number) => sum + number, 0) / 1000;
  expect(mean).toBeWithin(0.45, 0.55);
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...numbers)).toBeLessThan(1);
});
