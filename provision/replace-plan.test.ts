import { describe, expect, test } from "bun:test";
import type { RaidSpec } from "../config/document.ts";
import type { Disk, Inventory, OwnedStorage, ReplacedDisk, Signature } from "../kit/disk.ts";
import type { ArrayMember, ArrayReport, MemberState } from "../raid/report.ts";
import { countedUuids, mirror, storageDocument } from "../test/machines/machines.ts";
import type { ReplaceInput, ReplacePlan } from "./replace-plan.ts";
import { planReplacement } from "./replace-plan.ts";
import { planStorage } from "./storage.ts";
import { blankDisk } from "../test/support/disks.ts";

const MIB = 1024 * 1024;
const uuid = "557c5b94:881be2de:bc5f369b:49d8761f";
const dashed = "557c5b94-881b-e2de-bc5f-369b49d8761f";

const disk = (serial: string, more: Partial<Disk> = {}): Disk => {
  const links = [`/dev/disk/by-id/virtio-${serial}`];
  const identity = { serial, sizeBytes: more.sizeBytes ?? 512 * MIB };
  return blankDisk(`/dev/vd${serial.toLowerCase()}`, identity, { links, ...more });
};
const signature = (device: string, type: string, more: Partial<Signature> = {}): Signature => ({
  type,
  device,
  where: "the whole disk",
  ...more,
});
const member = (serial: string, more: Partial<Disk> = {}): Disk => {
  const plain = disk(serial, more);
  return {
    ...plain,
    signatures: [signature(plain.path, "linux_raid_member", { uuid: dashed })],
    users: [{ kind: "md", name: "md127", isBusy: true }],
  };
};

const machine = (...disks: Disk[]): Inventory => ({
  disks,
  arrays: [
    {
      uuid,
      name: "data",
      level: "raid1",
      path: "/dev/md127",
      memberPaths: disks.filter(({ signatures }) => signatures[0]?.uuid === dashed).map(({ path }) => path),
      expectedMembers: 2,
      filesystemUuid: "f",
    },
  ],
  unknown: [],
});

const record: OwnedStorage = {
  kind: "raid",
  name: "data",
  uuid,
  filesystemUuid: "f",
  disks: [disk("A").identity, disk("B").identity],
};

function report(states: Readonly<Record<string, MemberState>>, more: Partial<ArrayReport> = {}): ArrayReport {
  const members = Object.entries(states).map(([serial, state], role): ArrayMember => ({
    serial,
    state,
    role,
    ...(state === "missing" ? {} : { device: `/dev/vd${serial.toLowerCase()}` }),
  }));
  const active = members.filter(({ state }) => state === "active").length;
  return {
    name: "data",
    level: "raid1",
    state: active < 2 ? "degraded" : "healthy",
    active,
    expected: 2,
    members,
    ...more,
  };
}

const healthy = report({ A: "active", B: "active" });
const halved = report({ A: "active", B: "missing" });

interface Case extends Partial<Omit<ReplaceInput, "request">> {
  readonly old?: string;
  readonly new?: string;
  readonly wipe?: boolean;
  readonly spec?: Partial<RaidSpec>;
}

function plan({ old = "B", new: fresh = "C", wipe = false, spec = {}, ...more }: Case = {}): ReplacePlan {
  return planReplacement({
    request: { array: "data", old, new: fresh, isWipeAllowed: wipe },
    id: 3,
    isResumed: false,
    document: storageDocument({ raid: [mirror(spec)] }),
    inventory: machine(member("A"), member("B"), disk("C")),
    owned: [record],
    intents: [],
    arrays: [healthy],
    ...more,
  });
}

const ids = ({ steps }: ReplacePlan): string[] => steps.map(({ id }) => id.replace("raid:data:replace:3:", ""));
const codes = ({ findings }: ReplacePlan): string[] =>
  findings.filter(({ severity }) => severity === "error").map(({ code, path }) => `${code} ${path}`);

