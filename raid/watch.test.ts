import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { ArrayMember, MemberState } from "./report.ts";
import type { Decision, Look, Memory, ReturnedDisk, WatchedArray } from "./watch.ts";
import { decide } from "./watch.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const uuid = "557c5b94:881be2de:bc5f369b:49d8761f";

const member = (serial: string, state: MemberState, role?: number): ArrayMember => ({
  serial,
  ...(state === "missing" ? {} : { device: `/dev/${serial}` }),
  ...(role === undefined ? {} : { role }),
  state,
});

const mirror = (more: Partial<WatchedArray> = {}): WatchedArray => ({
  uuid,
  name: "data",
  level: "raid1",
  state: "healthy",
  active: 2,
  expected: 2,
  path: "/dev/md127",
  isAutoReadOnly: false,
  members: [member("a", "active", 0), member("b", "active", 1)],
  ...more,
});

const returned = (more: Partial<ReturnedDisk> = {}): ReturnedDisk => ({
  uuid,
  device: "/dev/vdd",
  serial: "b",
  sequence: "17",
  judgement: "ours",
  ...more,
});

const at = (...arrays: WatchedArray[]): Look => ({ arrays, returned: [] });
/** Look after look, each with the memory of the ones before; the last decision. */
function live(...looks: readonly Look[]): Decision {
  let decided: Decision | undefined;
  for (const look of looks) decided = decide(decided?.memory, look);
  if (decided === undefined) throw new Error("no look");
  return decided;
}
const said = ({ events }: Decision): string[] => events.map(({ kind, message }) => `${kind}: ${message}`);

const whole = mirror();
const alone = mirror({ state: "degraded", active: 1, members: [member("a", "active", 0), member("b", "missing")] });

describe("a member that goes", () => {
  test("of an idle array is failed and removed by us: the kernel never finds out", () => {
    const pulled = mirror({
      state: "degraded",
      active: 1,
      members: [member("a", "active", 0), { device: "/dev/b", role: 1, state: "detached" }, member("b", "missing")],
    });
    const decided = live(at(whole), at(pulled));
    expect(decided.actions).toEqual([{ kind: "drop-detached", name: "data", path: "/dev/md127" }]);
    expect(said(decided)).toEqual([
      "array-member-lost: array data: member serial b (/dev/b) is gone",
      "array-degraded: array data is degraded: 1 of 2 members, without /dev/b, serial b",
    ]);
    // The same look again adds nothing; once it is removed neither.
    expect(said(live(at(whole), at(pulled), at(pulled)))).toEqual([]);
    expect(live(at(whole), at(pulled), at(alone))).toMatchObject({ actions: [], events: [] });
  });

  test("by errors, with its disk still there, is said and left to a person", () => {
    const broken = mirror({ state: "degraded", active: 1, members: [member("a", "active", 0), member("b", "failed")] });
    const decided = live(at(whole), at(broken));
    expect(decided.actions).toEqual([]);
    expect(said(decided)[0]).toBe("array-member-lost: array data: member serial b (/dev/b) failed");
  });

  test("on RAID 0 is the end of the array: nothing is tried", () => {
    const stripe = { level: "raid0", name: "fast" };
    const gone = mirror({
      ...stripe,
      state: "failed",
      active: 1,
      members: [member("a", "active", 0), { device: "/dev/b", state: "detached" }],
    });
    const decided = live(at(mirror(stripe)), at(gone));
    expect(decided.actions).toEqual([]);
    expect(said(decided).at(-1)).toBe("array-failed: array fast is failed: 1 of 2 members");
  });

  test("on request is missed by nobody", () => {
    const first = decide(undefined, at(whole));
    const third = mirror({ members: [member("a", "active", 0), member("c", "active", 1), member("b", "failed")] });
    const kinds = decide(first.memory, at(third), ["b"]).events.map(({ kind }) => kind);
    expect(kinds).toEqual(["array-member-added"]);
  });
});

describe("a disk that comes back", () => {
  const look = (disk: ReturnedDisk): Look => ({ arrays: [alone], returned: [disk] });

  test("is added once for each time that it appears: one that fails again at once does not flap", () => {
    const action = { kind: "re-add", name: "data", path: "/dev/md127", device: "/dev/vdd" } as const;
    expect(live(at(alone), look(returned())).actions).toEqual([action]);
    expect(live(at(alone), look(returned()), look(returned())).actions).toEqual([]);
    const again = look(returned({ sequence: "18" }));
    expect(live(at(alone), look(returned()), look(returned()), again).actions).toEqual([action]);
  });

  test("with a history of its own is left alone, and said once", () => {
    const apart = look(returned({ judgement: "diverged" }));
    const decided = live(at(alone), apart);
    expect(decided.actions).toEqual([]);
    expect(said(decided)).toEqual([
      "array-diverged: serial b (/dev/vdd) is a member of array data with a history of its own: it is left alone",
    ]);
    expect(said(live(at(alone), apart, apart))).toEqual([]);
  });

  test("waits for an array that does not run", () => {
    const { path: _path, ...lost } = mirror({ state: "missing", active: 0, members: [] });
    const early: Look = { arrays: [lost], returned: [returned()] };
    expect(live(early).actions).toEqual([]);
    expect(live(early, look(returned())).actions).toHaveLength(1);
  });
});

