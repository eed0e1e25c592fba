import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { DeviceRef } from "../../config/document.ts";
import { describeDisk } from "../../disks/describe.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import type { InstallInput } from "./plan.ts";
import { formatFinding } from "../../kit/finding.ts";
import { neededBytes, PARTITIONS, partitionOf } from "../../iso/layout.ts";
import type { Layout } from "../../iso/layout.ts";
import { guidOf, partUuidsOf, twinOf } from "../../iso/uuids.ts";
import { carriedArguments, planInstall } from "./plan.ts";
import { standingOf } from "./standing.ts";
import { INSTALLING, installingScript, isTable, stateName } from "./table.ts";
import { blankDisk } from "../../test/support/disks.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const MIB = 1024 ** 2;
const image = { directory: "/medium", rootBytes: 300 * MIB, rootHash: "a".repeat(64), hashOffsetBytes: 299 * MIB };

const disk = (serial: string, more: Partial<Disk> = {}): Disk =>
  blankDisk(`/dev/${serial}`, { serial, sizeBytes: 32 * 1024 * MIB }, more);
const ext4 = { type: "ext4", device: "/dev/a", where: "the whole disk at 0x438" };
/** As sfdisk leaves it behind. */
const partitioned = (serial: string, installation: string, state: string): Disk =>
  disk(serial, {
    partitions: PARTITIONS.map(({ role, number, name }) => ({
      path: `/dev/${serial}${number}`,
      number,
      sizeBytes: MIB,
      partUuid: partUuidsOf(installation)[role],
      label: role === "state" ? state : name,
    })),
    signatures: [{ type: "gpt", device: `/dev/${serial}`, where: "the whole disk at 0x200" }],
  });
const inventory = (...disks: Disk[]): Inventory => ({ disks, arrays: [], unknown: [] });
const id = "0123456789abcdef0123456789abcdef";
const plan = (of: Inventory, more: Partial<InstallInput> & { wipe?: boolean; disk?: string } = {}) =>
  planInstall({
    document: { install: { disk: more.disk ?? "/dev/a", wipe: more.wipe ?? false } },
    documentSha256: "0",
    inventory: of,
    image,
    version: "0.1.0",
    args: "console=ttyS0",
    uuid: () => "11111111-2222-4333-8444-555555555555",
    intents: [],
    ...more,
  });
const guid = (hex: string): string => hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
const codes = (...of: Parameters<typeof plan>): string[] => plan(...of).findings.map(({ code }) => code);

