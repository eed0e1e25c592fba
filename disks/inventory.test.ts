import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import type { Inventory } from "../kit/disk.ts";
import type { ExecRequest } from "../kit/ports.ts";
import { fakeHost } from "../test/support/fake-host.ts";
import { readInventory } from "./driver.ts";
import { describeContent, holdsData } from "./describe.ts";
import { parseDataStart, parseExamineExport } from "./examine.ts";
import type { MemberFacts } from "./inventory.ts";
import { buildInventory, busOf, flatten } from "./inventory.ts";
import { clean, parseBlkid, parseLsblk, parseWipefs } from "./parse.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const sample = (name: string): string => readFileSync(join(import.meta.dir, "testdata", name)).toString("utf8");
const has = (name: string): boolean => {
  try {
    return readFileSync(join(import.meta.dir, "testdata", name)).length > 0;
  } catch {
    return false;
  }
};

/** Disk of the captured machine by its kernel name: the serial is `FD-` and this. */
const serials: Readonly<Record<string, string>> = Object.fromEntries(
  [...flatten(unwrap(parseLsblk(sample("lsblk-json-b-O-foreign-disks-idle.txt")))).values()].map((node) => [
    node.path,
    (node.serial ?? "").replace("FD-", ""),
  ]),
);

function unwrap<T>(result: { readonly ok: true; readonly value: T } | { readonly ok: false }): T {
  if (!result.ok) throw new Error("expected a value");
  return result.value;
}

/** The captured machine, answering as its tools did. */
async function captured(lsblk: string, boot = {}): Promise<{ inventory: Inventory; calls: readonly string[] }> {
  const answer = (prefix: string) => (request: ExecRequest) => {
    const path = request.argv.at(-1) ?? "";
    const part = /^\/dev\/sdj(\d)$/.exec(path)?.[1];
    const name = part === undefined ? `${prefix}-${serials[path]}.txt` : `${prefix}-gpt-part${part}.txt`;
    const text = has(name) ? sample(name) : "";
    const rc = /^rc=(\d+)$/m.exec(text)?.[1];
    return { stdout: text.replace(/^rc=\d+\n?/m, ""), exitCode: rc === undefined ? (has(name) ? 0 : 2) : Number(rc) };
  };
  const host = fakeHost({
    files: {
      "/sys/class/block/sda/holders/md127": "",
      "/sys/class/block/sdb/holders/md127": "",
      "/sys/class/block/sdg/holders/md9": "",
    },
    programs: {
      udevadm: (request) => (request.argv[1] === "settle" ? "" : answer("udevadm-info")(withName(request))),
      lsblk: () => sample(lsblk),
      wipefs: (request) => ({ ...answer("wipefs-J")(request), exitCode: 0 }),
      blkid: answer("blkid-p-export"),
      mdadm: (request) =>
        request.argv.includes("--export") ? answer("mdadm-examine-export")(request) : answer("mdadm-examine")(request),
    },
  });
  if (lsblk.includes("idle")) {
    for (const name of ["sda/holders/md127", "sdb/holders/md127", "sdg/holders/md9"])
      host.drop(`/sys/class/block/${name}`);
  }
  const read = await readInventory(host, { mode: "live", ...boot });
  return { inventory: unwrap(read), calls: host.calls };
}

const withName = (request: ExecRequest): ExecRequest => ({
  argv: [...request.argv.slice(0, -1), (request.argv.at(-1) ?? "").replace("--name=", "")],
});

