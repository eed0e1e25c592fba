import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { Intent } from "../state/model.ts";
import type { Disk, Inventory, MdArray, OwnedStorage } from "../kit/disk.ts";
import { hasErrors } from "../kit/finding.ts";
import { countedUuids, machine, machineNames, mirror, plainDisk, storageDocument } from "../test/machines/machines.ts";
import type { StorageInput, StoragePlan, StorageStep } from "./storage.ts";
import { planStorage } from "./storage.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const plan = (inventory: Inventory, more: Partial<StorageInput> = {}): StoragePlan =>
  planStorage({
    document: storageDocument({ raid: [mirror()] }),
    inventory,
    owned: [],
    intents: [],
    uuid: countedUuids(),
    ...more,
  });

const ids = (result: StoragePlan): string[] => result.steps.map((step) => step.id);
const errors = (result: StoragePlan): string[] =>
  result.findings
    .filter((each) => each.severity === "error")
    .map((each) => `${each.code} ${each.path}: ${each.message}`);
const wiping = storageDocument({ raid: [mirror({ wipe: true })] });

const disksOf = (inventory: Inventory): readonly Disk[] =>
  inventory.disks.filter((disk) => disk.identity.serial === "A" || disk.identity.serial === "B");

const intent = (step: StorageStep, isOpen: boolean): Intent => ({
  stepId: step.id,
  step,
  disks: step.destroys ?? [],
  openedAtMs: 1,
  ...(isOpen ? {} : { closedAtMs: 2 }),
});

