import { describe } from "bun:test";
import { disk, ruleCases } from "../../test/support/rule-cases.ts";

describe("disks", () =>
  ruleCases([
    [
      "two of one name",
      `role: single\ndisks: [{name: a, device: ${disk("a")}}, {name: a, device: ${disk("b")}}]\n`,
      "conflict disks[1].name",
    ],
    [
      "names are unique of their kind only",
      `role: single\ndisks: [{name: a, device: ${disk("a")}}]\nluks: [{name: a, device: ${disk("b")}}]\n`,
    ],
    ["a partition", `role: single\ndisks: [{name: a, device: ${disk("a-part1")}}]\n`, "value disks[0].device"],
    ["an array", "role: single\ndisks: [{name: a, device: /dev/md/x}]\n", "value disks[0].device"],
  ]));