describe("readInventory on eighteen foreign disks", () => {
  test("sees what is on each, whole disks and partitions", async () => {
    const { inventory } = await captured("lsblk-json-b-O-foreign-disks-idle.txt");
    const content = Object.fromEntries(
      inventory.disks.map((disk) => [disk.identity.serial ?? disk.path, describeContent(disk)]),
    );
    expect(content).toMatchObject({
      "FD-md12a": 'linux_raid_member "otherbox:foreign12" on the whole disk at 0x1000',
      "FD-md10a":
        'linux_raid_member "otherbox:foreign10" on the whole disk at 0x5ffe000, ext4 "f10" on the whole disk at 0x438',
      "FD-lvm1": "LVM2_member on the whole disk at 0x218",
      "FD-bcb": "bcache on the whole disk at 0x1018",
      "FD-swp": 'swsuspend "hib" on the whole disk at 0xff6',
      "FD-ddfa": "ddf_raid_member on the whole disk at 0x5fffe00",
      "FD-zer": "",
    });
    expect(content["FD-gpt"]).toStartWith("gpt on the whole disk at 0x200, gpt on the whole disk at 0x18fffe00, vfat");
    expect(content["FD-gpt"]).toContain("on partition 2");
    const probed = inventory.disks.filter((disk) => has(`wipefs-J-${disk.identity.serial?.replace("FD-", "")}.txt`));
    expect(probed.length).toBe(14);
    expect(probed.filter((disk) => !holdsData(disk)).map((disk) => disk.identity.serial)).toEqual(["FD-zer"]);
  });

  test("the disk that the live system mounted its root from is the medium", async () => {
    const medium = { medium: { device: "/dev/vda", mountPoint: "/run/ap/lower" } };
    const { inventory } = await captured("lsblk-json-b-O-foreign-disks-idle.txt", medium);
    expect(inventory.disks.filter((disk) => disk.isBootMedium).map((disk) => disk.path)).toEqual(["/dev/vda"]);
  });

  test("links and identity come from udev and lsblk together, without links of this boot only", async () => {
    const { inventory } = await captured("lsblk-json-b-O-foreign-disks-idle.txt");
    expect(inventory.disks.find((disk) => disk.path === "/dev/sda")).toMatchObject({
      links: ["/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_FD-md12a", "/dev/disk/by-path/pci-0000:00:04.0-scsi-0:0:0:0"],
      identity: { serial: "FD-md12a", model: "QEMU HARDDISK", sizeBytes: 100663296 },
      bus: "virtio",
    });
  });

  test("finds the arrays by their superblocks, none of them running", async () => {
    const { inventory } = await captured("lsblk-json-b-O-foreign-disks-idle.txt");
    expect(inventory.arrays.map(({ name, level, memberPaths }) => ({ name, level, memberPaths }))).toContainEqual({
      name: "foreign12",
      level: "raid1",
      memberPaths: ["/dev/sda", "/dev/sdb"],
    });
    expect(inventory.arrays.every((array) => array.path === undefined)).toBe(true);
  });

  test("runs nothing that could write, and no mdadm on a disk that shows no superblock", async () => {
    const { calls } = await captured("lsblk-json-b-O-foreign-disks-idle.txt");
    const programs = calls.filter((call) => call.startsWith("exec "));
    expect(programs.length).toBeGreaterThan(40);
    for (const call of programs)
      expect(call).toMatch(/^exec (udevadm settle|udevadm info|lsblk --json|wipefs -J \/dev|blkid -p|mdadm --examine)/);
    expect(programs.filter((call) => call.startsWith("exec mdadm") && call.endsWith("/dev/sdn"))).toEqual([]);
    expect(calls.filter((call) => /^files\.(write|remove|rename|mkdir|symlink|keep)/.test(call))).toEqual([]);
  });
});

describe("readInventory on a machine with a running array", () => {
  test("both members are held by it, idle; an inactive array that lsblk hides is seen in sysfs", async () => {
    const { inventory } = await captured("lsblk-json-b-O-one-array.txt");
    const users = Object.fromEntries(inventory.disks.map((disk) => [disk.path, disk.users]));
    expect(users["/dev/sda"]).toEqual([{ kind: "md", name: "md127", isBusy: false }]);
    expect(users["/dev/sdb"]).toEqual([{ kind: "md", name: "md127", isBusy: false }]);
    expect(users["/dev/sdg"]).toEqual([{ kind: "md", name: "md9", isBusy: false }]);
    expect(inventory.arrays.find((array) => array.name === "foreign12")?.path).toBe("/dev/md127");
  });
});

/** A machine made of lsblk nodes only; every probe finds nothing. */
async function machineOf(
  blockdevices: readonly object[],
  files: Record<string, string> = {},
  links: Record<string, string> = {},
) {
  const host = fakeHost({
    files,
    programs: { udevadm: "", lsblk: "", wipefs: "", blkid: "" } as never,
  });
  host.programs.set("udevadm", () => "");
  host.programs.set("lsblk", () => JSON.stringify({ blockdevices }));
  host.programs.set("wipefs", () => "");
  host.programs.set("blkid", () => ({ exitCode: 2 }));
  for (const [path, target] of Object.entries(links)) host.put(path, "", { kind: "symlink", target });
  return unwrap(await readInventory(host, { mode: "disk" }));
}