describe("planStorage", () => {
  test("two blank disks become a mirror that k0s waits for", () => {
    const result = plan(machine("blank-pair"));
    expect(errors(result)).toEqual([]);
    expect(ids(result)).toEqual(["raid:data:create", "raid:data:config", "raid:data:filesystem", "mount:data"]);
    const uuid = "00000000:00004000:80000000:00000001";
    expect(result.steps[0]).toMatchObject({ uuid, level: 1, destroys: [{ serial: "A" }, { serial: "B" }] });
    expect(result.steps[2]).toMatchObject({
      device: { path: `/dev/disk/by-id/md-uuid-${uuid}` },
      label: "corium-data",
    });
    const mount = result.steps[3];
    expect(mount).toMatchObject({ unit: "var-lib-k0s.mount", isPointImmutable: false });
    expect(mount?.kind === "disk:mount" && mount.files.map((file) => file.path)).toEqual([
      "/etc/systemd/system/var-lib-k0s.mount",
      "/etc/systemd/system/k0scontroller.service.d/50-corium-var-lib-k0s.conf",
    ]);
    expect(result.owned).toMatchObject([
      { kind: "raid", name: "data", uuid, disks: [{ serial: "A" }, { serial: "B" }] },
    ]);
  });

  test("a plain disk elsewhere is not k0s's concern, and its empty point is immutable", () => {
    const result = plan(machine("blank-pair"), { document: storageDocument({ disks: [plainDisk()] }) });
    expect(ids(result)).toEqual(["disk:plain:filesystem", "mount:plain"]);
    expect(result.steps[1]).toMatchObject({ isPointImmutable: true, files: [{}] });
  });

  test("outer mounts come before inner ones, whatever the document's order", () => {
    const disks = [
      plainDisk({ name: "in", mountPoint: "/srv/a/b" }),
      plainDisk({ name: "out", device: { serial: "B" }, mountPoint: "/srv/a" }),
    ];
    const result = plan(machine("blank-pair"), { document: storageDocument({ disks }) });
    expect(ids(result).slice(-2)).toEqual(["mount:out", "mount:in"]);
  });

  test("a disk and an array of one name keep apart", () => {
    const document = storageDocument({
      disks: [plainDisk({ name: "data", device: { serial: "C" } })],
      raid: [mirror()],
    });
    const pair = machine("blank-pair");
    const [, a] = pair.disks;
    const third = { ...a, path: "/dev/vdd", identity: { ...a?.identity, serial: "C" } } as Disk;
    const result = plan({ ...pair, disks: [...pair.disks, third] }, { document });
    expect(new Set(ids(result)).size).toBe(ids(result).length);
  });

  test("a member that carries an old ext4 stops everything, naming the disk and what was found where", () => {
    const refused = plan(machine("old-ext4-on-a-member"));
    expect(errors(refused)).toEqual([
      'holds-data raid[0].devices[1]: disk /dev/vdc (no model, serial B, 512 MiB) holds data: ext4 "photos" on the whole disk at 0x438',
    ]);
    expect(refused.steps).toEqual([]);
    const consented = plan(machine("old-ext4-on-a-member"), { document: wiping });
    expect(ids(consented).slice(0, 2)).toEqual(["raid:data:wipe:1", "raid:data:create"]);
  });

  test("B014: a member of a foreign array is refused without wipe, wiped with it, never adopted", () => {
    expect(errors(plan(machine("foreign-array-member")))).toEqual([
      'holds-data raid[0].devices[0]: disk /dev/vdb (no model, serial A, 512 MiB) holds data: linux_raid_member "otherbox:foreign12" on the whole disk at 0x1000; it is a member of array foreign12, whose other members are not here',
    ]);
    expect(ids(plan(machine("foreign-array-member"), { document: wiping }))[0]).toBe("raid:data:wipe:0");
  });

  test("a member of an array that nobody assembled is refused naming the array's other member too", () => {
    const alone = machine("foreign-array-member");
    const [array] = alone.arrays;
    const [, first, second] = alone.disks;
    const pair = { ...array, memberPaths: [first?.path ?? "", second?.path ?? ""] } as MdArray;
    expect(errors(plan({ ...alone, arrays: [pair] }))[0]).toEndWith(
      "; it is a member of array foreign12, together with /dev/vdc (no model, serial B, 512 MiB)",
    );
  });

  test("B001: held by an idle array: taken down when every member is consented to, else refused naming the others", () => {
    expect(ids(plan(machine("foreign-array-running"), { document: wiping }))).toEqual([
      "raid:data:wipe:0",
      "raid:data:wipe:1",
      "raid:data:create",
      "raid:data:config",
      "raid:data:filesystem",
      "mount:data",
    ]);
    const half = storageDocument({ disks: [plainDisk({ wipe: true })] });
    expect(errors(plan(machine("foreign-array-running"), { document: half }))).toEqual([
      "held disks[0].device: disk /dev/vdb (no model, serial A, 512 MiB) is held by array foreign12 (md127), together with /dev/vdc (no model, serial B, 512 MiB)",
    ]);
  });

  test("B012: a volume group over a disk that nobody consented to is left alone", () => {
    const half = storageDocument({ disks: [plainDisk({ wipe: true })] });
    expect(errors(plan(machine("lvm"), { document: half }))[0]).toContain(
      "held by mapping vg0-root, together with /dev/vdc",
    );
    expect(errors(plan(machine("lvm"), { document: wiping }))).toEqual([]);
  });

  test("a mounted disk is never touched, whatever wipe says", () => {
    expect(errors(plan(machine("mounted-disk"), { document: wiping }))).toEqual([
      "in-use raid[0].devices[0]: disk /dev/vdb (no model, serial A, 512 MiB) is in use by a mount at /mnt/rescue",
    ]);
  });

  test("a disk with nothing but a backup GPT at its end holds data", () => {
    expect(errors(plan(machine("backup-gpt-only")))).toEqual([
      "holds-data raid[0].devices[0]: disk /dev/vdb (no model, serial A, 512 MiB) holds data: gpt on the whole disk at 0x1ffffe00",
    ]);
  });

  test("one disk by two names is refused", () => {
    const document = storageDocument({ raid: [mirror({ devices: ["/dev/vdb", "/dev/disk/by-id/virtio-A"] })] });
    expect(errors(plan(machine("blank-pair"), { document }))[0]).toContain("claimed-twice raid[0].devices[1]");
    const two = storageDocument({
      disks: [plainDisk(), plainDisk({ name: "b", device: "/dev/vdb", mountPoint: "/srv/b" })],
    });
    expect(errors(plan(machine("blank-pair"), { document: two }))[0]).toContain("claimed-twice disks[1].device");
  });

  test("mixed sector sizes are refused, unequal sizes are a warning with the loss", () => {
    const result = plan(machine("mixed-sectors"));
    expect(errors(result)[0]).toContain("mixed-sectors raid[0].devices");
    expect(result.findings.find((each) => each.code === "unequal-sizes")?.message).toContain(
      "536870912 bytes are lost",
    );
  });

  test("B025: a kernel name is a warning with the stable name", () => {
    const document = storageDocument({ disks: [plainDisk({ device: "/dev/vdb" })] });
    const [warning] = plan(machine("blank-pair"), { document }).findings;
    expect(warning).toMatchObject({ severity: "warning", code: "kernel-name", hint: "use /dev/disk/by-id/virtio-A" });
  });

  test("zfs is refused with the reason: this image has none", () => {
    const document = storageDocument({
      zfs: [{ name: "tank", vdevs: [], options: {}, filesystemOptions: {}, datasets: [], wipe: false }],
    });
    expect(errors(plan(machine("blank-pair"), { document }))).toEqual([
      "not-in-release zfs: this image has no ZFS: neither its kernel module nor its programs are in it",
    ]);
  });

  test("what could not be read is not judged", () => {
    const inventory = { ...machine("blank-pair"), unknown: ["/dev/vdb: blkid was killed by SIGSEGV"] };
    expect(errors(plan(inventory))[0]).toStartWith("unreadable raid[0].devices[0]");
  });
});