describe("rebuilding", () => {
  const rebuilt = (progressPercent: number): Look =>
    at(
      mirror({
        state: "rebuilding",
        active: 1,
        progressPercent,
        members: [member("a", "active", 0), member("s", "rebuilding", 1), member("b", "missing")],
      }),
    );
  const withSpare = mirror({ members: [...whole.members, member("s", "spare")] });
  const done = mirror({ members: [member("a", "active", 0), member("s", "active", 1), member("b", "missing")] });

  test("a spare is used: each of it is said, its progress in quarters", () => {
    const looks = [
      at(withSpare),
      rebuilt(0.4),
      rebuilt(12),
      rebuilt(24.9),
      rebuilt(25),
      rebuilt(26),
      rebuilt(80),
      at(done),
    ];
    const all = looks.map((_look, index) => said(live(...looks.slice(0, index + 1))));
    expect(all).toEqual([
      [],
      [
        "array-member-lost: array data: member serial b (/dev/b) is gone",
        "array-spare-used: array data: spare serial s (/dev/s) takes the place of a member",
        "array-degraded: array data is degraded: 1 of 2 members, without serial b",
        "array-rebuilding: array data is being rebuilt: 0 %",
      ],
      [],
      [],
      ["array-rebuilding: array data is being rebuilt: 25 %"],
      [],
      ["array-rebuilding: array data is being rebuilt: 80 %"],
      ["array-recovered: array data is whole again: 2 of 2 members"],
    ]);
  });

  test("that is over between two looks is said all the same", () => {
    expect(live(at(withSpare), at(done)).events.map(({ kind }) => kind)).toEqual([
      "array-member-lost",
      "array-spare-used",
      "array-recovered",
    ]);
  });

  test("waits for a first write, unless we see to it", () => {
    const idle = mirror({
      state: "degraded",
      active: 1,
      isAutoReadOnly: true,
      members: [member("a", "active", 0), member("s", "spare")],
    });
    expect(live(at(idle)).actions).toEqual([{ kind: "read-write", name: "data", path: "/dev/md127" }]);
    const taken = mirror({ ...idle, members: [member("a", "active", 0), member("b", "rebuilding", 1)] });
    expect(live(at(taken)).actions).toHaveLength(1);
    // With nobody to rebuild onto there is no reason to write.
    expect(live(at(mirror({ ...alone, isAutoReadOnly: true }))).actions).toEqual([]);
  });

  test("a new RAID 5 is not called degraded", () => {
    const members = [member("a", "active", 0), member("b", "active", 1), member("c", "rebuilding", 2)];
    const parity = { level: "raid5", active: 2, expected: 3, members };
    const young = mirror({ ...parity, state: "rebuilding", progressPercent: 3 });
    expect(said(live(at(young)))).toEqual(["array-rebuilding: array data is being rebuilt: 3 %"]);
    const short = mirror({ ...parity, state: "rebuilding", members: [...members, member("d", "missing")] });
    expect(live(at(short)).events.map(({ kind }) => kind)).toEqual(["array-degraded", "array-rebuilding"]);
  });

  test("the first synchronisation is no rebuild", () => {
    const first = mirror({ state: "resyncing", progressPercent: 3 });
    expect(said(live(at(first)))).toEqual(["array-synchronising: array data is being synchronised: 3 %"]);
    expect(said(live(at(first), at(whole)))).toEqual(["array-synchronised: array data is synchronised"]);
  });
});

describe("the first look after a boot", () => {
  test("B029: says what is missing", () => {
    expect(said(live(at(alone)))).toEqual(["array-degraded: array data is degraded: 1 of 2 members, without serial b"]);
    const spareless = mirror({ members: [...whole.members, member("s", "missing")] });
    expect(said(live(at(spareless)))).toEqual([
      "array-spare-missing: array data runs without serial s: a spare is missing",
    ]);
    const { path: _path, ...lost } = mirror({ state: "missing", active: 0, members: [] });
    expect(said(live(at(lost)))).toEqual(["array-failed: array data is missing: 0 of 2 members"]);
    expect(said(live(at(whole)))).toEqual([]);
  });
});

test("whatever is seen twice is said once, and survives being stored", () => {
  const state = fc.constantFrom<MemberState>("active", "rebuilding", "spare", "failed", "detached", "missing");
  const arrays = fc.record({
    state: fc.constantFrom(
      "healthy",
      "degraded",
      "rebuilding",
      "resyncing",
      "checking",
      "failed",
      "inactive",
      "missing",
    ),
    active: fc.nat(3),
    expected: fc.constant(3),
    isAutoReadOnly: fc.boolean(),
    progressPercent: fc.double({ min: 0, max: 100, noNaN: true }),
    members: fc.tuple(state, state, state).map((states) => states.map((each, role) => member(`m${role}`, each, role))),
  });
  fc.assert(
    fc.property(arrays, arrays, (one, two) => {
      const first = decide(undefined, at(mirror(one)));
      const memory = JSON.parse(JSON.stringify(first.memory)) as Memory;
      const second = decide(memory, { arrays: [mirror(two)], returned: [returned()] });
      const third = decide(second.memory, { arrays: [mirror(two)], returned: [returned()] });
      expect(third.events).toEqual([]);
      expect(third.actions.filter(({ kind }) => kind === "re-add")).toEqual([]);
      // Nothing is ever done to an array that has failed.
      if (["failed", "inactive", "missing"].includes(two.state)) expect(second.actions).toEqual([]);
    }),
  );
});
