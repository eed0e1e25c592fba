import { expect, test } from "bun:test";
import { neededBytes, PARTITIONS, partitionOf } from "../../iso/layout.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import { DISK_BYTES, INSTALLATION, layout, mirrorDisk, systemDisk } from "../../test/support/mirror-disks.ts";
import { INSTALLING } from "../install/table.ts";
import type { SystemReplacement } from "./plan.ts";
import { planSystemReplacement } from "./plan.ts";

const MIB = 1024 ** 2;
const survivor = systemDisk("a");
const inventory = (...disks: Disk[]): Inventory => ({ disks, arrays: [], unknown: [] });
const plan = (replacement: Disk, more: Partial<SystemReplacement> = {}) =>
  planSystemReplacement({
    inventory: inventory(survivor, replacement),
    installation: INSTALLATION,
    survivor,
    replacement,
    isWipeAllowed: false,
    path: "new",
    prefix: "mirror:replace:1",
    ...more,
  });
const codes = (...of: Parameters<typeof plan>): string[] => plan(...of).findings.map(({ code }) => code);
const layoutOf = (...of: Parameters<typeof plan>) => {
  const step = plan(...of).steps.find(({ kind }) => kind === "install:partition");
  if (step?.kind !== "install:partition") throw new Error("no partition step");
  return step.layout;
};

test("a blank disk is laid out as the one that works, under UUIDs of its own, and becomes part of every array", () => {
  const { steps, findings } = plan(mirrorDisk("c"));
  expect(findings).toEqual([]);
  expect(steps.map((step) => step.id)).toEqual(
    ["partition", "join", "rebuild"].map((step) => `mirror:replace:1:${step}`),
  );
  const made = layoutOf(mirrorDisk("c"));
  const places = (of: typeof layout) => of.partitions.map(({ startBytes, sizeBytes }) => [startBytes, sizeBytes]);
  expect(places(made)).toEqual(places(layout));
  const join = steps.find((step) => step.kind === "mirror:join");
  expect(join?.kind === "mirror:join" && join.members.map(({ partUuid }) => partUuid)).toEqual(
    made.partitions.slice(2).map(({ partUuid }) => partUuid),
  );
  const others = [layout, layoutOf(mirrorDisk("d"))].flatMap(({ partitions }) =>
    partitions.map(({ partUuid }) => partUuid),
  );
  expect(made.partitions.filter(({ partUuid }) => others.includes(partUuid))).toEqual([]);
});

test("after a power cut it goes on under the same UUIDs, and asks for no consent", () => {
  const begun = layoutOf(mirrorDisk("c"));
  const half = mirrorDisk("c", {
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
  const used = mirrorDisk("c", { signatures: [{ type: "ext4", device: "/dev/c", where: "the whole disk at 0x438" }] });
  expect(codes(used)).toEqual(["holds-data"]);
  expect(plan(used, { isWipeAllowed: true }).steps[0]).toMatchObject({
    id: "mirror:replace:1:wipe",
    destroys: [used.identity],
  });
  expect(codes(mirrorDisk("c", { sizeBytes: DISK_BYTES - 2 * MIB }))).toEqual(["disk-too-small"]);
  expect(codes(mirrorDisk("c", { sizeBytes: neededBytes(300 * MIB, 512) }))).toEqual(["disk-too-small"]);
  expect(codes(mirrorDisk("c", { logicalSectorBytes: 4096 }))).toEqual(["sector-size"]);
});