describe("planInstall", () => {
  test("power lost while its table was written: a disk that was blank holds data, and is refused", () => {
    const torn = disk("a", {
      signatures: [{ type: "gpt", device: "/dev/a", where: "the whole disk at 0x7fffffe00" }],
    });
    expect(codes(inventory(torn))).toEqual(["holds-data"]);
    const marks = new Map([["/dev/a", id]]);
    const goesOn = plan(inventory(torn), { marks });
    expect(goesOn.findings).toEqual([]);
    expect(goesOn.steps[0]).toMatchObject({ id: "install:partition", layout: { diskGuid: guid(id) } });
    // A kernel that does without the MBR shows partitions, but udev no names.
    const nameless = partitioned("a", id, "x").partitions.map(({ path, number, sizeBytes }) => ({
      path,
      number,
      sizeBytes,
    }));
    expect(plan(inventory({ ...torn, partitions: nameless }), { marks }).findings).toEqual([]);
    // The mark alone is nothing: it may have been left under what somebody put on the disk since.
    const since = { ...torn, signatures: [...torn.signatures, ext4] };
    expect(codes(inventory(since), { marks })).toEqual(["holds-data"]);
    const [partition] = partitioned("a", id, "stranger").partitions;
    expect(codes(inventory({ ...torn, partitions: partition ? [partition] : [] }), { marks })).toEqual(["holds-data"]);
  });

  test("the disk of the system was one for data as well: it was wiped and installed, and the first boot found no disk", () => {
    const plain = { filesystem: "ext4", mountPoint: "/srv/x", wipe: true } as const;
    const two = inventory(disk("a", { links: ["/dev/disk/by-id/ata-a"] }), disk("b"));
    const wants = (device: DeviceRef, install: DeviceRef = { serial: "a" }): string[] =>
      plan(two, {
        document: {
          install: { disk: install, mirror: { serial: "b" }, wipe: true },
          disks: [{ name: "x", device, ...plain }],
        },
      }).findings.map(({ code, path, message }) => `${code} ${path}: ${message}`);
    expect(wants("/dev/disk/by-id/ata-a")).toEqual([
      `claimed-twice disks[0].device: disk ${describeDisk(disk("a"))} is claimed already by install.disk`,
    ]);
    expect(wants({ serial: "b", minSize: "1GB" })).toEqual([
      `claimed-twice disks[0].device: disk ${describeDisk(disk("b"))} is claimed already by install.mirror`,
    ]);
    // Two match now: once one is the system's, the other is meant. And a kernel name is dealt anew.
    expect(wants({ minSize: "1GB" })).toEqual([]);
    expect(wants("/dev/sda")).toEqual([]);
    expect(wants("/dev/md/data")).toEqual([]);
    expect(wants({ serial: "c" })).toEqual([]);
  });

  test("a blank disk is partitioned, filled, and made bootable last", () => {
    const { steps, findings } = plan(inventory(disk("a"), disk("b")));
    expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(steps.map((step) => step.id)).toEqual([
      "install:partition",
      "install:slot",
      "install:loader",
      "install:state",
      "install:document",
      "install:boot",
    ]);
    expect(steps[0]?.destroys).toEqual([disk("a").identity]);
    expect(steps.filter((step) => step.destroys !== undefined)).toHaveLength(1);
  });

  test("a disk that holds data is refused naming it and what was found; with wipe it is wiped first", () => {
    const used = inventory(disk("a", { signatures: [ext4] }));
    expect(plan(used).findings[0]?.message).toMatch(/\/dev\/a.*ext4/);
    expect(plan(used).steps).toEqual([]);
    expect(plan(used, { wipe: true }).steps[0]).toMatchObject({ id: "install:wipe", kind: "disk:wipe" });
  });

  test("B007: where no disk matches, each disk has a line of its own, with its reason", () => {
    const [finding] = plan(inventory(disk("b"), disk("c"))).findings;
    const lines = finding === undefined ? [] : formatFinding(finding).split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[0]).toStartWith("error: install.disk: no disk matches");
    expect(lines[1]).toMatch(/^ {2}\/dev\/b \(.*bytes: /);
    expect(lines[2]).toMatch(/^ {2}\/dev\/c \(.*bytes: /);
    expect(lines[3]).toStartWith("  hint: ");
  });

  test("B179: an installed Corium is never covered by wipe", () => {
    for (const wipe of [true, false]) {
      expect(codes(inventory(partitioned("a", id, "corium-state")), { wipe })).toEqual(["installed"]);
    }
  });

  test("--wipe-own covers an installed Corium, together with wipe, and nothing without the other", () => {
    const of = inventory(partitioned("a", id, "corium-state"));
    const agreed = { mayGiveUp: () => true };
    expect(codes(of, { ...agreed, wipe: false })).toEqual(["holds-data"]);
    expect(codes(of, { mayGiveUp: ({ path }) => path === "/dev/b", wipe: true })).toEqual(["installed"]);
    const { findings, steps } = plan(of, { ...agreed, wipe: true });
    expect(findings).toEqual([]);
    expect(steps.slice(0, 2).map((step) => step.id)).toEqual(["install:wipe", "install:partition"]);
    const [, table] = steps;
    expect(table?.kind === "install:partition" && table.layout.diskGuid).toBe("11111111-2222-4333-8444-555555555555");
  });

  test("the half-made disk of an installation that lost power is gone on with, under its own UUIDs, without consent", () => {
    const { steps, findings } = plan(inventory(partitioned("a", id, INSTALLING)));
    expect(findings).toEqual([]);
    const [first] = steps;
    expect(first?.kind === "install:partition" && first.layout.diskGuid).toBe("01234567-89ab-cdef-0123-456789abcdef");
    expect(steps.map((step) => step.kind)).not.toContain("disk:wipe");
  });

  test("a name alone makes no disk ours", () => {
    const forged = partitioned("a", id, INSTALLING);
    const partitions = forged.partitions.map((part) =>
      part.number === 8 ? { ...part, partUuid: "99999999-9999-4999-8999-999999999999" } : part,
    );
    expect(standingOf({ ...forged, partitions })).toBe("other");
    expect(codes(inventory({ ...forged, partitions }))).toEqual(["holds-data"]);
  });

  test("a disk in use is refused whatever wipe says, half-made or not", () => {
    const users = [{ kind: "mount" as const, name: "/srv", isBusy: true }];
    expect(codes(inventory(disk("a", { users })), { wipe: true })).toEqual(["in-use"]);
    expect(codes(inventory({ ...partitioned("a", id, INSTALLING), users }))).toEqual(["in-use"]);
  });

  test("B005: the medium that the system was started from is no candidate", () => {
    expect(codes(inventory(disk("a", { isBootMedium: true })), { wipe: true })).toEqual(["disk-not-found"]);
  });

  test("B008: a disk that is too small says needed and found bytes before anything is written", () => {
    const [finding] = plan(inventory(disk("a", { sizeBytes: 4300 * MIB }))).findings;
    expect(finding?.message).toContain(`${4300 * MIB} bytes`);
    expect(finding?.message).toContain(String(neededBytes(image.rootBytes, 512)));
  });

  test("B010: a retry in the same live system keeps the UUIDs that were decided, even before a table was written", () => {
    const first = plan(inventory(disk("a"))).steps[0];
    if (first?.kind !== "install:partition") throw new Error("no partition step");
    const intent = { stepId: first.id, step: first, disks: [disk("a").identity], openedAtMs: 1 };
    const again = plan(inventory(disk("a")), { intents: [intent], uuid: () => "99999999-9999-4999-8999-999999999999" });
    expect(again.steps[0]).toMatchObject({ layout: { diskGuid: first.layout.diskGuid } });
    const elsewhere = plan(inventory(disk("a"), disk("b")), {
      disk: "/dev/b",
      intents: [intent],
      uuid: () => "99999999-9999-4999-8999-999999999999",
    });
    expect(elsewhere.steps[0]).toMatchObject({ layout: { diskGuid: "99999999-9999-4999-8999-999999999999" } });
  });

  test("UUIDs follow from the installation alone and are all different", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[0-9a-f]{32}$/), (installation) => {
        const uuids = Object.values(partUuidsOf(installation));
        expect(new Set(uuids).size).toBe(8);
        for (const uuid of uuids) expect(uuid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
        expect(standingOf(partitioned("a", installation, INSTALLING))).toBe("half-made");
      }),
    );
  });
});

