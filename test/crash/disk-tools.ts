/** util-linux, udev and mkfs on a block machine: what the steps of disks/ and their inventory call. */
import type { ExecResult } from "../../kit/ports.ts";
import type { FakeHost, FakeProgram } from "../support/fake-host.ts";
import type { BlockMachine, Device, Tools } from "./block-machine.ts";
import { flush, MD_OFFSET, memberOf, read, superOf, tableOn, write } from "./block-machine.ts";

export const failed = (stderr: string, exitCode = 1): Partial<ExecResult> => ({ exitCode, stderr: `${stderr}\n` });

/** The last words of most command lines. */
export const last = (argv: readonly string[]): string => argv.at(-1) ?? "";

/** A tool of one device, which it names last; it flushes at its end, unless power goes first. */
export const onDevice =
  (
    machine: BlockMachine,
    work: (device: Device, argv: readonly string[], fake: FakeHost) => string | Partial<ExecResult>,
  ): FakeProgram =>
  ({ argv }, fake) => {
    const path = last(argv).split(" ")[0] ?? "";
    const device = machine.find(path);
    if (device === undefined) return failed(`${argv[0]}: cannot open ${path}: No such file or directory`);
    const answer = work(device, argv, fake);
    return answer;
  };

/** Flushed by the tool itself, as its last act. */
export function settled(machine: BlockMachine, device: Device, fake: FakeHost): void {
  if (!fake.isTearing && !machine.isLazy) flush(device);
}

interface Found {
  readonly type: string;
  readonly offset: string;
  readonly uuid?: string;
  readonly label?: string;
}

function signaturesOf(device: Device): readonly Found[] {
  const [disk] = device.disks;
  const found: Found[] = [];
  if (device.type === "disk" && disk !== undefined) {
    if (disk.read("0:pmbr") === true) found.push({ type: "PMBR", offset: "0x1fe" });
    for (const [name, offset] of [
      ["0:table", "0x200"],
      ["end:table", "0x1ffffe00"],
    ] as const)
      if (typeof disk.read(name) === "object" && disk.read(name) !== null) found.push({ type: "gpt", offset });
  }
  const member = memberOf(device);
  if (member !== undefined) {
    const uuid = member.uuid.replaceAll(":", "");
    const dashed = uuid.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    found.push({ type: "linux_raid_member", offset: "0x1000", uuid: dashed, label: member.name });
  }
  const fs = superOf(device);
  if (fs !== undefined) found.push({ offset: "0x438", ...fs });
  return found;
}

/** What wipefs, mkfs and sfdisk take away. */
export function clearSignatures(device: Device): void {
  for (const what of ["super", ...(device.type === "disk" ? ["pmbr", "table"] : [])])
    if (read(device, what) !== undefined) write(device, what, { value: null });
  const [disk] = device.disks;
  if (memberOf(device) !== undefined) disk?.write(`${device.base + MD_OFFSET}:md`, { value: null });
  if (device.type === "disk" && disk?.read("end:table") !== undefined) disk?.write("end:table", { value: null });
}

function blkid(device: Device): string | Partial<ExecResult> {
  const [disk] = device.disks;
  const lines: string[] = [];
  const table = device.type === "disk" && disk?.read("0:pmbr") === true ? tableOn(disk) : undefined;
  const [content] = signaturesOf(device).filter(({ type }) => type !== "PMBR" && type !== "gpt");
  if (content !== undefined) {
    lines.push(...(content.uuid === undefined ? [] : [`UUID=${content.uuid}`]));
    lines.push(...(content.label === undefined ? [] : [`LABEL=${content.label}`]), `TYPE=${content.type}`);
  }
  if (table !== undefined) lines.push(`PTUUID=${table.guid}`, "PTTYPE=gpt");
  return lines.length === 0 ? { exitCode: 2 } : `${lines.join("\n")}\n`;
}

function lsblkNode(machine: BlockMachine, device: Device): unknown {
  const part = machine.partitionOf(device);
  const children = machine
    .devices()
    .filter(
      (each) =>
        (each.type === "part" && device.type === "disk" && each.disks[0] === device.disks[0]) ||
        (each.kernelName === machine.holderOf(device)?.kernelName && each.type === "raid1"),
    );
  return {
    path: device.path,
    kname: device.kernelName,
    type: device.type,
    size: device.sizeBytes,
    "log-sec": 512,
    "phy-sec": 512,
    serial: device.type === "disk" ? device.disks[0]?.serial : null,
    subsystems: "block:virtio:pci",
    mountpoints: machine.mounts.filter((mount) => mount.device.path === device.path).map(({ point }) => point),
    partn: device.type === "part" ? Number(/\d+$/.exec(device.kernelName)?.[0]) : null,
    partuuid: part?.uuid ?? null,
    partlabel: part?.name ?? null,
    ...(children.length === 0 ? {} : { children: children.map((child) => lsblkNode(machine, child)) }),
  };
}

