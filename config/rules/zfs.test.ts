import { describe } from "bun:test";
import { disk, ruleCases } from "../../test/support/rule-cases.ts";

const pool = (vdevs: string): string => `role: single\nzfs: [{name: p, vdevs: ${vdevs}}]\n`;
const disks = (count: number): string =>
  `[${Array.from({ length: count }, (_, index) => disk(`z${index}`)).join(", ")}]`;

describe("zfs", () =>
  ruleCases([
    ...(
      [
        ["mirror", 2],
        ["raidz", 2],
        ["raidz2", 3],
        ["raidz3", 4],
      ] as const
    ).flatMap(([type, least]) => [
      [`a ${type} of ${least}`, pool(`[{type: ${type}, devices: ${disks(least)}}]`)] as const,
      [
        `a ${type} of ${least - 1}`,
        pool(`[{type: ${type}, devices: ${disks(least - 1)}}]`),
        "value zfs[0].vdevs[0].devices",
      ] as const,
    ]),
    ["a stripe of none, as which no type counts", pool("[{devices: []}]"), "value zfs[0].vdevs[0].devices"],
    ["no vdev", pool("[]"), "value zfs[0].vdevs"],
    [
      "a name that zpool keeps for itself",
      "role: single\nzfs: [{name: mirror1, vdevs: [{devices: [/dev/disk/by-id/z]}]}]\n",
      "value zfs[0].name",
    ],
    [
      "two of one name",
      `role: single\nzfs: [{name: p, vdevs: [{devices: [${disk("a")}]}]}, {name: p, vdevs: [{devices: [${disk("b")}]}]}]\n`,
      "conflict zfs[1].name",
    ],
  ]));