describe("what is ours", () => {
  const record: OwnedStorage = {
    kind: "raid",
    name: "data",
    uuid: "11111111:22222222:33333333:44444444",
    filesystemUuid: "0e9554b0-c265-4354-9dd2-04caa654d74e",
    disks: disksOf(machine("our-array")).map((disk) => disk.identity),
  };
  const adoptedIds = ["raid:data:assemble", "raid:data:config", "mount:data"];

  test("a recorded array is adopted, whatever wipe says", () => {
    for (const document of [storageDocument({ raid: [mirror()] }), wiping]) {
      const result = plan(machine("our-array"), { document, owned: [record] });
      expect(errors(result)).toEqual([]);
      expect(ids(result)).toEqual(adoptedIds);
      expect(result.steps.flatMap((step) => step.destroys ?? [])).toEqual([]);
      expect(result.owned).toEqual([record]);
    }
  });

  test("without a record, name, level, member set and label must all match", () => {
    const inventory = machine("our-array");
    const result = plan(inventory, { document: wiping });
    expect(ids(result)).toEqual(adoptedIds);
    expect(result.findings).toMatchObject([{ severity: "warning", code: "adopted" }]);
    const [array] = inventory.arrays;
    if (array === undefined) throw new Error("fixture without an array");
    for (const other of [
      { name: "other" },
      { level: "raid0" },
      { label: "corium-other" },
      { expectedMembers: 3 },
      { memberPaths: ["/dev/vdb"] },
    ]) {
      const near = plan({ ...inventory, arrays: [{ ...array, ...other }] });
      expect(errors(near)[0]).toStartWith("holds-data");
    }
  });

  test("ours with a blank disk in a member's place is refused naming what is missing", () => {
    const byRecord = storageDocument({ raid: [mirror({ devices: [{ serial: "A" }, { serial: "NEW" }], wipe: true })] });
    const result = plan(machine("our-array-member-missing"), { document: byRecord, owned: [record] });
    expect(errors(result)[0]).toContain("own-incomplete raid[0].devices: array data");
    expect(errors(result)[0]).toContain("its member B, 536870912 bytes is missing");
    const declared = plan(machine("our-array-member-missing"), { owned: [record] });
    expect(errors(declared)[0]).toContain("disk-not-found raid[0].devices[1]: no disk matches {serial: B}");
    expect(errors(declared)[1]).toContain("its member no model, serial B, 512 MiB is missing");
  });

  test("our own data under another name needs more than wipe: true", () => {
    const document = storageDocument({ disks: [plainDisk({ wipe: true })] });
    const result = plan(machine("our-array"), { document, owned: [record] });
    expect(errors(result)[0]).toStartWith("own-data disks[0].device");
    const allowed = plan(machine("our-array"), { document, owned: [record], ownLossSinceMs: 1 });
    expect(ids(allowed)).toEqual(["disk:plain:wipe", "disk:plain:filesystem", "mount:plain"]);
  });

  test("--wipe-own covers what was made before it; what is made under it is adopted after a power cut", () => {
    const lost = plan(machine("our-array"), { document: wiping, owned: [record], ownLossSinceMs: 5 });
    expect(ids(lost).slice(0, 3)).toEqual(["raid:data:wipe:0", "raid:data:wipe:1", "raid:data:create"]);
    expect(ids(plan(machine("our-array"), { owned: [record], ownLossSinceMs: 5 }))).not.toContain("raid:data:create");
    const made = plan(machine("our-array"), { document: wiping, owned: [record] });
    expect(ids(made)).not.toContain("raid:data:create");
    const [create] = plan(machine("blank-pair"), {
      document: wiping,
      uuid: () => record.uuid.replaceAll(":", ""),
    }).steps;
    if (create?.kind !== "raid:create") throw new Error("an array is created first");
    const closed: Intent = { ...intent({ ...create, uuid: record.uuid }, false), openedAtMs: 6, closedAtMs: 7 };
    const after = { document: wiping, owned: [], intents: [closed], ownLossSinceMs: 5 };
    expect(ids(plan(machine("our-array"), after))).not.toContain("raid:data:create");
    const older = { ...after, intents: [{ ...closed, openedAtMs: 4 }] };
    expect(ids(plan(machine("our-array"), older))).toContain("raid:data:create");
  });

  test("a plain disk with our label and filesystem is adopted; a stray label on another filesystem is not", () => {
    const pair = machine("blank-pair");
    const withSignature = (type: string): Inventory => ({
      ...pair,
      disks: pair.disks.map((disk) =>
        disk.path === "/dev/vdb"
          ? {
              ...disk,
              signatures: [
                { type, device: "/dev/vdb", where: "the whole disk at 0x438", uuid: "u", label: "corium-plain" },
              ],
            }
          : disk,
      ),
    });
    const document = storageDocument({ disks: [plainDisk()] });
    expect(ids(plan(withSignature("ext4"), { document }))).toEqual(["mount:plain"]);
    expect(errors(plan(withSignature("xfs"), { document }))[0]).toStartWith("holds-data");
  });
});

