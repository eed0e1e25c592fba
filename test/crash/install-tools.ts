/** sfdisk, dd, cp, mount and the like on a block machine: what an installation calls beside the tools of disks/. */
import type { ExecRequest, ExecResult } from "../../kit/ports.ts";
import type { FakeHost, FakeNode, FakeProgram } from "../support/fake-host.ts";
import type { BlockMachine, Device, Mount, Table, Tools } from "./block-machine.ts";
import { filesOf, flush, isWhole, read, superOf, tableOn, TORN, write } from "./block-machine.ts";
import type { VolatileDisk } from "./volatile-disk.ts";
import { clearSignatures, failed, last, onDevice, settled } from "./disk-tools.ts";

const SECTOR = 512;
const bytesOf = (text: string): Uint8Array => Buffer.from(text, "latin1");
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

/** A file below a mount point, as a path within that filesystem; the innermost mount counts. */
function within(machine: BlockMachine, path: string): { readonly mount: Mount; readonly inside: string } | undefined {
  for (const mount of machine.mounts) {
    const point = [mount.point, ...mount.aliases].find((each) => path.startsWith(`${each}/`));
    if (point !== undefined) return { mount, inside: path.slice(point.length) };
  }
  return undefined;
}

function writeFile(mount: Mount, inside: string, value: string | null, owner?: string): void {
  const run = superOf(mount.device)?.run;
  // What was written but not synced can be there as a file of size 0.
  write(mount.device, `file:${run}:${inside}`, { value, ...(value === null ? {} : { torn: "" }) }, owner);
}

/** The Files port syncs file and folder: all that had reached the disk is durable with it. */
export function onPortWrite(machine: BlockMachine, path: string, node: FakeNode | undefined): void {
  const found = within(machine, path);
  if (found === undefined) return;
  const { mount, inside } = found;
  const value = node === undefined ? null : textOf(node.content);
  // FAT keeps the size in the folder's entry, and rename writes a new one: the port's syncs make the name durable and
  // leave the size to the next write-back (fs/fat/namei_vfat.c, vfat_rename).
  if (mount.type === "vfat" && value !== null) {
    writeFile(mount, inside, "");
    flush(mount.device);
    writeFile(mount, inside, value, mount.point);
    return;
  }
  writeFile(mount, inside, value);
  flush(mount.device);
}

/** libfdisk's order (gpt_write_disklabel): entries, then header, the backup first; each is synced before the next. */
function writeTable(machine: BlockMachine, device: Device, table: Table, fake: FakeHost, isNew: boolean): void {
  const [disk] = device.disks;
  const stages = [
    ["end:table", TORN],
    ["end:table", table],
    ["0:table", TORN],
    ["0:table", table],
    ["0:pmbr", true],
  ] as const;
  for (const [name, value] of fake.isTearing ? stages.slice(0, machine.tearStage) : stages) {
    disk?.write(name, { value });
    // A new MBR takes the place of all that was in its sector.
    if (name === "0:pmbr" && isNew) disk?.write("0:raw", { value: null });
    disk?.flush();
  }
}

const warningOf = (disk: VolatileDisk): string =>
  typeof disk.read("0:table") === "object"
    ? ""
    : "The primary GPT table is corrupt, but the backup appears OK, so that will be used.\n";

function parseScript(script: string): Table {
  const lines = script.split("\n").filter((line) => line.startsWith("start="));
  const field = (line: string, name: string): string => new RegExp(`\\b${name}="?([^",]+)`).exec(line)?.[1] ?? "";
  return {
    guid: /label-id: (\S+)/.exec(script)?.[1] ?? "",
    partitions: lines.map((line, at) => ({
      number: at + 1,
      startBytes: Number(field(line, "start")) * SECTOR,
      sizeBytes: Number(field(line, "size")) * SECTOR,
      type: field(line, "type"),
      uuid: field(line, "uuid"),
      name: field(line, "name"),
    })),
  };
}

const sfdiskJson = ({ guid, partitions }: Table): string =>
  JSON.stringify({
    partitiontable: {
      label: "gpt",
      id: guid.toUpperCase(),
      sectorsize: SECTOR,
      partitions: partitions.map(({ startBytes, sizeBytes, type, uuid, name }) => ({
        start: startBytes / SECTOR,
        size: sizeBytes / SECTOR,
        type: type.toUpperCase(),
        uuid: uuid.toUpperCase(),
        name,
      })),
    },
  });

function sfdisk(machine: BlockMachine): FakeProgram {
  return ({ argv, stdinText }, fake) => {
    const device = argv.map((word) => machine.find(word)).find((each) => each !== undefined);
    const [disk] = device?.disks ?? [];
    if (device === undefined || disk === undefined) return failed("sfdisk: cannot open the disk");
    const found = disk.read("0:pmbr") === true ? tableOn(disk) : undefined;
    if (argv.includes("--json"))
      return found === undefined
        ? failed("sfdisk: does not contain a recognized partition table")
        : { stdout: sfdiskJson(found), stderr: warningOf(disk) };
    if (machine.isBusy(device)) return failed("sfdisk: This disk is currently in use");
    if (argv.includes("--part-label")) {
      if (found === undefined) return failed("sfdisk: no partition table");
      const [number, name = ""] = argv.slice(-2);
      const partitions = found.partitions.map((part) => (part.number === Number(number) ? { ...part, name } : part));
      writeTable(machine, device, { ...found, partitions }, fake, false);
    } else {
      const table = parseScript(stdinText);
      clearSignatures(device);
      for (const { startBytes } of table.partitions)
        if (disk.read(`${startBytes}:super`) !== undefined) disk.write(`${startBytes}:super`, { value: null });
      if (!fake.isTearing || machine.tearStage > 0) disk.flush();
      writeTable(machine, device, table, fake, true);
    }
    if (!fake.isTearing) machine.readTable(disk);
    machine.publish(fake);
    return "";
  };
}

