import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

describe("upgrades", () =>
  ruleCases([
    ["a schedule for nothing", "role: single\nupgrades: {schedule: Sun 04:00}\n", "conflict upgrades.schedule"],
    [
      "a schedule with automatic none",
      "role: single\nupgrades: {automatic: none, schedule: weekly}\n",
      "conflict upgrades.schedule",
    ],
    ["the default spelled out is none", "role: single\nupgrades: {schedule: daily}\n"],
    ["with a mode", "role: single\nupgrades: {automatic: apply, schedule: Sun 04:00}\n"],
    ["a source alone waits for a mode", "role: single\nupgrades: {source: {url: 'https://u.example/'}}\n"],
    ["a source by http", "role: single\nupgrades: {source: {url: 'http://u.example/'}}\n", "value upgrades.source.url"],
    ["a wrong mode", "role: single\nupgrades: {automatic: always, schedule: weekly}\n", "value upgrades.automatic"],
    ["cron", "role: single\nupgrades: {automatic: apply, schedule: '0 4 * * 0'}\n", "value upgrades.schedule"],
  ]));
