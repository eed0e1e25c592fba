import { expect, test } from "bun:test";
import type { Mirror, MirrorDisk, MemberState } from "../../iso/mirror/model.ts";
import { describeDisk } from "../../disks/describe.ts";
import { MIRRORED_ROLES } from "../../iso/uuids.ts";
import type { Disk } from "../../kit/disk.ts";
import { mirrorDisk, INSTALLATION, systemDisk } from "../../test/support/mirror-disks.ts";
import type { SystemReplaceInput } from "./request.ts";
import { planSystemDisk } from "./request.ts";

const half = (path: string, isInSync: boolean): MirrorDisk => ({
  path,
  partitions: new Map(),
  espPartUuid: "",
  sectorBytes: 512,
  isInSync,
  lacking: isInSync ? [] : MIRRORED_ROLES,
});
const mirror = (...states: readonly (readonly [string, MemberState])[]): Mirror => ({
  arrays: MIRRORED_ROLES.map((role) => ({
    role,
    path: `/dev/md-${role}`,
    isAutoReadOnly: false,
    members: states.map(([name, state]) => ({ kernelName: `${name}5`, state })),
  })),
  disks: states
    .filter(([, state]) => state !== "gone")
    .map(([name, state]) => half(`/dev/${name}`, state === "in-sync")),
});
const alone = mirror(["a", "in-sync"]);
const plan = (disks: readonly Disk[], more: Partial<SystemReplaceInput> = {}) =>
  planSystemDisk({
    request: { array: "system", old: "b", new: "c", isWipeAllowed: false },
    id: 7,
    isResumed: false,
    installation: INSTALLATION,
    mirror: alone,
    inventory: { disks, arrays: [], unknown: [] },
    owned: [],
    intents: [],
    ...more,
  });
const codes = (...of: Parameters<typeof plan>): string[] => plan(...of).findings.map(({ code }) => code);
const [a, b, c] = [systemDisk("a"), systemDisk("b"), mirrorDisk("c")];

test("a blank disk takes the place of one that is gone, which is known by its serial alone", () => {
  const { steps, findings, replaced } = plan([a, c]);
  expect(findings).toEqual([]);
  expect(steps.map(({ id }) => id)).toEqual([
    "mirror:replace:7:partition",
    "mirror:replace:7:join",
    "mirror:replace:7:rebuild",
  ]);
  expect(steps.flatMap(({ destroys = [] }) => destroys)).toEqual([c.identity]);
  expect(replaced).toMatchObject({ array: "system", old: { serial: "b", sizeBytes: 0 }, new: c.identity });
});

test("a disk that failed and is still there is not written, and its place is taken", () => {
  const { steps, findings } = plan([a, b, c], { mirror: mirror(["a", "in-sync"], ["b", "faulty"]) });
  expect(findings).toEqual([]);
  expect(steps.flatMap(({ destroys = [] }) => destroys)).toEqual([c.identity]);
});

test("the only disk that has everything is never taken out, nor is a working one of two", () => {
  const request = { array: "system", old: "a", new: "c", isWipeAllowed: true };
  expect(codes([a, c], { request })).toEqual(["last-copy"]);
  const both = mirror(["a", "in-sync"], ["b", "in-sync"]);
  expect(codes([a, b, c], { request, mirror: both })).toEqual(["still-working"]);
  expect(codes([a, b, c], { mirror: both })).toEqual(["still-working"]);
  expect(codes([a, c], { mirror: mirror(["a", "joining"]) })).toEqual(["array-lost"]);
});

test("the new disk: one that is there, that is not the system's, and that holds nothing of anybody's", () => {
  const to = (next: string, isWipeAllowed = false) => ({
    request: { array: "system", old: "b", new: next, isWipeAllowed },
  });
  expect(codes([a, c], to("z"))).toEqual(["disk-not-found"]);
  expect(codes([a, c], to("a", true))).toEqual(["disk-not-found"]);
  expect(codes([a, c], { request: { array: "system", old: "c", new: "c", isWipeAllowed: false } })).toEqual([
    "not-a-member",
  ]);
  const used = mirrorDisk("c", { signatures: [{ type: "ext4", device: "/dev/c", where: "the whole disk at 0x438" }] });
  expect(codes([a, used])).toEqual(["holds-data"]);
  expect(plan([a, used], to("c", true)).steps[0]).toMatchObject({ id: "mirror:replace:7:wipe" });
  // Another array's member that was away for a while.
  const uuid = "557c5b94-881b-e2de-bc5f-369b49d8761f";
  const ours = mirrorDisk("c", {
    signatures: [{ type: "linux_raid_member", device: "/dev/c", where: "the whole disk at 0x1000", uuid }],
  });
  const owned = [{ kind: "raid" as const, name: "data", uuid: "557c5b94:881be2de:bc5f369b:49d8761f", disks: [] }];
  expect(codes([a, ours], { ...to("c", true), owned })).toEqual(["own-data"]);
  expect(plan([a, ours], { ...to("c", true), owned }).findings[0]?.hint).toStartWith("name another disk, or blank");
  expect(plan([a, used]).findings[0]?.hint).toBe("--wipe destroys it; or name another disk");
});

test("a blank disk that the document has for something else was taken into the system", () => {
  const raw = { kind: "disk" as const, name: "raw", uuid: "nowhere", disks: [c.identity] };
  const { findings, steps } = plan([a, c], { owned: [raw] });
  expect(findings.map(({ code, message }) => `${code}: ${message}`)).toEqual([
    `claimed-twice: disk ${describeDisk(c)} belongs to disk raw of this node`,
  ]);
  expect(steps).toEqual([]);
});

test("gone on with after a power cut, when the new disk is a member already", () => {
  const joined = mirror(["a", "in-sync"], ["c", "in-sync"]);
  expect(codes([a, c], { isResumed: true, mirror: joined })).toEqual([]);
});
