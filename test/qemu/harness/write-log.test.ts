import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRaw, readAt, runTool, sha256, writeAt } from "./disk.ts";
import { readGpt } from "./gpt.ts";
import { ReplayedImage } from "./replayed-image.ts";
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

test("cut after cut in memory, the disk is the one that a replay from the start makes", () => {
  const image = new ReplayedImage(log);
  for (const at of [1, 7, Math.floor(all / 2), all]) {
    const cut = { at, seed: at * 3 };
    const path = createRaw(join(directory, `replayed-${at}`), 64);
    replay(log, survivors(log, cut), path);
    image.cutAt(cut);
    const disk = image.view(0, 64 * 1024 * 1024);
    expect(sha256(disk.extract(join(directory, `extracted-${at}`)))).toBe(sha256(path));
    expect(disk.read(1024, 8192)).toEqual(readAt(path, 1024, 8192));
  }
  expect(() => image.cutAt({ at: 1, seed: 1 })).toThrow("forward only");
});

test("a base is under what the log wrote", () => {
  const base = createRaw(join(directory, "base"), 1);
  writeAt(base, 3 * 512, new Uint8Array(1024).fill(9));
  const image = new ReplayedImage(made, base);
  image.finish();
  const bytes = image.view(0, 1024 * 1024).read(0, 6 * 512);
  expect([0, 1, 2, 3, 4, 5].map((sector) => bytes[sector * 512])).toEqual([1, 2, 3, 4, 9, 0]);
  expect(image.view(512, 512).read(0, 1)[0]).toBe(2);
});

test("both copies of a GPT are read, and one with a wrong checksum is none", async () => {
  const path = createRaw(join(directory, "gpt"), 8);
  await runTool(
    ["sfdisk", "--quiet", path],
    'label: gpt\nstart=2048, size=2048, name="first"\nstart=4096, size=2048, name="second"\n',
  );
  const look = () => readGpt((offset, length) => readAt(path, offset, length), 8 * 1024 * 1024);
  const before = look();
  expect(before.hasMbr).toBe(true);
  expect(before.primary?.map(({ name, startBytes }) => [name, startBytes])).toEqual([
    ["first", 1024 ** 2],
    ["second", 2 * 1024 ** 2],
  ]);
  expect(before.backup).toEqual(before.primary);
  writeAt(path, 1024 + 60, new Uint8Array([1]));
  expect(look().primary).toBeUndefined();
  expect(look().backup).toEqual(before.backup);
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
