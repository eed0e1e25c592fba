import { describe } from "bun:test";
import { disk, ruleCases } from "../../test/support/rule-cases.ts";

const disks = (...points: string[]): string =>
  `role: single\ndisks:\n${points.map((point, index) => `  - {name: d${index}, device: ${disk(`d${index}`)}, mountPoint: ${point}}\n`).join("")}`;

describe("mount points", () =>
  ruleCases([
    ["nested ones, and that of k0s", disks("/srv/a", "/srv/a/b", "/var/lib/k0s")],
    ["the same twice", disks("/srv/a", "/srv/a"), "conflict disks[1].mountPoint"],
    [
      "the same over two kinds: the later one",
      `role: single\nluks: [{name: v, device: ${disk("v")}, mountPoint: /srv/a}]\ndisks: [{name: a, device: ${disk("a")}, mountPoint: /srv/a}]\n`,
      "conflict disks[0].mountPoint",
    ],
    [
      "nothing to mount",
      `role: single\ndisks: [{name: a, device: ${disk("a")}, filesystem: none, mountPoint: /srv/a}]\n`,
      "conflict disks[0].mountPoint",
    ],
    ...[
      "/srv",
      "/home/a",
      "/var/lib",
      "/var/log",
      "/var/lib/corium",
      "/var/lib/corium/state/x",
      // A disk there hid the database or the marker from the next boot.
      "/var/lib/corium/bootstrapped",
      "/var/lib/corium/corium.db",
      "/var/lib/corium/etc",
      "/var/lib/corium/etc/corium",
      "/var/lib/corium/of-a-later-release",
      "/var/lib/corium/backups2",
      "srv/a",
      "/srv/a/",
      "/srv//a",
      "/srv/../a",
      "/",
      // /opt, /srv and /mnt are bound from there: what was mounted below it showed nowhere else.
      "/var/corium",
      "/var/corium/srv/data",
      // The bootstrap ended with a unit that systemd refused, after the disk was wiped.
      '"/srv/data "',
    ].map((point) => [`${point} is refused`, disks(point), "value disks[0].mountPoint"] as const),
    ["the folder of backups may be a disk", disks("/var/lib/corium/backups", "/var/lib/corium2", "/var/coriums")],
  ]));