const block = (path: string, more: object = {}): object => ({
  path,
  kname: path.replace("/dev/", ""),
  type: "disk",
  size: 1000,
  "log-sec": 512,
  mountpoints: [null],
  ...more,
});

describe("readInventory", () => {
  test("a mount on LVM on an array on a partition makes the disk busy (B012)", async () => {
    const { disks } = await machineOf([
      block("/dev/sda", {
        children: [
          block("/dev/sda1", {
            type: "part",
            partn: 1,
            children: [
              block("/dev/md0", {
                type: "raid1",
                children: [{ ...block("/dev/mapper/vg0-root"), kname: "dm-0", type: "lvm", mountpoints: ["/mnt/x"] }],
              }),
            ],
          }),
        ],
      }),
    ]);
    expect(disks[0]?.users).toEqual([
      { kind: "md", name: "md0", isBusy: true },
      { kind: "dm", name: "dm-0", isBusy: true },
      { kind: "mount", name: "/mnt/x", isBusy: true },
    ]);
  });

  test("B023: two paths below a multipath mapping are one disk", async () => {
    const mapping = { ...block("/dev/mapper/mpatha"), kname: "dm-0", type: "mpath" };
    const path = (name: string): object => block(name, { wwn: "0x5000c5", children: [mapping] });
    const { disks } = await machineOf([path("/dev/sda"), path("/dev/sdb")], {
      "/sys/class/block/sda/holders/dm-0": "",
      "/sys/class/block/sdb/holders/dm-0": "",
      "/sys/class/block/dm-0/dm/uuid": "mpath-35000c5",
      "/sys/class/block/dm-0/dm/name": "mpatha",
    });
    expect(disks).toMatchObject([{ path: "/dev/mapper/mpatha", identity: { wwn: "0x5000c5" }, users: [] }]);
  });

  test("a program that has a raw disk open makes it busy; udev looking at it does not", async () => {
    const { disks } = await machineOf(
      [block("/dev/sda"), block("/dev/sdb")],
      { "/proc/12/comm": "qemu-system-x86\n", "/proc/13/comm": "(udev-worker)\n" },
      { "/proc/12/fd/5": "/dev/sda", "/proc/13/fd/5": "/dev/sdb" },
    );
    expect(disks.map((disk) => disk.users)).toEqual([
      [{ kind: "open", name: "qemu-system-x86 (pid 12)", isBusy: true }],
      [],
    ]);
  });

  test("swap, and the disk under the running system", async () => {
    const { disks } = await machineOf([
      block("/dev/sda", { mountpoints: ["[SWAP]"] }),
      block("/dev/sdb", { children: [block("/dev/sdb8", { type: "part", partn: 8, mountpoints: ["/var"] })] }),
    ]);
    expect(disks).toMatchObject([
      { users: [{ kind: "swap", name: "/dev/sda", isBusy: true }], isSystemDisk: false },
      { isSystemDisk: true },
    ]);
  });

  test("B024: what is no disk is not listed: rom, loop, an empty card reader, boot areas of a chip, zram", async () => {
    const { disks } = await machineOf([
      block("/dev/sr0", { type: "rom" }),
      block("/dev/loop0", { type: "loop" }),
      block("/dev/sdc", { size: 0 }),
      block("/dev/mmcblk0boot0"),
      block("/dev/zram0"),
      block("/dev/mmcblk0", { children: [block("/dev/mmcblk0p1", { type: "part" })] }),
    ]);
    expect(disks.map((disk) => disk.path)).toEqual(["/dev/mmcblk0"]);
    expect(disks[0]?.partitions).toEqual([{ path: "/dev/mmcblk0p1", number: 1, sizeBytes: 1000 }]);
  });

  test("a probe that crashes leaves the disk unknown, not blank", async () => {
    const host = fakeHost({
      programs: {
        udevadm: () => "",
        lsblk: () => JSON.stringify({ blockdevices: [block("/dev/sda")] }),
        wipefs: () => ({ exitCode: null, signal: "SIGSEGV" }),
        blkid: () => ({ exitCode: 2 }),
      },
    });
    const inventory = unwrap(await readInventory(host, { mode: "disk" }));
    expect(inventory.unknown).toEqual(["/dev/sda: wipefs failed: killed by SIGSEGV"]);
  });
});

