import { expect, test } from "bun:test";
import type { Signature } from "../kit/disk.ts";
import { describeContent } from "./describe.ts";
import { blankDisk } from "../test/support/disks.ts";

const blank = blankDisk("/dev/sda", { serial: "A", sizeBytes: 1 << 26 });
const at = (type: string, offset: number, more: Partial<Signature> = {}): Signature => ({
  type,
  device: "/dev/sda",
  where: `the whole disk at 0x${offset.toString(16)}`,
  ...more,
});

test("a disk of a ZFS pool was refused with five hundred places, which no console shows", () => {
  const uberblocks = Array.from({ length: 512 }, (_, index) => at("zfs_member", 0x3fc00 - index * 1024));
  expect(describeContent({ ...blank, signatures: [at("ext4", 0x438, { label: "new" }), ...uberblocks] })).toBe(
    'ext4 "new" on the whole disk at 0x438, zfs_member on the whole disk at 0x3fc00 and 511 other places',
  );
});

test("two places are told both, and what differs in label or device is told apart", () => {
  const signatures = [
    at("gpt", 0x200),
    at("gpt", 0xfffe00),
    at("vfat", 0, { device: "/dev/sda1", where: "partition 1 at 0x0" }),
    at("vfat", 0, { device: "/dev/sda2", where: "partition 2 at 0x0", label: "EFI" }),
  ];
  expect(describeContent({ ...blank, signatures })).toBe(
    'gpt on the whole disk at 0x200, gpt on the whole disk at 0xfffe00, vfat on partition 1 at 0x0, vfat "EFI" on partition 2 at 0x0',
  );
});
