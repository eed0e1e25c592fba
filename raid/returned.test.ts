import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { judgeReturned, parseArrayEvents, parseMemberView } from "./returned.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const examined = readFileSync(join(import.meta.dir, "../disks/testdata/mdadm-examine-md12a.txt"), "utf8");

describe("a member's own view", () => {
  test("of mdadm --examine", () => {
    expect(parseMemberView(examined)).toEqual({ events: 1, slots: "AA", role: 0 });
    expect(parseMemberView(examined.replace("Active device 0", "spare"))).toEqual({ events: 1, slots: "AA" });
    expect(parseMemberView("mdadm: No md superblock detected on /dev/vdb.\n")).toBeUndefined();
  });

  test("of mdadm --detail, and any text at all", () => {
    expect(parseArrayEvents("              Name : any:s\n            Events : 34\n")).toBe(34);
    fc.assert(fc.property(fc.string(), (text) => void [parseMemberView(text), parseArrayEvents(text)]));
  });
});

describe("whether it may come back", () => {
  const running = { events: 34, activeRoles: [0] };

  test("pulled from a mirror that went on", () => {
    expect(judgeReturned({ events: 20, slots: "AA", role: 1 }, running)).toBe("ours");
  });

  test("its place was taken by a spare meanwhile", () => {
    expect(judgeReturned({ events: 20, slots: "AA", role: 1 }, { events: 40, activeRoles: [0, 1] })).toBe("ours");
  });

  test("a spare has no history", () => {
    expect(judgeReturned({ events: 34, slots: "AA" }, running)).toBe("ours");
  });

  // The kernel would take each of these as in sync, and so merge two filesystems.
  test("both halves of a mirror ran alone, one after the other", () => {
    expect(judgeReturned({ events: 20, slots: ".A", role: 1 }, running)).toBe("diverged");
    expect(judgeReturned({ events: 50, slots: "AA", role: 1 }, running)).toBe("diverged");
    // The halves of a RAID 10 with two copies: 0 and 2 here, 1 and 3 there.
    expect(judgeReturned({ events: 20, slots: ".A.A", role: 1 }, { events: 34, activeRoles: [0, 2] })).toBe("diverged");
  });

  test("another member was missing when it went, and the rest was the same", () => {
    const double = { events: 34, activeRoles: [0, 2, 3] };
    expect(judgeReturned({ events: 20, slots: ".AAA", role: 1 }, double)).toBe("ours");
  });
});