describe("parsers", () => {
  test("invalid UTF-8 of a DDF member is neither a crash nor a blank disk", () => {
    expect(unwrap(parseWipefs(sample("wipefs-J-ddfa.txt")))).toMatchObject([{ type: "ddf_raid_member" }]);
    expect(unwrap(parseLsblk(sample("lsblk-json-b-O-foreign-disks-idle.txt"))).length).toBe(19);
  });

  test("B163: identity padded with NULs and blanks is trimmed", () => {
    expect(clean("ABC\0\0\0  ")).toBe("ABC");
    expect(clean(" \0")).toBeUndefined();
  });

  test("blkid's export form is unescaped", () => {
    expect(parseBlkid("TYPE=LVM2_member\nLABEL=my\\ disk\n")).toEqual([{ type: "LVM2_member", label: "my disk" }]);
  });

  test("superblocks of 0.90, 1.x and DDF, and none", () => {
    expect(parseExamineExport(sample("mdadm-examine-export-md12a.txt"))).toEqual({
      uuid: "557c5b94:881be2de:bc5f369b:49d8761f",
      name: "foreign12",
      level: "raid1",
      expectedMembers: 2,
    });
    expect(parseExamineExport(sample("mdadm-examine-export-md09a.txt"))).toMatchObject({ level: "raid1" });
    expect(parseExamineExport(sample("mdadm-examine-export-ddfa.txt"))).toMatchObject({ level: "container" });
    expect(parseExamineExport(sample("mdadm-examine-export-zer.txt"))).toBeUndefined();
  });

  test("the first byte of an array is on every mirror member, else on the member of role 0 only", () => {
    const mirror = sample("mdadm-examine-md12b.txt");
    expect(parseDataStart(mirror)).toBe(1024 * 1024);
    const stripe = mirror.replace("Raid Level : raid1", "Raid Level : raid0");
    expect(parseDataStart(stripe)).toBeUndefined();
    expect(parseDataStart(stripe.replace("Active device 1", "Active device 0"))).toBe(1024 * 1024);
    // On RAID 6 the member of role 0 begins with a checksum.
    const double = mirror.replace("Raid Level : raid1", "Raid Level : raid6");
    expect(parseDataStart(double)).toBe(1024 * 1024);
    expect(parseDataStart(double.replace("Active device 1", "Active device 0"))).toBeUndefined();
  });

  test("any text at all gives a value or an error", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        parseLsblk(text);
        parseWipefs(text);
        parseBlkid(text);
        parseExamineExport(text);
      }),
    );
  });

  test("the bus is the transport, or what the subsystems say where lsblk has none", () => {
    const [node] = unwrap(parseLsblk(JSON.stringify({ blockdevices: [block("/dev/sda", { tran: "sata" })] })));
    if (node === undefined) throw new Error("no node");
    expect(busOf(node)).toBe("sata");
    const { transport: _, ...silent } = node;
    expect(busOf({ ...silent, subsystems: ["block", "scsi", "usb", "pci"] })).toBe("usb");
    expect(busOf({ ...silent, subsystems: ["block"] })).toBe("other");
  });
});

test("the half of a mirrored system that was away is a disk of the running system, though nothing is mounted from it", () => {
  const tree = ["vda", "vdb", "vdc"].map((name) => ({
    name,
    path: `/dev/${name}`,
    type: "disk",
    size: 1000,
    children: [
      {
        name: `${name}8`,
        path: `/dev/${name}8`,
        type: "part",
        size: 900,
        partn: 8,
        ...(name === "vda"
          ? { children: [{ name: "md127", path: "/dev/md127", type: "raid1", size: 900, mountpoints: ["/var"] }] }
          : {}),
      },
    ],
  }));
  const member = (path: string, uuid: string): MemberFacts => ({ path, uuid });
  const { disks } = buildInventory({
    tree: unwrap(parseLsblk(JSON.stringify({ blockdevices: tree }))),
    signatures: new Map(),
    entries: new Map(),
    udev: new Map(),
    holders: new Map(),
    mappings: new Map(),
    openers: new Map(),
    arrays: [member("/dev/vda8", "1:1:1:1"), member("/dev/vdb8", "1:1:1:1"), member("/dev/vdc8", "2:2:2:2")],
    mediumPaths: [],
    unknown: [],
    diskTypes: ["disk"],
  });
  expect(disks.map(({ path, isSystemDisk }) => [path, isSystemDisk])).toEqual([
    ["/dev/vda", true],
    ["/dev/vdb", true],
    ["/dev/vdc", false],
  ]);
});
