import { expect, test } from "bun:test";
import type { Inventory } from "../kit/disk.ts";
import { countedUuids, machine, mirror, plainDisk, storageDocument } from "../test/machines/machines.ts";
import { arrayBytes } from "./room-lint.ts";
import { planStorage } from "./storage.ts";

const MIB = 1024 ** 2;
const pairOf = (sizeBytes: number): Inventory => {
  const pair = machine("blank-pair");
  return { ...pair, disks: pair.disks.map((disk) => (disk.isSystemDisk ? disk : { ...disk, sizeBytes })) };
};
const said = (sizeBytes: number, parts: Parameters<typeof storageDocument>[0]): string[] =>
  planStorage({
    document: storageDocument(parts),
    inventory: pairOf(sizeBytes),
    owned: [],
    intents: [],
    uuid: countedUuids(),
  }).findings.map(
    ({ severity, code, path, message }) => `${severity} ${code} ${path}: ${message.replace(/ \(.*?\)/, "")}`,
  );

test("a disk too small for XFS was wiped, and then mkfs said so", () => {
  const xfs = { disks: [plainDisk({ filesystem: "xfs", wipe: true })] };
  expect(said(300 * MIB, xfs)).toEqual([]);
  expect(said(299 * MIB, xfs)).toEqual([
    "error disk-too-small disks[0].device: disk /dev/vdb has 313524224 bytes, and xfs needs 314572800",
  ]);
  expect(said(2 * MIB, { disks: [plainDisk()] })).toEqual([]);
});

test("an array too small for its filesystem was created, and stood there without one", () => {
  expect(said(300 * MIB, { raid: [mirror({ filesystem: "xfs" })] })).toEqual([
    "error disk-too-small raid[0].devices: array data will have 313524224 bytes, and xfs needs 314572800",
  ]);
  expect(said(300 * MIB, { raid: [mirror({ level: 0, filesystem: "xfs" })] })).toEqual([]);
  const { mountPoint: _, ...bare } = mirror({ filesystem: "none" });
  expect(said(MIB, { raid: [bare] })).toEqual([
    "error disk-too-small raid[0].devices: array data will have 0 bytes, and that is nothing",
  ]);
});

test("a volume on a disk of which the header takes all was formatted and never opened", () => {
  const vault = { name: "vault", unlock: "passphrase", passphrase: "x", filesystem: "ext4", wipe: true } as const;
  expect(said(16 * MIB, { luks: [{ ...vault, device: { serial: "A" } }] })).toEqual([
    "error disk-too-small luks[0].device: volume vault will have 0 bytes, and ext4 needs 1048576",
  ]);
  expect(said(17 * MIB, { luks: [{ ...vault, device: { serial: "A" } }] })).toEqual([]);
  const { mountPoint: _, ...bare } = mirror({ filesystem: "none" });
  expect(said(17 * MIB, { raid: [bare], luks: [{ ...vault, device: "/dev/md/data" }] })).toEqual([
    "error disk-too-small luks[0].device: volume vault will have 0 bytes, and ext4 needs 1048576",
  ]);
});

test("what an array holds at the most, by level", () => {
  const members = [5, 3, 3, 4].map((mib) => ({ sizeBytes: mib * MIB }));
  expect(([0, 1, 5, 6, 10] as const).map((level) => arrayBytes(level, members) / MIB)).toEqual([11, 2, 6, 4, 4]);
});
