/**
 * The block layer of a machine in memory: disks with volatile caches, what the kernel made of them at boot, and the tools
 * of util-linux, e2fsprogs, dosfstools and mdadm as far as our drivers call them. Each tool ends as the real one does:
 * mkfs, wipefs, sfdisk and mdadm flush what they wrote (seen with strace), `cp` and `umount` do not.
 */
import type { FakeHost, FakeProgram } from "../support/fake-host.ts";
import type { Area, Remains, VolatileDisk } from "./volatile-disk.ts";

export interface Table {
  readonly guid: string;
  readonly partitions: readonly {
    readonly number: number;
    readonly startBytes: number;
    readonly sizeBytes: number;
    readonly type: string;
    readonly uuid: string;
    readonly name: string;
  }[];
}

/** The superblock of a filesystem; `run` ties it to all else that one run of mkfs wrote. */
export interface Super {
  readonly type: string;
  readonly run: number;
  readonly uuid?: string;
  readonly label?: string;
}

export interface Member {
  readonly uuid: string;
  readonly name: string;
  readonly level: string;
  readonly role: number;
  readonly devices: number;
}

/** A device node: one place on one disk, or the same place on each member of an array. */
export interface Device {
  readonly path: string;
  readonly kernelName: string;
  readonly type: string;
  readonly sizeBytes: number;
  readonly base: number;
  readonly disks: readonly VolatileDisk[];
}

export interface Mount {
  readonly device: Device;
  readonly point: string;
  readonly type: string;
  /** Further paths that lead to it. */
  readonly aliases: readonly string[];
}

export interface RunningArray {
  readonly kernelName: string;
  readonly uuid: string;
  readonly members: readonly Device[];
}

export const MD_OFFSET = 4096;
export const MD_DATA = 1024 * 1024;
export const TORN = "torn";

export class BlockMachine {
  readonly disks: readonly VolatileDisk[];
  /** What no machine may do, in words. */
  readonly violations: string[] = [];
  /** Tools flush nothing by themselves: whoever calls them must. md always does, it is the kernel. */
  isLazy = false;
  /** How many stages of a tool that syncs in between are done when power goes in the middle of it. */
  tearStage = 0;
  readsBackup = true;
  arrays: RunningArray[] = [];
  mounts: Mount[] = [];
  #order: readonly VolatileDisk[];
  /** As the kernel read them last. */
  #tables = new Map<VolatileDisk, Table>();
  #published: string[] = [];
  #runs = 0;

  constructor(disks: readonly VolatileDisk[]) {
    this.disks = disks;
    this.#order = disks;
    this.#readTables();
  }

  /** The state of all caches is lost, and the next boot finds the disks in another order. */
  powerCut(remains: () => Remains): void {
    for (const disk of this.disks) disk.powerCut(remains);
    this.arrays = [];
    this.mounts = [];
    this.#order = [...this.#order.slice(1), ...this.#order.slice(0, 1)];
    this.#readTables();
  }