describe("one disk in the place of another", () => {
  test("a member that still works serves until the new one has everything, and is cleared last", () => {
    const planned = plan();
    expect(codes(planned)).toEqual([]);
    expect(ids(planned)).toEqual(["add", "rebuild", "retire"]);
    expect(planned.steps[1]).toMatchObject({ member: { path: "/dev/vdc" }, leaving: { path: "/dev/vdb" } });
    expect(planned.steps.map(({ destroys }) => destroys?.map(({ serial }) => serial))).toEqual([
      ["C"],
      undefined,
      ["B"],
    ]);
    expect(planned.replaced).toMatchObject({ array: "data", old: { serial: "B" }, new: { serial: "C" } });
  });

  test("a member that is gone: nothing is cleared", () => {
    expect(ids(plan({ inventory: machine(member("A"), disk("C")), arrays: [halved] }))).toEqual(["add", "rebuild"]);
  });

  test("by WWN and by path as well", () => {
    expect(codes(plan({ old: "/dev/disk/by-id/virtio-B", new: "/dev/vdc" }))).toEqual([]);
    const named: OwnedStorage = { ...record, disks: [disk("A").identity, { wwn: "0x5", sizeBytes: 512 * MIB }] };
    const inventory = machine(member("A"), disk("C"));
    expect(codes(plan({ old: "0x5", owned: [named], inventory, arrays: [halved] }))).toEqual([]);
  });

  test("a spare is replaced too", () => {
    const owned = [{ ...record, disks: [...record.disks, disk("S").identity] }];
    const planned = plan({
      old: "S",
      owned,
      spec: { spares: [{ serial: "S" }] },
      inventory: machine(member("A"), member("B"), member("S"), disk("C")),
      arrays: [report({ A: "active", B: "active", S: "spare" })],
    });
    expect(codes(planned)).toEqual([]);
    expect(planned.replaced).toMatchObject({ old: { serial: "S" }, new: { serial: "C" } });
  });
});

describe("refused, with nothing planned", () => {
  const old = signature("/dev/vdc", "ext4", { label: "photos" });
  const refusals: readonly (readonly [string, Case, string])[] = [
    ["an array that is not ours", { owned: [] }, "array-not-found array"],
    ["a disk that is no member", { old: "X" }, "not-a-member old"],
    ["a disk that is not there", { new: "X" }, "disk-not-found new"],
    [
      "a disk that holds data",
      { inventory: machine(member("A"), member("B"), disk("C", { signatures: [old] })) },
      "holds-data new",
    ],
    [
      "a disk in use, whatever wipe says",
      {
        wipe: true,
        inventory: machine(
          member("A"),
          member("B"),
          disk("C", { users: [{ kind: "mount", name: "/srv", isBusy: true }] }),
        ),
      },
      "in-use new",
    ],
    [
      "the boot medium",
      { inventory: machine(member("A"), member("B"), disk("C", { isBootMedium: true })) },
      "disk-not-found new",
    ],
    [
      "the system disk",
      { wipe: true, inventory: machine(member("A"), member("B"), disk("C", { isSystemDisk: true })) },
      "disk-not-found new",
    ],
    [
      "a smaller one",
      { inventory: machine(member("A"), member("B"), disk("C", { sizeBytes: 511 * MIB })) },
      "member-too-small new",
    ],
    [
      "another sector size",
      { inventory: machine(member("A"), member("B"), disk("C", { logicalSectorBytes: 4096 })) },
      "mixed-sectors new",
    ],
    [
      "a twin",
      { inventory: machine(member("A"), member("B"), disk("C"), disk("C", { path: "/dev/vdd" })) },
      "disk-not-found new",
    ],
    ["level 0", { spec: { level: 0 } }, "no-redundancy array"],
    [
      "an array that is lost",
      { arrays: [report({ A: "missing", B: "missing" }, { state: "failed" })] },
      "array-lost array",
    ],
    [
      "a working member while another is missing",
      { old: "A", arrays: [halved], inventory: machine(member("A"), disk("C")) },
      "other-missing old",
    ],
    [
      "a working member while the array is rebuilt",
      { arrays: [report({ A: "active", B: "active" }, { state: "resyncing" })] },
      "array-busy array",
    ],
  ];
  for (const [name, input, code] of refusals) {
    test(name, () => {
      const planned = plan(input);
      expect(codes(planned)).toEqual([code]);
      expect([planned.steps, planned.replaced]).toEqual([[], undefined]);
    });
  }

  test("another member of the array in the place of this one", () => {
    expect(codes(plan({ new: "A" }))).toEqual(["already-member new"]);
  });

  test("what this node made elsewhere is not destroyed by --wipe", () => {
    const inventory = machine(
      member("A"),
      member("B"),
      disk("C", { signatures: [signature("/dev/vdc", "ext4", { uuid: "mine" })] }),
    );
    const other: OwnedStorage = { kind: "disk", name: "plain", uuid: "mine", disks: [disk("C").identity] };
    expect(codes(plan({ inventory, wipe: true, owned: [record, other] }))).toEqual(["own-data new"]);
  });

  test("a disk of the document that has no filesystem, blank or used as it is, was taken into the array", () => {
    const raw: OwnedStorage = { kind: "disk", name: "raw", uuid: "nowhere", disks: [disk("C").identity] };
    const used = disk("C", { signatures: [signature("/dev/vdc", "ceph_bluestore")] });
    for (const each of [disk("C"), used]) {
      const planned = plan({ wipe: true, inventory: machine(member("A"), member("B"), each), owned: [record, raw] });
      expect([codes(planned), planned.steps]).toEqual([["claimed-twice new"], []]);
      expect(planned.findings[0]?.message).toContain("belongs to disk raw of this node");
    }
  });

  test("a member of another array that came back blank was taken into this one", () => {
    const other: OwnedStorage = { kind: "raid", name: "other", uuid: "1", disks: [disk("C").identity] };
    expect(codes(plan({ owned: [record, other] }))).toEqual(["claimed-twice new"]);
    // A volume on the array has the array's disks.
    const volume: OwnedStorage = { kind: "luks", name: "vault", uuid: "2", disks: record.disks };
    expect(codes(plan({ owned: [record, volume] }))).toEqual([]);
  });

  test("the cure that was given is a flag that cctl disk replace does not have", () => {
    const uuid = "0e9554b0-c265-4354-9dd2-04caa654d74e";
    const inventory = machine(
      member("A"),
      member("B"),
      disk("C", { signatures: [signature("/dev/vdc", "ext4", { uuid })] }),
    );
    const other: OwnedStorage = { kind: "disk", name: "plain", uuid, disks: [disk("C").identity] };
    const hints = (more: object): (string | undefined)[] =>
      plan({ inventory, ...more }).findings.map(({ hint }) => hint);
    expect(hints({})).toEqual(["--wipe destroys it; or name another disk"]);
    expect(hints({ wipe: true, owned: [record, other] })).toEqual([
      "name another disk, or blank this one elsewhere: a replacement destroys nothing of ours",
    ]);
  });
});