test("a copy of a disk was left in the machine: mounted by UUID, chance decided which of the two was written", () => {
  const blank = machine("blank-pair");
  const made = (disk: Disk): Disk => ({
    ...disk,
    signatures: [{ type: "ext4", device: disk.path, where: "the whole disk", uuid: "f", label: "corium-plain" }],
  });
  const inventory = {
    ...blank,
    disks: blank.disks.map((disk) => (disksOf(blank).includes(disk) ? made(disk) : disk)),
  };
  const first = plainDisk({ wipe: true });
  const refused = plan(inventory, { document: storageDocument({ disks: [first] }) });
  expect([errors(refused).map((each) => each.split(": ")[0]), ids(refused)]).toEqual([
    ["same-uuid disks[0].device"],
    [],
  ]);
  // Wiped for something else it is none any more.
  const second = plainDisk({ name: "other", device: { serial: "B" }, mountPoint: "/srv/other", wipe: true });
  const both = plan(inventory, { document: storageDocument({ disks: [first, second] }) });
  expect(errors(both)).toEqual([]);
  expect(ids(both)).toEqual(["disk:other:wipe", "disk:other:filesystem", "mount:other", "mount:plain"]);
});

describe("resuming", () => {
  const fresh = plan(machine("blank-pair"));
  const [create, , filesystem] = fresh.steps as [StorageStep, StorageStep, StorageStep];
  const uuid = "00000000-0000-4000-8000-000000000001";
  const half = (paths: readonly string[], arrays = true): Inventory => {
    const pair = machine("blank-pair");
    const disks = pair.disks.map((disk) =>
      paths.includes(disk.path)
        ? { ...disk, signatures: [{ type: "linux_raid_member", device: disk.path, where: "the whole disk", uuid }] }
        : disk,
    );
    const array = { uuid: "00000000:00004000:80000000:00000001", name: "data", level: "raid1", memberPaths: paths };
    return { ...pair, disks, arrays: arrays ? [array] : [] };
  };
  const others = (): (() => string) => {
    let next = 100;
    return () => `00000000-0000-4000-8000-000000000${(next += 1)}`;
  };

  test("power lost in the middle of create: the same array again, without a second consent", () => {
    const result = plan(half(["/dev/vdb"]), { intents: [intent(create, true)], uuid: others() });
    expect(errors(result)).toEqual([]);
    expect(result.steps[0]).toEqual(create);
  });

  test("power lost in the middle of mkfs: the same filesystem again", () => {
    const result = plan(half(["/dev/vdb", "/dev/vdc"]), {
      intents: [intent(create, false), intent(filesystem, true)],
      uuid: others(),
    });
    expect(ids(result)).toEqual(["raid:data:assemble", "raid:data:config", "raid:data:filesystem", "mount:data"]);
    expect(result.steps[2]).toEqual(filesystem);
  });

  test("power lost after mkfs: adopted from the closed intents, before anything was recorded as owned", () => {
    const result = plan(half(["/dev/vdb", "/dev/vdc"]), {
      intents: [intent(create, false), intent(filesystem, false)],
      uuid: others(),
    });
    expect(ids(result)).toEqual(["raid:data:assemble", "raid:data:config", "mount:data"]);
    expect(result.owned).toEqual(fresh.owned);
  });

  test("an open intent is no consent for another disk, nor for what somebody else wrote meanwhile", () => {
    const swapped = machine("old-ext4-on-a-member");
    expect(errors(plan(swapped, { intents: [intent(create, true)] }))[0]).toStartWith("holds-data");
    const otherDisk: Intent = { ...intent(create, true), disks: [{ serial: "A", sizeBytes: 1 }] };
    expect(errors(plan(half(["/dev/vdb"]), { intents: [otherDisk] }))[0]).toStartWith("holds-data");
  });

  test("a plain disk half-way through mkfs goes on under the same UUID", () => {
    const document = storageDocument({ disks: [plainDisk()] });
    const first = plan(machine("blank-pair"), { document });
    const [made] = first.steps as [StorageStep];
    const pair = machine("blank-pair");
    const disks = pair.disks.map((disk) =>
      disk.path === "/dev/vdb"
        ? { ...disk, signatures: [{ type: "ext4", device: "/dev/vdb", where: "the whole disk", uuid }] }
        : disk,
    );
    const again = plan({ ...pair, disks }, { document, intents: [intent(made, true)], uuid: others() });
    expect(again.steps).toEqual(first.steps);
  });
});