describe("install.mirror", () => {
  const pair = (first: Partial<Disk> = {}, second: Partial<Disk> = {}): Inventory =>
    inventory(disk("a", first), disk("b", second));
  const mirrored = (of: Inventory, wipe = false, more: Partial<InstallInput> = {}) =>
    plan(of, { document: { install: { disk: "/dev/a", mirror: "/dev/b", wipe } }, ...more });
  const refusals = (...of: Parameters<typeof mirrored>): string[] =>
    mirrored(...of).findings.map(({ code, path }) => `${code} ${path}`);
  const layouts = (...of: Parameters<typeof mirrored>): readonly Layout[] =>
    mirrored(...of).steps.flatMap((step) => (step.kind === "install:partition" ? [step.layout] : []));

  test("B034: both disks are partitioned alike, everything but firmware's partitions is an array, both get a boot loader", () => {
    const { steps, findings } = mirrored(pair());
    expect(findings).toEqual([]);
    expect(steps.map((step) => step.id)).toEqual([
      "install:partition",
      "install:partition:mirror",
      "install:arrays",
      "install:slot",
      "install:loader",
      "install:loader:mirror",
      "install:state",
      "install:document",
      "install:boot",
    ]);
    const arrays = steps.flatMap((step) => (step.kind === "install:arrays" ? step.arrays : []));
    expect(arrays.map(({ name }) => name)).toEqual([
      "corium-boot-a",
      "corium-boot-b",
      "corium-root-a",
      "corium-root-b",
      "corium-state",
      "corium-data",
    ]);
    const [first, second] = layouts(pair());
    const places = (layout?: Layout) => layout?.partitions.map(({ startBytes, sizeBytes }) => [startBytes, sizeBytes]);
    expect(places(first)).toEqual(places(second) ?? []);
    const uuids = [first, second].flatMap((each) => each?.partitions.map(({ partUuid }) => partUuid) ?? []);
    expect(new Set([...uuids, ...arrays.map(({ uuid }) => uuid)]).size).toBe(22);
    const written = JSON.stringify(
      steps.filter(({ kind }) => kind !== "install:partition" && kind !== "install:arrays"),
    );
    // Only the loader and the ESPs are written beside the arrays.
    expect(written.match(/by-partuuid/g)).toBeNull();
  });

  test("the smaller disk decides the layout, whichever of the two it is, and is named when it is too small", () => {
    const small = 20 * 1024 * MIB;
    const sizes = [{ sizeBytes: small }, {}] as const;
    for (const [first, second] of [sizes, sizes.toReversed()]) {
      for (const layout of layouts(pair(first, second))) {
        const data = partitionOf(layout, "data");
        expect(data.startBytes + data.sizeBytes).toBeLessThan(small);
        expect(data.startBytes + data.sizeBytes).toBeGreaterThan(small - 3 * MIB);
      }
    }
    const tiny = { sizeBytes: 4300 * MIB };
    expect(refusals(pair({}, tiny))).toEqual(["disk-too-small install.mirror"]);
    expect(refusals(pair(tiny, {}))).toEqual(["disk-too-small install.disk"]);
  });

  test("every refusal names the disk that it is about", () => {
    const holding = { signatures: [{ ...ext4, device: "/dev/b" }] };
    expect(refusals(pair({}, holding))).toEqual(["holds-data install.mirror"]);
    expect(mirrored(pair({}, holding), true).steps.map(({ id }) => id)).toContain("install:wipe:mirror");
    expect(mirrored(pair({}, holding), true).steps.map(({ id }) => id)).not.toContain("install:wipe");
    expect(refusals(inventory(disk("a")))).toEqual(["disk-not-found install.mirror"]);
    expect(refusals(inventory(disk("b")))).toEqual(["disk-not-found install.disk"]);
    expect(refusals(inventory())).toEqual(["disk-not-found install.disk", "disk-not-found install.mirror"]);
    const busy = { users: [{ kind: "mount" as const, name: "/srv", isBusy: true }] };
    expect(refusals(pair(busy), true)).toEqual(["in-use install.disk"]);
    expect(refusals(inventory(disk("a"), partitioned("b", id, "corium-state")), true)).toEqual([
      "installed install.mirror",
    ]);
  });

  test("disks with sectors of different sizes are refused, naming both sizes", () => {
    const [finding] = mirrored(pair({}, { logicalSectorBytes: 4096 })).findings;
    expect(finding).toMatchObject({ code: "sector-size", path: "install.mirror" });
    expect(finding?.message).toMatch(/\/dev\/b .*4096 bytes, \/dev\/a .*512 bytes/);
    expect(layouts(pair({ logicalSectorBytes: 4096 }, { logicalSectorBytes: 4096 }))).toHaveLength(2);
  });

  test("installed by a BIOS onto a disk with sectors of 4096 bytes: it never started", () => {
    const large = inventory(disk("a", { logicalSectorBytes: 4096 }));
    const [finding, ...more] = plan(large, { firmware: "bios" }).findings;
    expect([finding?.code, finding?.path, more]).toEqual(["not-bootable", "install.disk", []]);
    expect(finding?.hint).toContain("UEFI");
    expect([codes(large, { firmware: "uefi" }), codes(inventory(disk("a")), { firmware: "bios" })]).toEqual([[], []]);
  });

  test("one disk twice, under whatever name, is no mirror", () => {
    const twice = inventory(disk("a", { links: ["/dev/disk/by-id/a"] }));
    const install = { disk: "/dev/a", mirror: "/dev/disk/by-id/a", wipe: true };
    expect(codes(twice, { document: { install } })).toEqual(["claimed-twice"]);
  });

  test("the half-made pair is gone on with under its own UUIDs, whichever half power was lost in", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[0-9a-f]{32}$/), (installation) => {
        const name = guidOf(installation);
        const first = partitioned("a", installation, INSTALLING);
        const second = partitioned("b", twinOf(installation), INSTALLING);
        expect(twinOf(twinOf(installation))).toBe(installation);
        for (const found of [inventory(first, second), inventory(first, disk("b")), inventory(disk("a"), second)]) {
          expect(refusals(found)).toEqual([]);
          expect(layouts(found).map(({ diskGuid }) => diskGuid)).toEqual([name, guidOf(twinOf(installation))]);
        }
      }),
    );
  });

  test("as soon as either disk is complete the system boots, and is not installed again", () => {
    const done = partitioned("a", id, "corium-state");
    expect(refusals(inventory(done, partitioned("b", twinOf(id), INSTALLING)), true)).toEqual([
      "installed install.disk",
    ]);
  });

  test("without install.mirror not one step speaks of a second disk or an array", () => {
    expect(JSON.stringify(plan(pair()).steps)).not.toMatch(/mirror|md-uuid|\/dev\/md/);
  });
});

