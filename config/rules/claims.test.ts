import { describe } from "bun:test";
import { disk, ruleCases } from "../../test/support/rule-cases.ts";

describe("claims of disks", () =>
  ruleCases([
    [
      "one disk for two purposes: the later one",
      `role: single\ndisks: [{name: a, device: ${disk("x")}}]\nraid: [{name: r, level: 1, devices: [${disk("x")}, ${disk("y")}]}]\n`,
      "conflict raid[0].devices[0]",
    ],
    [
      "the same, the other way round",
      `role: single\nraid: [{name: r, level: 1, devices: [${disk("x")}, ${disk("y")}]}]\ndisks: [{name: a, device: ${disk("x")}}]\n`,
      "conflict disks[0].device",
    ],
    [
      "a kind of disk that its bus does not have",
      "role: single\ninstall: {disk: {bus: mmc, type: nvme}, mirror: {type: ssd, bus: nvme}}\n",
      "conflict install.disk.type",
      "conflict install.mirror.bus",
    ],
    [
      "a serial number over two lines, a model with a NUL",
      'role: single\ninstall: {disk: {serial: "A\\nB"}, mirror: {model: "A\\0"}}\n',
      "value install.disk.serial",
      "value install.mirror.model",
    ],
    [
      "twice in one array",
      `role: single\nraid: [{name: r, level: 1, devices: [${disk("x")}, ${disk("x")}]}]\n`,
      "conflict raid[0].devices[1]",
    ],
    [
      "the disk of the system and a data disk",
      `role: single\ninstall: {disk: ${disk("x")}}\ndisks: [{name: a, device: ${disk("x")}}]\n`,
      "conflict disks[0].device",
    ],
    [
      "equal selectors, in whatever order",
      "role: single\ninstall: {disk: {serial: A, type: ssd}, mirror: {type: ssd, serial: A}}\n",
      "conflict install.mirror",
    ],
    [
      "selectors that may be one disk are for the node to tell",
      "role: single\ninstall: {disk: {serial: A}, mirror: {type: ssd}}\n",
    ],
    ["a name by order of discovery", "role: single\ninstall: {disk: /dev/sda}\n", "unstable-device install.disk"],
    [
      "sizes that cross: the later one",
      "role: single\ninstall: {disk: {maxSize: 1TB, minSize: 2TB}}\n",
      "conflict install.disk.minSize",
    ],
    ["a selector of nothing", "role: single\ninstall: {disk: {}}\n", "value install.disk"],
    [
      "a spare that is a member",
      `role: single\nraid: [{name: r, level: 1, devices: [${disk("x")}, ${disk("y")}], spares: [${disk("y")}]}]\n`,
      "conflict raid[0].spares[0]",
    ],
  ]));