  /** What is there and can be found, durable or not; what an earlier mkfs left in between is no part of it. */
  visible(): unknown {
    const areas = this.disks.map((disk) => {
      const names = disk.names().filter((name) => !/:(file|body)\b/.test(name));
      return [disk.serial, names.map((name) => [name, disk.read(name)])];
    });
    const filesystems = this.devices().flatMap((device) => {
      const found = superOf(device);
      if (found === undefined || this.holderOf(device) !== undefined) return [];
      return [[found.label ?? "", isWhole(device) ? "whole" : "damaged", filesOf(device, found)]];
    });
    return { areas, filesystems: filesystems.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)) };
  }

  contents(): unknown {
    const running = [this.arrays, this.mounts].map((all) =>
      all.map(({ ...each }) => ("point" in each ? each.point : each.uuid)),
    );
    return [running, this.disks.map((disk) => disk.contents())];
  }

  #readTables(): void {
    this.#tables = new Map();
    for (const disk of this.disks) this.readTable(disk);
  }

  /** As the kernel reads it; with `gpt` on its command line it needs no MBR, and takes the backup for a damaged primary. */
  readTable(disk: VolatileDisk): void {
    const primary = disk.read("0:pmbr") === true ? disk.read("0:table") : undefined;
    const table = this.readsBackup ? tableOn(disk) : isTable(primary) ? primary : undefined;
    if (table === undefined) this.#tables.delete(disk);
    else this.#tables.set(disk, table);
  }

  devices(): readonly Device[] {
    const all = this.#order.flatMap((disk, at) => {
      const kernelName = `sd${"abcdefgh"[at]}`;
      const whole = {
        path: `/dev/${kernelName}`,
        kernelName,
        type: "disk",
        sizeBytes: disk.sizeBytes,
        base: 0,
        disks: [disk],
      };
      const parts = (this.#tables.get(disk)?.partitions ?? []).map((part): Device => ({
        path: `/dev/${kernelName}${part.number}`,
        kernelName: `${kernelName}${part.number}`,
        type: "part",
        sizeBytes: part.sizeBytes,
        base: part.startBytes,
        disks: [disk],
      }));
      return [whole, ...parts];
    });
    const arrays = this.arrays.map((array): Device => ({
      path: `/dev/${array.kernelName}`,
      kernelName: array.kernelName,
      type: "raid1",
      sizeBytes: (array.members[0]?.sizeBytes ?? 0) - MD_DATA,
      base: MD_DATA,
      disks: array.members.flatMap(({ disks }) => disks),
    }));
    return [...all, ...arrays];
  }

  tableOf(device: Device): Table | undefined {
    const [disk] = device.disks;
    return device.type === "disk" && disk !== undefined ? this.#tables.get(disk) : undefined;
  }

  /** As udev knows it: it reads names from a whole table only. */
  partitionOf(device: Device): Table["partitions"][number] | undefined {
    const [disk] = device.disks;
    if (device.type !== "part" || disk?.read("0:pmbr") !== true) return undefined;
    return this.#tables.get(disk)?.partitions.find(({ startBytes }) => startBytes === device.base);
  }

  /** By any of its names; undefined when there is no such node. */
  find(path: string): Device | undefined {
    const partUuid = /^\/dev\/disk\/by-partuuid\/(.+)$/.exec(path)?.[1];
    const uuid = /^\/dev\/disk\/by-uuid\/(.+)$/.exec(path)?.[1];
    const array = /^\/dev\/disk\/by-id\/md-uuid-(.+)$/.exec(path)?.[1];
    return this.devices().find(
      (device) =>
        device.path === path ||
        (partUuid !== undefined && this.partitionOf(device)?.uuid === partUuid) ||
        (uuid !== undefined && superOf(device)?.uuid === uuid && !this.holderOf(device)) ||
        (array !== undefined &&
          this.arrays.some((each) => each.uuid === array && each.kernelName === device.kernelName)),
    );
  }

  holderOf(device: Device): RunningArray | undefined {
    return this.arrays.find(({ members }) => members.some(({ path }) => path === device.path));
  }

  isBusy(device: Device): boolean {
    const parts = this.devices().filter(
      (each) => each.type === "part" && device.type === "disk" && each.disks[0] === device.disks[0],
    );
    return [device, ...parts].some(
      (each) => this.holderOf(each) !== undefined || this.mounts.some((mount) => mount.device.path === each.path),
    );
  }

  /** mkfs: everything of before is gone, the superblock is one sector, what it describes is many. */
  makeFilesystem(device: Device, made: Omit<Super, "run">): void {
    const before = superOf(device);
    if (before !== undefined && filesOf(device, before).some(([path]) => path.startsWith("/precious")))
      this.violations.push(`${device.path}: made a filesystem over one that had data in it`);
    const run = (this.#runs += 1);
    write(device, "body", { value: run, torn: TORN });
    write(device, "super", { value: { ...made, run } satisfies Super });
  }

  /** What sysfs, devfs and procfs show now. */
  publish(fake: FakeHost): void {
    for (const path of this.#published) fake.drop(path);
    const shown: [string, string][] = this.devices().map(({ kernelName }) => [
      `/sys/class/block/${kernelName}/dev`,
      "8:0\n",
    ]);
    for (const device of this.devices()) {
      const held = this.holderOf(device)?.kernelName;
      if (held !== undefined) shown.push([`/sys/class/block/${device.kernelName}/holders/${held}`, ""]);
      shown.push([device.path, ""]);
      const part = this.partitionOf(device);
      if (part !== undefined) shown.push([`/dev/disk/by-partuuid/${part.uuid}`, ""]);
    }
    for (const array of this.arrays) {
      shown.push(
        [`/dev/disk/by-id/md-uuid-${array.uuid}`, ""],
        [`/sys/block/${array.kernelName}/md/array_state`, "clean\n"],
      );
    }
    const lines = this.arrays.map(({ kernelName, members }) => {
      const list = members.map((member, at) => `${member.kernelName}[${at}]`).join(" ");
      return `${kernelName} : active raid1 ${list}\n      1 blocks super 1.2 [2/${members.length}] [UU]\n      \n`;
    });
    shown.push(["/proc/mdstat", `Personalities : [raid1]\n${lines.join("")}unused devices: <none>\n`]);
    for (const [path, content] of shown) fake.put(path, content);
    this.#published = shown.map(([path]) => path);
  }
}

export type Tools = Readonly<Record<string, FakeProgram>>;

export const write = (device: Device, what: string, area: Area, owner?: string): void => {
  for (const disk of device.disks) disk.write(`${device.base}:${what}`, area, owner);
};
/** RAID 1 reads where it likes; a member that lags behind is caught up with the first when the array is started. */
export const read = (device: Device, what: string): unknown => device.disks[0]?.read(`${device.base}:${what}`);

export const flush = (device: Device): void => {
  for (const disk of device.disks) disk.flush();
};

export function superOf(device: Device): Super | undefined {
  const found = read(device, "super");
  return found === null ? undefined : (found as Super | undefined);
}

export const isWhole = (device: Device): boolean => {
  const found = superOf(device);
  return found !== undefined && read(device, "body") === found.run;
};

export const memberOf = (device: Device): Member | undefined =>
  (device.disks[0]?.read(`${device.base + MD_OFFSET}:md`) ?? undefined) as Member | undefined;

/** Files of the filesystem that is on it now. */
export function filesOf(device: Device, found: Super): readonly (readonly [string, unknown])[] {
  const prefix = `${device.base}:file:${found.run}:`;
  return (device.disks[0]?.names() ?? [])
    .filter((name) => name.startsWith(prefix))
    .map((name) => [name.slice(prefix.length), device.disks[0]?.read(name)] as const);
}

/** sfdisk and blkid take the backup where the primary is damaged. */
export function tableOn(disk: VolatileDisk): Table | undefined {
  const valid = ["0:table", "end:table"].map((name) => disk.read(name)).find((found) => isTable(found));
  return valid as Table | undefined;
}

const isTable = (found: unknown): found is Table => typeof found === "object" && found !== null;