test("with consent the disk is wiped first", () => {
  const inventory = machine(member("A"), member("B"), disk("C", { signatures: [signature("/dev/vdc", "ext4")] }));
  expect(ids(plan({ inventory, wipe: true }))).toEqual(["wipe", "add", "rebuild", "retire"]);
});

describe("after a power cut", () => {
  const begun = machine(member("A"), member("B"), { ...member("C"), users: [] });

  test("a superblock that the request itself left is no data of somebody", () => {
    expect(codes(plan({ inventory: begun }))).toEqual(["holds-data new"]);
    expect(ids(plan({ inventory: begun, isResumed: true }))).toEqual(["add", "rebuild", "retire"]);
  });

  test("in the middle of the rebuild it goes on, and wipes nothing", () => {
    const arrays = [report({ A: "active", B: "active", C: "rebuilding" }, { state: "rebuilding" })];
    const inventory = machine(member("A"), member("B"), member("C"));
    expect(ids(plan({ inventory, arrays, isResumed: true }))).toEqual(["add", "rebuild", "retire"]);
  });
});

describe("what the document names afterwards", () => {
  const replaced = plan().replaced as ReplacedDisk;
  const owned: OwnedStorage = { ...record, disks: [disk("A").identity, disk("C").identity] };
  const inventory = machine(member("A"), member("C"));
  const again = (refs: readonly string[], more: readonly ReplacedDisk[] = [replaced], at = inventory): string[] => {
    const document = storageDocument({ raid: [mirror({ devices: refs.map((serial) => ({ serial })), wipe: true })] });
    const input = { document, inventory: at, owned: [owned], intents: [], uuid: countedUuids() };
    const { steps, findings } = planStorage({ ...input, replaced: more });
    return [...findings.map(({ code }) => code), ...steps.map(({ id }) => id)];
  };
  const adopted = ["raid:data:assemble", "raid:data:config", "mount:data"];

  test("the old disk's selector means the new one, and so does the new one's", () => {
    expect(again(["A", "B"])).toEqual(adopted);
    expect(again(["A", "C"])).toEqual(adopted);
    expect(again(["A", "B"], [])).toContain("disk-not-found");
  });

  test("the old disk, plugged in again, is not taken for what it was", () => {
    expect(again(["A", "B"], [replaced], machine(member("A"), disk("B"), member("C")))).toEqual(adopted);
  });

  test("the new disk is missing: it is named", () => {
    expect(again(["A", "B"], [replaced], machine(member("A")))).toContain("own-incomplete");
  });
});
