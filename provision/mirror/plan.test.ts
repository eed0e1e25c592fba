import { expect, test } from "bun:test";
import { neededBytes, PARTITIONS, partitionOf, planLayout } from "../../iso/layout.ts";
import { guidOf, partUuidsOf } from "../../iso/uuids.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import { INSTALLING } from "../install/table.ts";
import type { SystemReplacement } from "./plan.ts";
import { planSystemReplacement } from "./plan.ts";

const MIB = 1024 ** 2;
const id = "0123456789abcdef0123456789abcdef";
const size = 32 * 1024 * MIB;
const planned = planLayout({
  diskSizeBytes: size,
  sectorBytes: 512,
  rootImageBytes: 300 * MIB,
  diskGuid: guidOf(id),
  partUuids: partUuidsOf(id),
});
if (!planned.ok) throw new Error(planned.error.message);
const layout = planned.value;

const disk = (serial: string, more: Partial<Disk> = {}): Disk => ({
  path: `/dev/${serial}`,
  links: [],
  identity: { serial, sizeBytes: size },
  sizeBytes: size,
  logicalSectorBytes: 512,
  physicalSectorBytes: 512,
  bus: "virtio",
  type: "hdd",
  isRemovable: false,
  isReadOnly: false,
  partitions: [],
  signatures: [],
  users: [],
  isBootMedium: false,
  isSystemDisk: false,
  ...more,
});
const survivor = disk("a", {
  isSystemDisk: true,
  partitions: layout.partitions.map(({ number, sizeBytes, partUuid, name }) => ({
    path: `/dev/a${number}`,
    number,
    sizeBytes,
    partUuid,
    label: name,
  })),
});
const inventory = (...disks: Disk[]): Inventory => ({ disks, arrays: [], unknown: [] });
const plan = (replacement: Disk, more: Partial<SystemReplacement> = {}) =>
  planSystemReplacement({
    inventory: inventory(survivor, replacement),
    installation: id,
    survivor,
    replacement,
    isWipeAllowed: false,
    path: "new",
    ...more,
  });
const codes = (...of: Parameters<typeof plan>): string[] => plan(...of).findings.map(({ code }) => code);
const layoutOf = (...of: Parameters<typeof plan>) => {
  const step = plan(...of).steps.find(({ kind }) => kind === "install:partition");
  if (step?.kind !== "install:partition") throw new Error("no partition step");
  return step.layout;
};

test("a blank disk is laid out as the one that works, under UUIDs of its own, and becomes part of every array", () => {
  const { steps, findings } = plan(disk("c"));
  expect(findings).toEqual([]);
  expect(steps.map((step) => step.id)).toEqual(["mirror:partition", "mirror:join", "mirror:rebuild"]);
  const made = layoutOf(disk("c"));
  const places = (of: typeof layout) => of.partitions.map(({ startBytes, sizeBytes }) => [startBytes, sizeBytes]);
  expect(places(made)).toEqual(places(layout));
  const join = steps.find((step) => step.kind === "mirror:join");
  expect(join?.kind === "mirror:join" && join.members.map(({ partUuid }) => partUuid)).toEqual(
    made.partitions.slice(2).map(({ partUuid }) => partUuid),
  );
  const others = [layout, layoutOf(disk("d"))].flatMap(({ partitions }) => partitions.map(({ partUuid }) => partUuid));
  expect(made.partitions.filter(({ partUuid }) => others.includes(partUuid))).toEqual([]);
});

test("after a power cut it goes on under the same UUIDs, and asks for no consent", () => {
  const begun = layoutOf(disk("c"));
  const half = disk("c", {
    partitions: PARTITIONS.map(({ role, number, name }) => ({
      path: `/dev/c${number}`,
      number,
      sizeBytes: MIB,
      partUuid: partitionOf(begun, role).partUuid,
      label: role === "state" ? INSTALLING : name,
    })),
    signatures: [{ type: "gpt", device: "/dev/c", where: "the whole disk at 0x200" }],
  });
  expect(codes(half)).toEqual([]);
  expect(layoutOf(half)).toEqual(begun);
  expect(plan(half).steps.map((step) => step.kind)).not.toContain("disk:wipe");
});

test("a disk that holds data, is too small or has other sectors is refused by name", () => {
  const used = disk("c", { signatures: [{ type: "ext4", device: "/dev/c", where: "the whole disk at 0x438" }] });
  expect(codes(used)).toEqual(["holds-data"]);
  expect(plan(used, { isWipeAllowed: true }).steps[0]).toMatchObject({ id: "mirror:wipe", destroys: [used.identity] });
  expect(codes(disk("c", { sizeBytes: size - 2 * MIB }))).toEqual(["disk-too-small"]);
  expect(codes(disk("c", { sizeBytes: neededBytes(300 * MIB, 512) }))).toEqual(["disk-too-small"]);
  expect(codes(disk("c", { logicalSectorBytes: 4096 }))).toEqual(["sector-size"]);
});
