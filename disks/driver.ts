/** Reads what disks there are. Never writes: no probe opens a device for writing, no event is triggered. */
import type { AppError } from "../kit/app-error.ts";
import { appError, fail } from "../kit/app-error.ts";
import type { Inventory } from "../kit/disk.ts";
import type { BootFacts } from "../kit/paths.ts";
import type { ExecResult, Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";
import { parseDataStart, parseExamineExport } from "./examine.ts";
import type { MemberFacts, RawInventory } from "./inventory.ts";
import { buildInventory, contentNodes, flatten, physicalDisks } from "./inventory.ts";
import type { BlockNode, PartitionEntry, ProbedSignature } from "./model.ts";
import type { MountReport, MountedFilesystem } from "./mounts.ts";
import { parseFindmnt, reportMounts } from "./mounts.ts";
import { mergeSignatures, parseBlkid, parseLsblk, parsePartitionEntry, parseProperties, parseWipefs } from "./parse.ts";

/** They look at every disk as a matter of course, and let go of it when it is wanted. */
const bystanders = /^\(?(systemd-udevd?|udev-worker|sd-udev|multipathd|smartd|mdadm|blkid|lsblk|wipefs)/;

/** Devices looked at together: with all at once a box of three hundred disks has a thousand programs started for it. */
const LANES = 16;

const raidMember = /_raid_member$/;

export interface InventoryOptions {
  /** Tests work on loop devices. */
  readonly diskTypes?: readonly string[];
}

export async function readInventory(
  host: Host,
  boot: BootFacts,
  options: InventoryOptions = {},
): Promise<Result<Inventory, AppError>> {
  const diskTypes = options.diskTypes ?? ["disk"];
  // Disks that are still being discovered would be missing; without udev there is nothing to wait for.
  await host.exec({ argv: ["udevadm", "settle", "--timeout=30"], timeoutMs: 40_000 });
  const tree = await readTree(host);
  if (!tree.ok) return tree;

  // Before our own probes open each disk.
  const openers = await readOpeners(host);
  const unknown: string[] = [];
  const tops = physicalDisks({ tree: tree.value, diskTypes });
  const probed = tops.flatMap(({ top }) => contentNodes(top));
  const known = [...new Set([...tops.flatMap(({ top, paths }) => [top, ...paths]), ...probed])];
  const [probes, udev, holders, mappings, medium] = await Promise.all([
    mapNodes(probed, (node) => probe(host, node, unknown)),
    mapNodes(known, async ({ path }) => (await readUdev(host, path)) ?? new Map<string, string>()),
    readHolders(host, tree.value),
    readMappings(host, tree.value),
    mediumPaths(host, boot),
  ]);
  const signatures = new Map([...probes].map(([path, each]) => [path, each.signatures] as const));
  const arrays = await readMembers(host, probed, signatures, holders, unknown);
  return ok(
    buildInventory({
      tree: tree.value,
      signatures,
      entries: new Map([...probes].map(([path, each]) => [path, each.entry] as const)),
      udev,
      holders,
      mappings,
      openers,
      arrays,
      mediumPaths: medium,
      ...(boot.medium === undefined ? {} : { mediumMountPoint: boot.medium.mountPoint }),
      unknown: unknown.toSorted(),
      diskTypes,
    }),
  );
}

export async function readTree(host: Pick<Host, "exec">): Promise<Result<readonly BlockNode[], AppError>> {
  const result = await host.exec({ argv: ["lsblk", "--json", "-b", "-O"], timeoutMs: 60_000 });
  if (result.exitCode !== 0) return err(appError("lsblk", `lsblk failed: ${howItEnded(result)}`));
  return parseLsblk(result.stdout);
}

async function mapNodes<T>(
  nodes: readonly BlockNode[],
  read: (node: BlockNode) => Promise<T>,
): Promise<ReadonlyMap<string, T>> {
  const found = new Map<string, T>();
  const waiting = nodes.values();
  const lane = async (): Promise<void> => {
    for (const node of waiting) found.set(node.path, await read(node));
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return found;
}

interface Probed {
  readonly signatures: readonly ProbedSignature[];
  readonly entry: PartitionEntry;
}

async function probe(host: Host, node: BlockNode, unknown: string[]): Promise<Probed> {
  const probed = await probeNode(host, node.path);
  if (probed.ok) return probed.value;
  unknown.push(`${node.path}: ${probed.error.message}`);
  return { signatures: [], entry: {} };
}

export async function probeSignatures(host: Host, path: string): Promise<Result<readonly ProbedSignature[], AppError>> {
  const probed = await probeNode(host, path);
  return probed.ok ? ok(probed.value.signatures) : probed;
}

/** Every signature of one device node, by two tools, for each misses some. */
async function probeNode(host: Host, path: string): Promise<Result<Probed, AppError>> {
  const [wipefs, blkid] = await Promise.all([
    host.exec({ argv: ["wipefs", "-J", path], timeoutMs: 60_000 }),
    host.exec({ argv: ["blkid", "-p", "-o", "export", path], timeoutMs: 60_000 }),
  ]);
  if (wipefs.exitCode !== 0) return fail("wipefs", `wipefs failed: ${howItEnded(wipefs)}`);
  // 2: nothing found; 8: several things found, which wipefs has listed each.
  if (blkid.exitCode !== 0 && blkid.exitCode !== 2 && blkid.exitCode !== 8)
    return fail("blkid", `blkid failed: ${howItEnded(blkid)}`);
  const listed = parseWipefs(wipefs.stdout);
  if (!listed.ok) return listed;
  return ok({
    signatures: mergeSignatures(listed.value, parseBlkid(blkid.stdout)),
    entry: parsePartitionEntry(blkid.stdout),
  });
}

async function readUdev(host: Host, path: string): Promise<ReadonlyMap<string, string> | undefined> {
  const result = await host.exec({ argv: ["udevadm", "info", "--query=property", `--name=${path}`] });
  return result.exitCode === 0 ? parseProperties(result.stdout) : undefined;
}

/** sysfs names whoever claimed a device through the kernel, also what lsblk leaves out because its size is 0. */
async function readHolders(host: Host, tree: readonly BlockNode[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const holders = new Map<string, readonly string[]>();
  const waiting = [...flatten(tree).keys()];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (holders.has(name)) continue;
    const listed = await host.files.list(`/sys/class/block/${name}/holders`);
    if (!listed.ok) continue;
    holders.set(name, listed.value);
    waiting.push(...listed.value);
  }
  return holders;
}

async function readMappings(host: Host, tree: readonly BlockNode[]): Promise<RawInventory["mappings"]> {
  const mappings = new Map<string, { readonly name: string; readonly uuid: string }>();
  for (const name of flatten(tree).keys()) {
    if (!name.startsWith("dm-")) continue;
    const read = async (file: string): Promise<string> => {
      const text = await host.files.readText(`/sys/class/block/${name}/dm/${file}`);
      return text.ok ? text.value.trim() : "";
    };
    mappings.set(name, { name: (await read("name")) || name, uuid: await read("uuid") });
  }
  return mappings;
}

/** Programs with a block device open, from /proc: holders and mounts do not show a qemu or a ceph-osd on a raw disk. */
async function readOpeners(host: Host): Promise<ReadonlyMap<string, readonly string[]>> {
  const first = await lookForOpeners(host);
  if (first.size === 0) return first;
  // Somebody's probe is gone in a moment; who uses the disk is still there.
  await host.clock.sleep(500);
  const second = await lookForOpeners(host);
  return new Map(
    [...first]
      .map(([device, programs]) => [device, programs.filter((each) => second.get(device)?.includes(each))] as const)
      .filter(([, programs]) => programs.length > 0),
  );
}

async function lookForOpeners(host: Host): Promise<ReadonlyMap<string, readonly string[]>> {
  const openers = new Map<string, string[]>();
  const listed = await host.files.list("/proc");
  const pids = (listed.ok ? listed.value : []).filter((name) => /^\d+$/.test(name));
  await Promise.all(
    pids.map(async (pid) => {
      const fds = await host.files.list(`/proc/${pid}/fd`);
      if (!fds.ok || fds.value.length === 0) return;
      const targets = await Promise.all(fds.value.map((fd) => host.files.readlink(`/proc/${pid}/fd/${fd}`)));
      const devices = new Set(
        targets.flatMap((target) => (target.ok && target.value.startsWith("/dev/") ? [target.value] : [])),
      );
      if (devices.size === 0) return;
      const name = await host.files.readText(`/proc/${pid}/comm`);
      // It ended while we looked.
      if (!name.ok) return;
      const program = name.value.trim();
      if (bystanders.test(program)) return;
      for (const device of devices) openers.set(device, [...(openers.get(device) ?? []), `${program} (pid ${pid})`]);
    }),
  );
  return new Map([...openers].map(([device, programs]) => [device, programs.toSorted()]));
}

async function mediumPaths(host: Host, boot: BootFacts): Promise<readonly string[]> {
  if (boot.medium === undefined) return [];
  const real = await host.files.realpath(boot.medium.device);
  return [boot.medium.device, ...(real.ok ? [real.value] : [])];
}

async function readMembers(
  host: Host,
  nodes: readonly BlockNode[],
  signatures: ReadonlyMap<string, readonly ProbedSignature[]>,
  holders: ReadonlyMap<string, readonly string[]>,
  unknown: string[],
): Promise<readonly MemberFacts[]> {
  const members: MemberFacts[] = [];
  for (const node of nodes) {
    if (!(signatures.get(node.path) ?? []).some((each) => raidMember.test(each.type))) continue;
    const examined = await host.exec({ argv: ["mdadm", "--examine", "--export", node.path] });
    const superblock = examined.exitCode === 0 ? parseExamineExport(examined.stdout) : undefined;
    if (superblock === undefined) {
      // 1: mdadm knows no such superblock, e.g. a firmware RAID of another maker. Anything else is a failure to read,
      // and what was not read could be ours; firmware RAID never is, and mdadm dies of some that is broken.
      const isNative = (signatures.get(node.path) ?? []).some((each) => each.type === "linux_raid_member");
      if (isNative && examined.exitCode !== 1 && examined.exitCode !== 0)
        unknown.push(`${node.path}: mdadm failed: ${howItEnded(examined)}`);
      continue;
    }
    const holder = (holders.get(node.kernelName) ?? []).find((name) => name.startsWith("md"));
    const inside = await readInside(host, node.path, holder);
    members.push({ path: node.path, ...superblock, ...inside });
  }
  return members;
}

/** The filesystem inside an array: of the running one, else on the member that has its first byte. */
async function readInside(
  host: Host,
  path: string,
  holder: string | undefined,
): Promise<Pick<MemberFacts, "filesystemUuid" | "filesystemType" | "label">> {
  let argv = ["blkid", "-p", "-o", "export", `/dev/${holder}`];
  if (holder === undefined) {
    const examined = await host.exec({ argv: ["mdadm", "--examine", path] });
    const start = examined.exitCode === 0 ? parseDataStart(examined.stdout) : undefined;
    if (start === undefined) return {};
    argv = ["blkid", "-p", "-O", String(start), "-o", "export", path];
  }
  const result = await host.exec({ argv });
  const [found] = result.exitCode === 0 ? parseBlkid(result.stdout) : [];
  return {
    ...(found?.uuid === undefined ? {} : { filesystemUuid: found.uuid, filesystemType: found.type }),
    ...(found?.label === undefined ? {} : { label: found.label }),
  };
}

/** Whether the wanted mounts are there, and how full they are. */
export async function readMounts(host: Host, points: readonly string[]): Promise<readonly MountReport[]> {
  return reportMounts(points, await findMounts(host));
}

export async function findMounts(host: Host): Promise<readonly MountedFilesystem[]> {
  const argv = ["findmnt", "--json", "-b", "--list", "--real", "-o", "TARGET,SOURCE,FSTYPE,UUID,SIZE,AVAIL,OPTIONS"];
  const result = await host.exec({ argv, timeoutMs: 20_000 });
  return result.exitCode === 0 ? parseFindmnt(result.stdout) : [];
}

export function howItEnded(result: ExecResult): string {
  if (result.failure !== undefined) return `the program is ${result.failure}`;
  if (result.timedOut) return "it did not end in time";
  if (result.signal !== null) return `killed by ${result.signal}`;
  const last = result.stderr.trim().split("\n").at(-1) ?? "";
  return last === "" ? `exit status ${result.exitCode ?? "unknown"}` : last;
}