describe("the table", () => {
  const layout = (() => {
    const [first] = plan(inventory(disk("a"))).steps;
    if (first?.kind !== "install:partition") throw new Error("no partition step");
    return first.layout;
  })();
  const dump = (state: string, change = 0): string =>
    JSON.stringify({
      partitiontable: {
        label: "gpt",
        id: layout.diskGuid.toUpperCase(),
        sectorsize: 512,
        partitions: layout.partitions.map((part) => ({
          start: part.startBytes / 512 + change,
          size: part.sizeBytes / 512,
          type: part.typeGuid.toUpperCase(),
          uuid: part.partUuid.toUpperCase(),
          name: part.role === "state" ? state : part.name,
        })),
      },
    });

  test("is known again, finished or not, and no other is taken for it", () => {
    for (const name of ["corium-state", INSTALLING]) expect(isTable(dump(name), layout)).toBe(true);
    expect(isTable(dump("data"), layout)).toBe(false);
    expect(isTable(dump(INSTALLING, 1), layout)).toBe(false);
    for (const junk of ["", "{}", "[]", "null"]) expect(isTable(junk, layout)).toBe(false);
    expect(stateName(dump(INSTALLING))).toBe(INSTALLING);
  });

  test("is written with the state partition called half-made", () => {
    const script = installingScript(layout);
    expect(script).toContain(`uuid=${partitionOf(layout, "state").partUuid}, name="${INSTALLING}"`);
    expect(script).not.toContain("corium-state");
  });
});

test("of the command line only what configures the machine goes along", () => {
  const cmdline =
    "BOOT_IMAGE=/x boot=corium quiet ip=10.0.0.2::10.0.0.1:255.255.255.0::eth0:off console=tty0 console=ttyS1,115200 corium.config=https://x/ corium.ntp=10.0.0.1 hostname=n1 corium.luks-pcr7=acknowledged corium.mode=live";
  expect(carriedArguments(cmdline)).toBe(
    "ip=10.0.0.2::10.0.0.1:255.255.255.0::eth0:off console=tty0 console=ttyS1,115200 corium.ntp=10.0.0.1 hostname=n1 corium.luks-pcr7=acknowledged",
  );
});
