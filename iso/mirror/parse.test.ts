import { describe, expect, test } from "bun:test";
import type { ArrayReport } from "../../raid/report.ts";
import { arrayUuidOf, MIRRORED_ROLES } from "../uuids.ts";
import { memberState, ranAlone, roleOfArray } from "./parse.ts";
import { joinSystem, systemArrays } from "./report.ts";

const id = "0123456789abcdef0123456789abcdef";

test("an array is known by its UUID in any spelling, and none of another installation is", () => {
  for (const role of MIRRORED_ROLES) {
    const uuid = arrayUuidOf(id, role);
    expect(uuid).toMatch(/^[0-9a-f]{8}(:[0-9a-f]{8}){3}$/);
    const hex = uuid.replaceAll(":", "");
    const dashed = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}\n`;
    expect([roleOfArray(id, uuid), roleOfArray(id, dashed)]).toEqual([role, role]);
    expect(roleOfArray("f".repeat(32), uuid)).toBeUndefined();
  }
});

test("a member is in sync only when the kernel says so, and gone when its device is", () => {
  expect(memberState("in_sync\n", true)).toBe("in-sync");
  expect(memberState("in_sync,write_mostly\n", true)).toBe("in-sync");
  expect(memberState("spare\n", true)).toBe("joining");
  expect(memberState("faulty,blocked\n", true)).toBe("faulty");
  expect(memberState("in_sync\n", false)).toBe("gone");
});

test("what went on alone says so in its own superblock", () => {
  const line = (state: string): string => `   Array State : ${state} ('A' == active, '.' == missing, 'R' == replacing)`;
  expect(ranAlone(line("AA"))).toBe(false);
  for (const state of ["A.", ".A"]) expect(ranAlone(line(state))).toBe(true);
});

describe("the arrays of the system as one", () => {
  const report = (more: Partial<ArrayReport> = {}): ArrayReport => ({
    name: "corium-data",
    level: "raid1",
    state: "healthy",
    active: 2,
    expected: 2,
    members: [],
    ...more,
  });

  test("the worst stands for all", () => {
    expect(joinSystem([report(), report()])).toEqual(report({ name: "system" }));
    expect(joinSystem([report(), report({ state: "degraded", active: 1 }), report()])).toEqual(
      report({ name: "system", state: "degraded", active: 1 }),
    );
    const rebuilding = report({ state: "rebuilding", active: 1, progressPercent: 12.5 });
    expect(joinSystem([rebuilding, report()])).toEqual({ ...rebuilding, name: "system" });
    expect(joinSystem([rebuilding, report({ state: "missing", active: 0 })])?.state).toBe("missing");
    expect(joinSystem([])).toBeUndefined();
  });

  test("there are six", () => {
    expect(systemArrays(id)).toHaveLength(6);
  });
});