/** Of a device, a file, or `-`. */
function contentOf(machine: BlockMachine, fake: FakeHost, request: ExecRequest, path: string): Uint8Array | undefined {
  if (path === "-") return request.stdin instanceof Uint8Array ? request.stdin : bytesOf(String(request.stdin ?? ""));
  const device = machine.find(path);
  if (device === undefined) return fake.node(path)?.content;
  const raw = read(device, "raw");
  return typeof raw === "string" ? bytesOf(raw) : undefined;
}

export function installTools(machine: BlockMachine): Tools {
  const option = (argv: readonly string[], name: string): string | undefined =>
    argv.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
  const copy = (fake: FakeHost, from: string, to: string): string | Partial<ExecResult> => {
    const node = fake.node(from);
    if (node === undefined) return failed(`cp: cannot stat '${from}': No such file or directory`);
    fake.put(to, node.content);
    const found = within(machine, to);
    if (found !== undefined) writeFile(found.mount, found.inside, textOf(node.content), found.mount.point);
    return "";
  };
  return {
    sfdisk: sfdisk(machine),
    dd: (request, fake) => {
      const { argv } = request;
      const to = option(argv, "of");
      if (to === undefined)
        return textOf(contentOf(machine, fake, request, option(argv, "if") ?? "-") ?? new Uint8Array());
      const file = within(machine, to);
      if (file !== undefined) {
        const value = textOf(contentOf(machine, fake, request, "-") ?? new Uint8Array());
        writeFile(file.mount, file.inside, value);
        fake.put(to, bytesOf(value));
        settled(machine, file.mount.device, fake);
        return "";
      }
      const device = machine.find(to);
      const content = contentOf(machine, fake, request, option(argv, "if") ?? "-");
      if (device === undefined || content === undefined) return failed("dd: failed to open");
      write(device, "raw", { value: textOf(content), torn: TORN });
      settled(machine, device, fake);
      return "";
    },
    cmp: (request, fake) => {
      const [a, b] = request.argv.slice(-2).map((path) => contentOf(machine, fake, request, path));
      if (a === undefined || b === undefined) return { exitCode: 2 };
      const bytes = Number(option(request.argv, "--bytes") ?? Number.POSITIVE_INFINITY);
      return { exitCode: textOf(a).slice(0, bytes) === textOf(b).slice(0, bytes) ? 0 : 1 };
    },
    // Writes pages to the disk; it does not tell the disk to flush (block/ioctl.c, blkdev_flushbuf).
    blockdev: onDevice(machine, () => ""),
    mkdir: () => "",
    cp: ({ argv }, fake) => {
      const [from = "", to = ""] = argv.slice(-2);
      if (!argv.includes("-T")) return copy(fake, from, to);
      const paths = fake.node(from)?.kind === "file" ? [from] : fake.paths(`${from}/`);
      for (const path of paths) copy(fake, path, to + path.slice(from.length));
      return "";
    },
    mount: ({ argv }, fake) => {
      const [path = "", point = ""] = argv.slice(-2);
      const type = argv[argv.indexOf("-t") + 1] ?? "";
      const device = machine.find(path);
      const found = device === undefined ? undefined : superOf(device);
      if (device === undefined || found?.type !== type || !isWhole(device))
        return failed(`mount: ${point}: wrong fs type, bad option, bad superblock on ${path}.`, 32);
      machine.mounts = [...machine.mounts, { device, point, type, aliases: [] }];
      for (const [inside, content] of filesOf(device, found)) fake.put(`${point}${inside}`, bytesOf(String(content)));
      return "";
    },
    umount: ({ argv }, fake) => {
      const mount = machine.mounts.find(({ point }) => point === last(argv));
      if (mount === undefined) return failed(`umount: ${last(argv)}: not mounted.`, 32);
      for (const disk of mount.device.disks) disk.writeBack(mount.point);
      // ext4_sync_fs ends with a flush; FAT has nothing like it.
      if (mount.type === "ext4" && !fake.isTearing) flush(mount.device);
      for (const point of [mount.point, ...mount.aliases]) for (const path of fake.paths(`${point}/`)) fake.drop(path);
      machine.mounts = machine.mounts.filter((each) => each !== mount);
      return "";
    },
  };
}

/** `sync -f FOLDER`: the filesystem that the folder is in. */
export const syncFilesystem =
  (machine: BlockMachine, ofDevice: FakeProgram): FakeProgram =>
  (request, fake) => {
    if (request.argv[1] !== "-f") return ofDevice(request, fake);
    const found = within(machine, `${last(request.argv)}/x`);
    if (found === undefined) return "";
    for (const disk of found.mount.device.disks) disk.writeBack(found.mount.point);
    if (!fake.isTearing) flush(found.mount.device);
    return "";
  };