export function diskTools(machine: BlockMachine): Tools {
  const mkfs = (type: string, read: (argv: readonly string[]) => { uuid?: string; label?: string }): FakeProgram =>
    onDevice(machine, (device, argv, fake) => {
      if (machine.isBusy(device)) return failed(`${device.path} is in use`);
      clearSignatures(device);
      machine.makeFilesystem(device, { type, ...read(argv) });
      settled(machine, device, fake);
      return "";
    });
  const after = (argv: readonly string[], option: string): string => argv[argv.indexOf(option) + 1] ?? "";
  const relabel = (labelOf: (argv: readonly string[]) => string): FakeProgram => {
    const run = (device: Device, label: string, fake: FakeHost): string | Partial<ExecResult> => {
      const found = superOf(device);
      if (found === undefined) return failed("Bad magic number in super-block");
      write(device, "super", { value: { ...found, label } });
      settled(machine, device, fake);
      return "";
    };
    return ({ argv }, fake) => {
      const device = argv.map((word) => machine.find(word)).find((each) => each !== undefined);
      return device === undefined ? failed("No such file or directory") : run(device, labelOf(argv), fake);
    };
  };
  return {
    udevadm: ({ argv }, fake) => {
      machine.publish(fake);
      if (argv[1] !== "info") return "";
      const device = machine.find(last(argv).replace("--name=", ""));
      const [disk] = device?.disks ?? [];
      if (disk === undefined) return failed("device not found");
      return `DEVLINKS=/dev/disk/by-id/virtio-${disk.serial}\nID_SERIAL_SHORT=${disk.serial}\n`;
    },
    lsblk: ({ argv }) => {
      // -ndo PKNAME: the disk that a partition is on.
      if (argv.includes("-ndo")) return `${machine.find(last(argv))?.kernelName.replace(/\d+$/, "") ?? ""}\n`;
      const tops = machine.devices().filter(({ type }) => type === "disk");
      return JSON.stringify({ blockdevices: tops.map((device) => lsblkNode(machine, device)) });
    },
    wipefs: onDevice(machine, (device, argv, fake) => {
      if (argv.includes("-J")) {
        const signatures = signaturesOf(device).map(({ offset, type, uuid, label }) => ({ offset, type, uuid, label }));
        return JSON.stringify({ signatures });
      }
      if (machine.isBusy(device))
        return failed(`wipefs: error: ${device.path}: probing failed: Device or resource busy`);
      clearSignatures(device);
      settled(machine, device, fake);
      for (const disk of device.type === "disk" ? device.disks : []) machine.readTable(disk);
      machine.publish(fake);
      return "";
    }),
    blkid: onDevice(machine, (device, argv) => {
      const offset = argv.indexOf("-O");
      return blkid(
        offset === -1 ? device : { ...device, type: "inside", base: device.base + Number(argv[offset + 1]) },
      );
    }),
    "mkfs.ext4": mkfs("ext4", (argv) => ({
      uuid: after(argv, "-U"),
      ...(argv.includes("-L") ? { label: after(argv, "-L") } : {}),
    })),
    "mkfs.xfs": mkfs("xfs", (argv) => ({ uuid: after(argv, "-m").replace("uuid=", "") })),
    "mkfs.vfat": mkfs("vfat", (argv) => ({ uuid: after(argv, "-i"), label: after(argv, "-n") })),
    tune2fs: relabel((argv) => after(argv, "-L")),
    xfs_admin: relabel((argv) => after(argv, "-L")),
    e2label: relabel(last),
    // fsync of a device node: its pages are on the disk since the tool that wrote them ended; this flushes the disk.
    sync: onDevice(machine, (device, _argv, fake) => {
      if (!fake.isTearing) flush(device);
      return "";
    }),
    findmnt: () =>
      JSON.stringify({
        filesystems: machine.mounts.map(({ device, point, type }) => ({
          target: point,
          source: device.path,
          fstype: type,
          uuid: superOf(device)?.uuid,
        })),
      }),
    chattr: () => "",
  };
}
