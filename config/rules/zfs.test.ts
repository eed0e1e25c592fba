import { describe } from "bun:test";
import { disk, ruleCases } from "../../test/support/rule-cases.ts";

const pool = (vdevs: string): string => `role: single\nzfs: [{name: p, vdevs: ${vdevs}}]\n`;
const options = (fields: string): string =>
  `role: single\nzfs: [{name: p, vdevs: [{devices: [${disk("a")}]}], ${fields}}]\n`;
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
      "datasets and their mount points",
      options("datasets: [{name: a, mountPoint: /srv/q}, {name: a/b_c.d, quota: 1G}]"),
    ],
    [
      "a dataset that is mounted nowhere",
      options("filesystemOptions: {mountpoint: none}, datasets: [{name: a, mountpoint: legacy}]"),
    ],
    [
      "a dataset on the mount point of its pool was valid",
      options("mountPoint: /srv/p, datasets: [{name: a, mountPoint: /srv/p}]"),
      "conflict zfs[0].datasets[0].mountPoint",
    ],
    [
      "two datasets on one mount point",
      options("datasets: [{name: a, mountPoint: /srv/p}, {name: b, mountpoint: /srv/p}]"),
      "conflict zfs[0].datasets[1].mountpoint",
    ],
    [
      "a dataset over Corium's own files",
      options("datasets: [{name: a, mountPoint: /var/lib/corium}]"),
      "value zfs[0].datasets[0].mountPoint",
    ],
    [
      "the option that mounts a pool over /etc was valid",
      options("filesystemOptions: {mountpoint: /etc}"),
      "value zfs[0].filesystemOptions.mountpoint",
    ],
    ...["/a", "a@b", "a#b", "a/", "a//b", "..", "a/../b", "a b"].map(
      (name) =>
        [
          `a dataset named ${name} was valid`,
          options(`datasets: [{name: '${name}'}]`),
          "value zfs[0].datasets[0].name",
        ] as const,
    ),
    ["a dataset without a name", options("datasets: [{quota: 1G}]"), "missing zfs[0].datasets[0].name"],
    ["a dataset with a number for a name", options("datasets: [{name: 7}]"), "type zfs[0].datasets[0].name"],
    ["two datasets of one name", options("datasets: [{name: a}, {name: a}]"), "conflict zfs[0].datasets[1].name"],
    [
      "two of one name",
      `role: single\nzfs: [{name: p, vdevs: [{devices: [${disk("a")}]}]}, {name: p, vdevs: [{devices: [${disk("b")}]}]}]\n`,
      "conflict zfs[1].name",
    ],
  ]));
