import { describe, expect, test } from "bun:test";
import { formatError } from "../kit/app-error.ts";
import type { DeviceRef } from "../config/document.ts";
import { machine } from "../test/machines/machines.ts";
import { resolveDevice } from "./select.ts";

const select = (ref: DeviceRef, name: string): string => {
  const found = resolveDevice(ref, machine(name));
  return found.ok ? found.value.path : formatError(found.error);
};

describe("resolveDevice", () => {
  test("path, by-id link, by-path link and selector name the same disk", () => {
    for (const ref of ["/dev/vdb", "/dev/disk/by-id/virtio-A", "/dev/disk/by-path/pci-0000:00:04.0", { serial: "A" }])
      expect(select(ref, "blank-pair")).toBe("/dev/vdb");
  });

  test("B002: a loose selector that matches a second disk takes neither and lists both", () => {
    const text = select({ bus: "nvme" }, "ssd-and-nvme");
    expect(text).toStartWith("2 disks match {bus: nvme}, it must be exactly one\n");
    expect(text).toContain("/dev/nvme0n1 (no model, serial NVME, 931.3 GiB), 1000000000000 bytes: matches");
    expect(text).toContain("/dev/sdb (no model, serial SSD, 238.4 GiB), 256000000000 bytes: bus is sata, not nvme");
    expect(select({ type: "ssd" }, "ssd-and-nvme")).toBe("/dev/sdb");
  });

  test("B004, B007: nothing matches, so every disk is listed with the predicate that failed", () => {
    const text = select({ model: "*EVO*", minSize: "1GB" }, "blank-pair");
    expect(text).toStartWith("no disk matches {model: *EVO*, minSize: 1GB}\n");
    expect(text).toContain(
      "/dev/vdb (no model, serial A, 512 MiB), 536870912 bytes: model is unknown, not *EVO*; smaller than 1GB (1000000000 bytes)",
    );
    expect(text).toContain("/dev/vda");
  });

  test("B005: the boot medium is never chosen, not even by name", () => {
    expect(select({ minSize: "16GB" }, "boot-medium")).toBe("/dev/sdb");
    expect(select("/dev/sda", "boot-medium")).toContain("the medium that this system booted from");
  });

  test("a removable disk is taken only when it is named", () => {
    expect(select({ maxSize: "1GB" }, "ssd-and-nvme")).toContain("removable, and not named by path, serial or wwn");
    expect(select({ serial: "STICK" }, "ssd-and-nvme")).toBe("/dev/sda");
    expect(select("/dev/sda", "ssd-and-nvme")).toBe("/dev/sda");
  });

  test("the disk under the running system is never chosen", () => {
    expect(select("/dev/vda", "blank-pair")).toContain("the disk under the running system");
  });

  test("B163: a serial seen twice selects nothing, and neither of the twins can be named", () => {
    expect(select({ serial: "0123456789" }, "twins")).toContain("so it selects nothing");
    expect(select("/dev/vdb", "twins")).toContain("can't be told apart from /dev/vdc");
    expect(select({ serial: "C" }, "twins")).toBe("/dev/vdd");
  });

  test("B162: a serial selector where no disk shows one says so", () => {
    const inventory = machine("blank-pair");
    const disks = inventory.disks.map((disk) => ({
      ...disk,
      identity: { sizeBytes: disk.sizeBytes, byPath: disk.path },
    }));
    const found = resolveDevice({ serial: "X" }, { ...inventory, disks });
    expect(found.ok ? "" : found.error.hint).toContain("no disk here shows a serial");
  });

  test("wwn in any of its spellings; blanks and underscores in a model are one", () => {
    const inventory = machine("blank-pair");
    const disks = inventory.disks.map((disk, at) =>
      at === 1 ? { ...disk, identity: { ...disk.identity, wwn: "0x5000C500A1B2", model: "Samsung SSD  870" } } : disk,
    );
    for (const ref of [{ wwn: "0x5000c500a1b2" }, { wwn: "wwn-0x5000c500a1b2" }, { model: "Samsung_SSD_8?0" }])
      expect(resolveDevice(ref, { ...inventory, disks })).toMatchObject({ ok: true, value: { path: "/dev/vdb" } });
  });
});

test("a model of many asterisks kept the node from booting for hours", () => {
  const inventory = machine("blank-pair");
  const blank = inventory.disks.filter((disk) => !disk.isSystemDisk && !disk.isBootMedium);
  const disks = blank.slice(0, 1).map((disk) => ({
    ...disk,
    identity: { ...disk.identity, model: "a".repeat(40) },
  }));
  const matches = (model: string): boolean => resolveDevice({ model }, { ...inventory, disks }).ok;
  expect(matches(`${"*a".repeat(19)}*b`)).toBe(false);
  expect(matches(`${"*a".repeat(19)}*`)).toBe(true);
  for (const model of ["*", "a*", "*a", `${"?".repeat(40)}`, "a*?*a"])
    expect([model, matches(model)]).toEqual([model, true]);
  for (const model of ["", "b*", "*b", `${"?".repeat(41)}`, "a"])
    expect([model, matches(model)]).toEqual([model, false]);
});
