/** Failures of installers elsewhere, on the recorded machines. */
import { describe, expect, test } from "bun:test";
import { parseFindmnt } from "../../disks/mounts.ts";
import { judgeDisk, resolveDevice } from "../../disks/select.ts";
import { diskExecutors } from "../../disks/steps/driver.ts";
import type { Disk } from "../../kit/disk.ts";
import type { StepContext } from "../../kit/step.ts";
import { lintInstalled } from "../../provision/installed-lint.ts";
import { standingOf } from "../../provision/install/standing.ts";
import { planStorage } from "../../provision/storage.ts";
import { claim, install } from "./judged.ts";
import { countedUuids, machine, mirror, recordedMachine, storageDocument } from "./machines.ts";
import { replayHost } from "./recorded.ts";

const at = (name: string, path: string): Disk => {
  const disk = machine(name).disks.find((each) => each.path === path);
  if (disk === undefined) throw new Error(`${name} has no ${path}`);
  return disk;
};
const codes = (plan: { readonly findings: readonly { readonly code: string }[] }): readonly string[] =>
  plan.findings.map(({ code }) => code);

describe("the disk that is meant", () => {
  test("B003: the system runs from another disk than the document selects: both are named, nothing is moved", () => {
    const name = "imaged-on-the-wrong-disk";
    const lint = (disk: Parameters<typeof resolveDevice>[0]) =>
      lintInstalled({ install: { disk, wipe: false }, raid: [] }, machine(name)).map(
        ({ code, message }) => `${code}: ${message}`,
      );
    expect(lint({ minSize: "20GB" })).toEqual([
      "installed-elsewhere: install.disk is {minSize: 20GB}, but this node runs from /dev/sda (QEMU HARDDISK, serial SMALL, 15.8 GiB)",
    ]);
    expect(lint({ maxSize: "20GB" })).toEqual([]);
    expect(lint("/dev/disk/by-id/ata-QEMU_HARDDISK_SMALL")).toEqual([]);
    // After a reboot the kernel may call it otherwise.
    expect(lint("/dev/sdb")).toEqual([]);
    expect(codes(claim(machine(name), "/dev/sda", true))).toContain("disk-not-found");
  });

  test("install.mirror was added after the system stood on one disk: nobody said that nothing is mirrored", () => {
    const alone = machine("imaged-on-the-wrong-disk");
    const lint = (inventory: typeof alone) =>
      lintInstalled(
        { install: { disk: { maxSize: "20GB" }, mirror: { serial: "LARGE" }, wipe: false }, raid: [] },
        inventory,
      ).map(({ severity, path, message }) => `${severity} ${path}: ${message}`);
    expect(lint(alone)).toEqual([
      "warning install.mirror: install.mirror is {serial: LARGE}, but this node's system is on /dev/sda (QEMU HARDDISK, serial SMALL, 15.8 GiB) alone",
    ]);
    // With the other half away it is a mirror all the same.
    const member = { type: "linux_raid_member", device: "/dev/sda5", where: "partition 5" };
    const disks = alone.disks.map((disk) => (disk.isSystemDisk ? { ...disk, signatures: [member] } : disk));
    expect(lint({ ...alone, disks })).toEqual([]);
  });

  test("a document without install.mirror gave a second array the name of the mirrored system's own", () => {
    const alone = machine("imaged-on-the-wrong-disk");
    const member = { type: "linux_raid_member", device: "/dev/sda5", where: "partition 5" };
    const disks = alone.disks.map((disk) => (disk.isSystemDisk ? { ...disk, signatures: [member] } : disk));
    const raid = ["data", "system", "corium-data"].map((name) => mirror({ name }));
    const lint = (inventory: typeof alone) =>
      lintInstalled({ raid }, inventory).map(({ severity, code, path }) => `${severity} ${code} ${path}`);
    expect(lint({ ...alone, disks })).toEqual(["error system-array raid[1].name", "error system-array raid[2].name"]);
    expect(lint(alone)).toEqual([]);
  });

  test("B009: kernel names are dealt anew at each boot, so what is recorded holds none", () => {
    for (const name of ["blank-pair", "serial-known-to-udev-only", "two-namespaces-of-one-nvme"]) {
      const inventory = machine(name);
      const devices = inventory.disks.filter((disk) => !disk.isSystemDisk).map((disk) => disk.path);
      const document = storageDocument({ raid: [mirror({ devices: devices.slice(0, 2) })] });
      const plan = planStorage({ document, inventory, owned: [], intents: [], uuid: countedUuids() });
      expect([name, plan.owned.length]).toEqual([name, 1]);
      for (const path of inventory.disks.map((disk) => disk.path)) {
        expect(JSON.stringify(plan.owned)).not.toContain(`"${path}"`);
        for (const step of plan.steps) expect(JSON.stringify(step.destroys ?? [])).not.toContain(`"${path}"`);
      }
    }
  });

  test("B026: one document for a mixed fleet finds the small disk, whatever its bus, and never the one with data", () => {
    const small = { maxSize: "10GiB" };
    expect(resolveDevice(small, machine("small-sata-large-nvme"))).toMatchObject({ value: { path: "/dev/sda" } });
    expect(resolveDevice(small, machine("large-sata-small-nvme"))).toMatchObject({ value: { path: "/dev/nvme0n1" } });
    for (const name of ["small-sata-large-nvme", "large-sata-small-nvme"]) {
      expect(install(machine(name), small, false).steps.length).toBeGreaterThan(0);
      // The largest is the one that is full.
      expect(codes(install(machine(name), { minSize: "20GiB" }, false))).toEqual(["holds-data"]);
    }
  });

  test("B028: a layout prepared by hand is data like any other, and no other disk is taken in its place", () => {
    const inventory = machine("prepared-layout");
    expect(install(inventory, { serial: "SECOND" }, false)).toMatchObject({
      steps: [],
      findings: [{ code: "holds-data", path: "install.disk" }],
    });
    const { steps } = install(inventory, { serial: "SECOND" }, true);
    expect(steps.flatMap((step) => step.destroys ?? []).map(({ serial }) => serial)).toEqual(["SECOND", "SECOND"]);
  });

  test("B162, B163: a serial that only udev shows, one padded with NULs or blanks", () => {
    expect(resolveDevice({ serial: "20070A800001" }, machine("serial-known-to-udev-only"))).toMatchObject({
      value: { path: "/dev/nvme0n1" },
    });
    expect(resolveDevice({ serial: "ABC" }, machine("padded-identity"))).toMatchObject({
      value: { path: "/dev/nvme0n1" },
    });
    expect(resolveDevice({ serial: "00A1B2C3" }, machine("padded-identity"))).toMatchObject({
      value: { path: "/dev/sda" },
    });
  });

  test("a disk of which nothing is known was planned for, and its identity failed only when it was to be written", () => {
    const inventory = machine("no-links-by-id");
    for (const plan of [claim, install]) expect(plan(inventory, "/dev/vdc", true).steps).toEqual([]);
    expect(judgeDisk(at("no-links-by-id", "/dev/vdc"), inventory)).toEqual({
      usable: false,
      reason: "shows neither wwn nor serial nor its place: nothing tells it from another disk",
    });
    expect(claim(inventory, "/dev/vda", false).steps.length).toBeGreaterThan(0);
  });

  test("B023: two paths to one LUN that nobody bundles are one disk, and neither path is taken", () => {
    const inventory = machine("two-paths-not-bundled");
    for (const ref of ["/dev/sda", "/dev/sdb", { wwn: "0x60014055a1b2c3d4" }, { type: "hdd" as const }])
      expect(resolveDevice(ref, inventory).ok).toBe(false);
    const document = storageDocument({ raid: [mirror({ devices: ["/dev/sda", "/dev/sdb"], wipe: true })] });
    const plan = planStorage({ document, inventory, owned: [], intents: [], uuid: countedUuids() });
    expect(plan.steps).toEqual([]);
    expect(machine("multipath").disks.map((disk) => disk.path)).toEqual(["/dev/mapper/mpatha", "/dev/sdc"]);
  });

  test("two namespaces of one controller share its serial: told apart by WWN, not by serial", () => {
    const inventory = machine("two-namespaces-of-one-nvme");
    expect(resolveDevice({ serial: "S64GNE0R500001" }, inventory).ok).toBe(false);
    const wwn = "eui.36344730525000010025384500000002";
    expect(resolveDevice({ wwn }, inventory)).toMatchObject({ value: { path: "/dev/nvme0n2" } });
  });
});

