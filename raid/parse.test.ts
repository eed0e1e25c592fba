import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { parseDetailExport, parseMdstat } from "./parse.ts";
import type { ArrayReport, RunningArray } from "./report.ts";
import { reportArrays } from "./report.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const sample = (name: string): string => readFileSync(join(import.meta.dir, "testdata", name), "utf8");
const mdstat = (name: string) => parseMdstat(sample(`mdstat-${name}.txt`));

describe("parseMdstat", () => {
  test("healthy, degraded, none", () => {
    expect(mdstat("none")).toEqual([]);
    expect(mdstat("healthy").map((array) => [array.device, array.expected, array.active])).toEqual([
      ["md125", 2, 2],
      ["md126", 2, 2],
      ["md127", 2, 1],
    ]);
    expect(mdstat("degraded")).toMatchObject([{ device: "md127", isActive: true, isReadOnly: true, active: 1 }]);
  });

  test("a failed member stays listed under its old name", () => {
    expect(mdstat("hotplug-removed")[1]?.members).toEqual([
      { device: "nvme1n1", isFailed: true, isSpare: false },
      { device: "nvme0n1", isFailed: false, isSpare: false },
    ]);
  });

  test("a rebuild shows how far it is, a resync that waits shows none", () => {
    expect(mdstat("recovering")[0]).toMatchObject({ action: "recovery", progressPercent: 29.3 });
    const pending = parseMdstat(
      "md0 : active (auto-read-only) raid1 vdc[1] vdb[0]\n      1 blocks super 1.2 [2/2] [UU]\n      \tresync=PENDING\n\nunused devices: <none>\n",
    );
    expect(pending).toMatchObject([{ action: "resync" }]);
    expect(pending[0]?.progressPercent).toBeUndefined();
  });

  test("an inactive array has members but no level and no counts", () => {
    const found = parseMdstat("md127 : inactive sda[0](S)\n      97280 blocks super 1.2\n       \n");
    expect(found).toEqual([
      {
        device: "md127",
        isActive: false,
        isReadOnly: false,
        isAutoReadOnly: false,
        members: [{ device: "sda", isFailed: false, isSpare: true }],
      },
    ]);
  });

  test("any text at all", () => {
    fc.assert(fc.property(fc.string(), (text) => void [parseMdstat(text), parseDetailExport(text)]));
  });
});

describe("parseDetailExport", () => {
  test("a removed member has no line, the expected count stays", () => {
    expect(parseDetailExport(sample("mdadm-detail-export-hotplug-removed-s.txt"))).toEqual({
      uuid: "50e47d1c:a3c1d44c:ccc09941:406317d3",
      name: "s",
      level: "raid1",
      expected: 2,
      members: [{ path: "/dev/sda", role: 0 }],
    });
  });
});

describe("reportArrays", () => {
  const running = (name: string, more: Partial<RunningArray> = {}): RunningArray[] =>
    mdstat(name).map((array) => ({
      mdstat: array,
      detail: { members: [], expected: 2, name: array.device },
      detached: [],
      ...more,
    }));
  const short = (reports: readonly ArrayReport[]): string[] =>
    reports.map((each) => `${each.name} ${each.state} ${each.active}/${each.expected}`);

  test("states and counts", () => {
    expect(short(reportArrays([], running("healthy")))).toEqual([
      "md125 healthy 2/2",
      "md126 healthy 2/2",
      "md127 degraded 1/2",
    ]);
    expect(reportArrays([], running("recovering"))[0]).toEqual({
      name: "md125",
      level: "raid1",
      state: "rebuilding",
      active: 1,
      expected: 2,
      progressPercent: 29.3,
      members: [
        { device: "/dev/sda", state: "active" },
        { device: "/dev/sdc", state: "active" },
      ],
    });
  });

  test("an idle mirror does not notice a pulled disk, its report does", () => {
    const [first] = running("healthy", { detached: ["sdc"] });
    if (first === undefined) throw new Error("no array");
    expect(short(reportArrays([], [first]))).toEqual(["md125 degraded 1/2"]);
  });

  test("our own array that does not run is missing, not absent from the report", () => {
    const wanted = { name: "data", uuid: "1:2:3:4", level: "raid1", memberCount: 2 };
    expect(short(reportArrays([wanted], []))).toEqual(["data missing 0/2"]);
  });

  test("broken when both members are gone; RAID 0 fails with its first", () => {
    expect(short(reportArrays([], running("degraded", { arrayState: "broken" })))).toEqual(["md127 failed 1/2"]);
    const [raid0] = parseMdstat("md0 : active raid0 vdb[0] vdc[1]\n      1 blocks super 1.2 512k chunks\n");
    if (raid0 === undefined) throw new Error("no array");
    const detail = { members: [], expected: 2 };
    expect(short(reportArrays([], [{ mdstat: raid0, detail, detached: [] }]))).toEqual(["md0 healthy 2/2"]);
    expect(short(reportArrays([], [{ mdstat: raid0, detail, detached: ["vdc"] }]))).toEqual(["md0 failed 1/2"]);
  });
});
