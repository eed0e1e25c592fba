import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { initrdComplaints } from "./initrd-content.ts";

const good = new Map(
  ["scripts/corium", "etc/corium/kept", "usr/sbin/dmsetup", "usr/sbin/e2fsck", "usr/sbin/blkid", "usr/sbin/mdadm"]
    .concat(["a/dm-verity.ko.xz", "a/squashfs.ko.xz", "a/isofs.ko.xz", "a/raid1.ko.xz"])
    .map((path) => [path, 10] as const),
);
const conf = readFileSync(join(import.meta.dir, "initramfs/corium-mdadm.conf"), "utf8");

test("our mdadm.conf in a sound initramfs raises no complaint", () => {
  expect(initrdComplaints(good, conf)).toEqual([]);
});

test("a vendor rule that assembles is found, an empty file of its name is a mask", () => {
  const rule = "usr/lib/udev/rules.d/64-md-raid-assembly.rules";
  expect(initrdComplaints(new Map([...good, [rule, 812]]), conf)).toEqual([`${rule} must not be there`]);
  expect(initrdComplaints(new Map([...good, [`etc/${rule.slice(8)}`, 0]]), conf)).toEqual([]);
  for (const path of [
    "usr/lib/udev/rules.d/69-lvm.rules",
    "scripts/local-block/mdadm",
    "scripts/local-premount/resume",
  ]) {
    expect(initrdComplaints(new Map([...good, [path, 1]]), conf).length).toBe(1);
  }
});

test("AUTO -all lost, or the build machine's arrays in its place", () => {
  expect(initrdComplaints(good, "HOMEHOST <none>\n")).toEqual(["etc/mdadm/mdadm.conf does not say AUTO -all"]);
  expect(initrdComplaints(good, `${conf}ARRAY /dev/md0 UUID=1:2:3:4\n`).length).toBe(1);
});