describe("what is on it", () => {
  test("an installed Corium was installed over while udev had not looked at its partitions yet", () => {
    const recorded = recordedMachine("another-installation");
    expect(JSON.stringify(recorded.lsblk)).not.toContain("partlabel");
    expect(standingOf(at("another-installation", "/dev/sda"))).toBe("installed");
    expect(codes(install(machine("another-installation"), "/dev/sda", true))).toEqual(["installed"]);
    expect(standingOf(at("half-made-installation", "/dev/sda"))).toBe("half-made");
  });

  test("an installed Corium of another node was wiped as a data disk", () => {
    expect(codes(claim(machine("another-installation"), "/dev/sda", true))).toContain("own-data");
  });

  test("a disk that can't be read was shown as blank and usable", () => {
    const inventory = machine("disk-that-can-not-be-read");
    for (const disk of inventory.disks) {
      const judged = judgeDisk(disk, inventory);
      expect(judged.usable).toBe(false);
      expect(judged.reason).toStartWith(`can't be judged: ${disk.path}`);
    }
  });

  test("B017: partitions go by the name that the kernel gives them, on mmcblk0p1 as on sda1", async () => {
    for (const [name, path, parts] of [
      ["emmc-with-boot-areas", "/dev/mmcblk0", ["/dev/mmcblk0p2", "/dev/mmcblk0p1"]],
      ["small-sata-large-nvme", "/dev/nvme0n1", ["/dev/nvme0n1p1"]],
      ["windows", "/dev/sda", ["/dev/sda2", "/dev/sda1"]],
    ] as const) {
      const host = replayHost(recordedMachine(name));
      const device = { path, identity: at(name, path).identity };
      const step = { kind: "disk:wipe", id: "x", title: "x", device, destroys: [] } as const;
      const context: StepContext = { host, secrets: new Map(), report: () => {} };
      expect(await diskExecutors["disk:wipe"].run(step, context)).toMatchObject({ ok: true });
      const wiped = host.calls.filter((call) => call.startsWith("exec wipefs --lock"));
      expect(wiped.map((call) => call.split(" ").at(-1) ?? "")).toEqual([...parts, path]);
    }
  });

  test("B160: mounts are read from JSON: blanks in names, very long devices, an overlay as the root", () => {
    const long = `/dev/mapper/${"vg--with--a--very--long--name-".repeat(8)}lv`;
    const filesystems = [
      { target: "/", source: "overlay", fstype: "overlay", size: 1, avail: 1, options: "rw" },
      { target: "/srv/my films", source: long, fstype: "ext4", size: "2000", avail: 1000, options: "rw,relatime" },
    ];
    expect(parseFindmnt(JSON.stringify({ filesystems }))).toMatchObject([
      { point: "/", source: "overlay" },
      { point: "/srv/my films", source: long, sizeBytes: 2000, availableBytes: 1000 },
    ]);
    expect(parseFindmnt("Filesystem 1K-blocks Used\n/dev/sda1 1 2\n")).toEqual([]);
  });
});
