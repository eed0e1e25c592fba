import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

describe("backup", () =>
  ruleCases([
    [
      "switched on rendered nothing, and nobody said so",
      "role: single\nbackup: {enabled: true}\n",
      "not-yet backup.enabled",
    ],
    ["not on a worker", "role: worker\njoin: {tokenFrom: {file: /t}}\nbackup: {enabled: true}\n", "role backup"],
    ["off on a worker is fine", "role: worker\njoin: {tokenFrom: {file: /t}}\nbackup: {enabled: false}\n"],
    [
      "fields without the switch",
      "role: single\nbackup: {path: /srv/b, keep: 3, schedule: hourly}\n",
      "conflict backup.path",
      "conflict backup.keep",
      "conflict backup.schedule",
    ],
    ["a schedule that spells out the default is none", "role: single\nbackup: {schedule: daily}\n"],
    ["the switch itself is wrong", "role: single\nbackup: {enabled: yes, keep: 3}\n", "type backup.enabled"],
    [
      "nothing to keep",
      "role: single\nbackup: {enabled: true, keep: 0}\n",
      "not-yet backup.enabled",
      "value backup.keep",
    ],
  ]));
