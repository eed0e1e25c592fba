import { describe } from "bun:test";
import { disk, ruleCases } from "../../test/support/rule-cases.ts";

const raid = (level: number, members: number, more = ""): string =>
  `role: single\nraid: [{name: r, level: ${level}, devices: [${Array.from({ length: members }, (_, index) => disk(`m${index}`)).join(", ")}]${more}}]\n`;

describe("raid", () =>
  ruleCases([
    ...(
      [
        [0, 2],
        [1, 2],
        [5, 3],
        [6, 4],
        [10, 4],
      ] as const
    ).flatMap(([level, least]) => [
      [`level ${level} with ${least} members`, raid(level, least)] as const,
      [`level ${level} with ${least - 1}`, raid(level, least - 1), "value raid[0].devices"] as const,
    ]),
    ["spares on level 0, which cannot lose a disk", raid(0, 2, `, spares: [${disk("s")}]`), "conflict raid[0].spares"],
    ["spares", raid(1, 2, `, spares: [${disk("s")}]`)],
    ...["system", "corium-state", "corium-root-b"].map(
      (name) =>
        [
          `${name}, the name of the mirrored system's own array`,
          `role: single\ninstall: {disk: ${disk("x")}, mirror: ${disk("y")}}\nraid: [{name: ${name}, level: 1, devices: [${disk("a")}, ${disk("b")}]}]\n`,
          "conflict raid[0].name",
        ] as const,
    ),
    ...["0", "127", "d7"].map(
      (name) =>
        [
          `${name}, which mdadm takes for the number of a device`,
          raid(1, 2).replace("name: r", `name: "${name}"`),
          "value raid[0].name",
        ] as const,
    ),
    ["a name that only looks like one", raid(1, 2).replace("name: r", "name: md0")],
    ["that name where the system is on one disk", raid(1, 2).replace("name: r", "name: system")],
    ["a level that there is not", raid(4, 1), "value raid[0].level"],
    [
      "two of one name",
      `role: single\nraid:\n  - {name: r, level: 1, devices: [${disk("a")}, ${disk("b")}]}\n  - {name: r, level: 1, devices: [${disk("c")}, ${disk("d")}]}\n`,
      "conflict raid[1].name",
    ],
  ]));