describe("a disk without a filesystem", () => {
  const raw = storageDocument({
    disks: [{ name: "raw", device: { serial: "A" }, filesystem: "none", wipe: true }],
  });
  const used: Inventory = {
    ...machine("blank-pair"),
    disks: machine("blank-pair").disks.map((disk) =>
      disk.identity.serial === "A"
        ? { ...disk, signatures: [{ type: "ceph_bluestore", device: disk.path, where: "the whole disk" }] }
        : disk,
    ),
  };

  test("what was put on it after it was taken is destroyed by the next try of a bootstrap", () => {
    // Blank at first, so that no wipe was ever journalled.
    const first = plan(machine("blank-pair"), { document: raw });
    expect(ids(first)).toEqual([]);
    const again = plan(used, { document: raw, owned: first.owned });
    expect([...ids(again), ...errors(again)]).toEqual([]);
    expect(again.owned).toEqual(first.owned);
    const keeps = storageDocument({ disks: raw.disks.map((disk) => ({ ...disk, wipe: false })) });
    expect(errors(plan(used, { document: keeps, owned: first.owned }))).toEqual([]);
    expect(ids(plan(used, { document: raw, owned: first.owned, ownLossSinceMs: 1 }))).toEqual(["disk:raw:wipe"]);
    const [wipe] = plan(used, { document: raw, owned: first.owned, ownLossSinceMs: 1 }).steps;
    const blanked = wipe === undefined ? [] : [{ ...intent(wipe, false), openedAtMs: 5, closedAtMs: 6 }];
    for (const [ownLossSinceMs, again] of [
      [4, []],
      [6, ["disk:raw:wipe"]],
    ] as const) {
      expect(ids(plan(used, { document: raw, owned: [], intents: blanked, ownLossSinceMs }))).toEqual([...again]);
    }
  });

  test("power lost right after its wipe: the intent stays open for ever", () => {
    const [wipe] = plan(used, { document: raw }).steps as [StorageStep];
    expect(ids(plan(machine("blank-pair"), { document: raw, intents: [intent(wipe, true)] }))).toEqual([wipe.id]);
    expect(ids(plan(machine("blank-pair"), { document: raw, intents: [intent(wipe, false)] }))).toEqual([]);
  });
});

describe("for every machine", () => {
  const specs = fc.record({
    name: fc.constantFrom(...machineNames),
    wipeDisk: fc.boolean(),
    wipeArray: fc.boolean(),
    diskAt: fc.nat(3),
    arrayAt: fc.uniqueArray(fc.nat(3), { minLength: 2, maxLength: 3 }),
    level: fc.constantFrom(0 as const, 1 as const),
  });

  const build = (spec: typeof specs extends fc.Arbitrary<infer T> ? T : never, inventory: Inventory) => {
    const ref = (at: number): string => inventory.disks[at % inventory.disks.length]?.path ?? "/dev/none";
    const disk = plainDisk({ device: ref(spec.diskAt), wipe: spec.wipeDisk });
    const array = mirror({ devices: spec.arrayAt.map(ref), wipe: spec.wipeArray, level: spec.level });
    return { disk, array };
  };

  test("no step names a disk that the document did not consent to, nor any when there is an error", () => {
    let planned = 0;
    fc.assert(
      fc.property(specs, fc.boolean(), (spec, isBoth) => {
        const inventory = machine(spec.name);
        const { disk, array } = build(spec, inventory);
        const document = storageDocument({ disks: isBoth ? [disk] : [], raid: [array] });
        const result = plan(inventory, { document });
        if (hasErrors(result.findings)) {
          expect(result.steps).toEqual([]);
          return;
        }
        planned += 1;
        const wanted = new Map<string, boolean>();
        for (const each of array.devices) wanted.set(JSON.stringify(each), array.wipe);
        if (isBoth) wanted.set(JSON.stringify(disk.device), disk.wipe);
        for (const lost of result.steps.flatMap((step) => step.destroys ?? [])) {
          const target = inventory.disks.find((each) => each.identity === lost);
          expect(target).toBeDefined();
          if (target === undefined) continue;
          expect(wanted.has(JSON.stringify(target.path))).toBe(true);
          expect(target.isBootMedium || target.isSystemDisk).toBe(false);
          expect(target.users.some((user) => user.isBusy)).toBe(false);
          if (target.signatures.length > 0 || target.partitions.length > 0)
            expect(wanted.get(JSON.stringify(target.path))).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
    expect(planned).toBeGreaterThan(50);
  });

  test("the order in which disks were discovered decides nothing", () => {
    fc.assert(
      fc.property(specs, fc.infiniteStream(fc.nat(1000)), (spec, dice) => {
        const inventory = machine(spec.name);
        const { array } = build(spec, inventory);
        const document = storageDocument({ raid: [array] });
        const order = inventory.disks.map((disk) => ({ disk, key: dice.next().value as number }));
        const disks = order.toSorted((a, b) => a.key - b.key).map(({ disk }) => disk);
        const shuffled = { ...inventory, disks, arrays: inventory.arrays.toReversed() };
        const [one, two] = [plan(inventory, { document }), plan(shuffled, { document })];
        expect(two.steps).toEqual(one.steps);
        expect(two.owned).toEqual(one.owned);
        expect(two.findings.map((each) => `${each.code} ${each.path}`)).toEqual(
          one.findings.map((each) => `${each.code} ${each.path}`),
        );
      }),
      { numRuns: 500 },
    );
  });
});
