/** Everything that was read → the inventory. Pure: tests feed it captured output of real machines. */
import type { Bus, Disk, DiskIdentity, DiskUser, Inventory, MdArray, Partition, Signature } from "../kit/disk.ts";
import type { BlockNode, PartitionEntry, ProbedSignature } from "./model.ts";
import { clean } from "./parse.ts";

export interface RawInventory {
  readonly tree: readonly BlockNode[];
  /** By device path: of disks and partitions. */
  readonly signatures: ReadonlyMap<string, readonly ProbedSignature[]>;
  /** By device path: what the table calls the partition, where lsblk does not know it: udev may not have looked yet. */
  readonly entries: ReadonlyMap<string, PartitionEntry>;
  /** By device path: udev's properties. */
  readonly udev: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** By kernel name, from /sys/class/block/NAME/holders: shows inactive arrays too, which lsblk leaves out. */
  readonly holders: ReadonlyMap<string, readonly string[]>;
  /** By kernel name: the name and UUID of a mapping. */
  readonly mappings: ReadonlyMap<string, { readonly name: string; readonly uuid: string }>;
  /** By device path: programs that have it open. */
  readonly openers: ReadonlyMap<string, readonly string[]>;
  readonly arrays: readonly MemberFacts[];
  /** Device paths that the boot medium is, as far as known. */
  readonly mediumPaths: readonly string[];
  readonly mediumMountPoint?: string;
  readonly unknown: readonly string[];
  /** Which types of lsblk count as disks; loop devices do in tests only. */
  readonly diskTypes: readonly string[];
}

/** What `mdadm --examine` says of one member, and what stands inside the array if that could be seen. */
export interface MemberFacts {
  readonly path: string;
  readonly uuid: string;
  readonly name?: string;
  readonly level?: string;
  readonly expectedMembers?: number;
  readonly filesystemUuid?: string;
  readonly filesystemType?: string;
  readonly label?: string;
}

/** One physical disk: the node to use, and the paths of it when multipath bundles several. */
interface Physical {
  readonly top: BlockNode;
  readonly paths: readonly BlockNode[];
}

const systemPoints = ["/", "/usr", "/boot", "/efi", "/etc", "/var", "/var/lib/corium"];

export function buildInventory(raw: RawInventory): Inventory {
  const nodes = flatten(raw.tree);
  const arrays = toArrays(raw);
  const disks = withHalves(
    physicalDisks(raw).map((physical) => toDisk(physical, raw, nodes)),
    arrays,
  );
  return {
    disks: disks.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    arrays,
    unknown: raw.unknown,
  };
}

export const flatten = (tree: readonly BlockNode[]): ReadonlyMap<string, BlockNode> => {
  const nodes = new Map<string, BlockNode>();
  const visit = (node: BlockNode): void => {
    nodes.set(node.kernelName, node);
    node.children.forEach(visit);
  };
  tree.forEach(visit);
  return nodes;
};

/** `mmcblk0boot0` and `rpmb` are areas of the chip with their own write protection, not disks. */
export const isDiskNode = (node: BlockNode, types: readonly string[]): boolean =>
  types.includes(node.type) &&
  node.sizeBytes > 0 &&
  !/^mmcblk\d+(boot\d+|rpmb|gp\d+)$/.test(node.kernelName) &&
  !/^(zram|ram|fd)\d+$/.test(node.kernelName);

/** Two paths of one disk below a multipath mapping are that one disk, and the mapping is the way to it. */
export function physicalDisks(raw: Pick<RawInventory, "tree" | "diskTypes">): readonly Physical[] {
  const plain: Physical[] = [];
  const bundles = new Map<string, { readonly top: BlockNode; readonly paths: BlockNode[] }>();
  for (const node of raw.tree.filter((each) => isDiskNode(each, raw.diskTypes))) {
    const mapping = node.children.find((child) => child.type === "mpath");
    if (mapping === undefined) {
      plain.push({ top: node, paths: [node] });
      continue;
    }
    const bundle = bundles.get(mapping.kernelName) ?? { top: mapping, paths: [] };
    bundle.paths.push(node);
    bundles.set(mapping.kernelName, bundle);
  }
  return [...plain, ...bundles.values()];
}

/** The device nodes whose content is the disk's: itself and its partitions. */
export const contentNodes = (top: BlockNode): readonly BlockNode[] => [
  top,
  ...top.children.filter((child) => child.type === "part"),
];

function toDisk({ top, paths }: Physical, raw: RawInventory, nodes: ReadonlyMap<string, BlockNode>): Disk {
  const [first = top] = paths.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const content = contentNodes(top);
  const links = [top, ...paths].flatMap((node) => linksOf(node, raw));
  const partitions = content.slice(1).map((node, at) => toPartition(node, at, raw.entries.get(node.path)));
  const users = content.flatMap((node) => usersOf(node, raw, nodes));
  const everywhere = [...content, ...paths].map((node) => node.path);
  const isBootMedium =
    everywhere.some((path) => raw.mediumPaths.includes(path)) ||
    (raw.mediumMountPoint !== undefined && users.some((user) => user.name === raw.mediumMountPoint));
  return {
    path: top.path,
    links: [...new Set(links)].toSorted(),
    identity: identityOf(first, raw),
    sizeBytes: first.sizeBytes,
    logicalSectorBytes: first.logicalSectorBytes,
    physicalSectorBytes: first.physicalSectorBytes,
    bus: busOf(first),
    type: busOf(first) === "nvme" ? "nvme" : first.isRotational ? "hdd" : "ssd",
    isRemovable: first.isRemovable || busOf(first) === "usb",
    isReadOnly: first.isReadOnly,
    partitions,
    signatures: content.flatMap((node) => signaturesOf(node, top, raw)),
    users: unique(users),
    isBootMedium,
    isSystemDisk: !isBootMedium && isSystem(users, partitions),
  };
}

/** Root, state or /var stand on it; or it has our partitions and one of them is in use, wherever it is mounted. */
function isSystem(users: readonly DiskUser[], partitions: readonly Partition[]): boolean {
  const mounts = users.filter((user) => user.kind === "mount").map((user) => user.name);
  if (mounts.some((point) => systemPoints.includes(point) || point.startsWith("/boot/"))) return true;
  return users.length > 0 && partitions.some((part) => /^corium-(root|state)/.test(part.label ?? ""));
}

/** Older lsblk has no PARTN: the number is what the kernel's name ends with. */
const numberOf = (node: BlockNode, at: number): number =>
  node.partitionNumber ?? Number(/(\d+)$/.exec(node.kernelName)?.[1] ?? at + 1);

function toPartition(node: BlockNode, at: number, entry: PartitionEntry = {}): Partition {
  const { partUuid = entry.partUuid, partLabel = entry.partLabel } = node;
  return {
    path: node.path,
    number: numberOf(node, at),
    sizeBytes: node.sizeBytes,
    ...(partUuid === undefined ? {} : { partUuid }),
    ...(partLabel === undefined ? {} : { label: partLabel }),
  };
}

/** The half of a mirrored system that was away has no mount above it, and still is no disk for anything else. */
function withHalves(disks: readonly Disk[], arrays: readonly MdArray[]): readonly Disk[] {
  const hasMember = (disk: Disk, array: MdArray): boolean =>
    disk.partitions.some(({ path }) => array.memberPaths.includes(path));
  const system = disks.filter(({ isSystemDisk }) => isSystemDisk);
  const shared = arrays.filter((array) => system.some((disk) => hasMember(disk, array)));
  return disks.map((disk) =>
    !disk.isSystemDisk && shared.some((array) => hasMember(disk, array)) ? { ...disk, isSystemDisk: true } : disk,
  );
}

function signaturesOf(node: BlockNode, top: BlockNode, raw: RawInventory): Signature[] {
  const place = node === top ? "the whole disk" : `partition ${numberOf(node, 0)}`;
  return (raw.signatures.get(node.path) ?? []).map(({ type, offsetBytes, uuid, label }) => ({
    type,
    device: node.path,
    where: offsetBytes === undefined ? place : `${place} at 0x${offsetBytes.toString(16)}`,
    ...(uuid === undefined ? {} : { uuid }),
    ...(label === undefined ? {} : { label }),
  }));
}

/** Who uses the node, anywhere above it. An array or mapping is busy when something above it is. */
function usersOf(
  node: BlockNode | undefined,
  raw: RawInventory,
  nodes: ReadonlyMap<string, BlockNode>,
  seen: ReadonlySet<string> = new Set(),
): DiskUser[] {
  if (node === undefined || seen.has(node.kernelName)) return [];
  const mine: DiskUser[] = [
    ...node.mountPoints.map((point): DiskUser =>
      point === "[SWAP]"
        ? { kind: "swap", name: node.path, isBusy: true }
        : { kind: "mount", name: point, isBusy: true },
    ),
    ...(raw.openers.get(node.path) ?? []).map((name): DiskUser => ({ kind: "open", name, isBusy: true })),
  ];
  const held = (raw.holders.get(node.kernelName) ?? node.children.map((child) => child.kernelName))
    .filter((name) => nodes.get(name)?.type !== "part")
    .flatMap((name) => holderUsers(name, raw, nodes, new Set([...seen, node.kernelName])));
  return [...mine, ...held];
}

function holderUsers(
  name: string,
  raw: RawInventory,
  nodes: ReadonlyMap<string, BlockNode>,
  seen: ReadonlySet<string>,
): DiskUser[] {
  const holder = nodes.get(name);
  const parts = holder?.children.filter((child) => child.type === "part") ?? [];
  const above = [
    ...usersOf(holder ?? placeholder(name), raw, nodes, seen),
    ...parts.flatMap((part) => usersOf(part, raw, nodes, seen)),
  ];
  const isBusy = above.some((user) => user.isBusy);
  const mapping = raw.mappings.get(name);
  // A multipath mapping is no user of its disk: it is the disk.
  if (mapping?.uuid.startsWith("mpath-") === true || holder?.type === "mpath") return above;
  const kind = name.startsWith("md")
    ? "md"
    : name.startsWith("dm-")
      ? "dm"
      : name.startsWith("bcache")
        ? "bcache"
        : "other";
  return [{ kind, name: mapping?.name ?? name, isBusy }, ...above];
}

/** A holder that lsblk does not show, such as an inactive array: it can have holders of its own, but no mounts. */
const placeholder = (kernelName: string): BlockNode => ({
  path: `/dev/${kernelName}`,
  kernelName,
  type: "unknown",
  sizeBytes: 0,
  logicalSectorBytes: 512,
  physicalSectorBytes: 512,
  subsystems: [],
  isRemovable: false,
  isHotplug: false,
  isReadOnly: false,
  isRotational: false,
  mountPoints: [],
  children: [],
});

const unique = (users: readonly DiskUser[]): readonly DiskUser[] => [
  ...new Map(users.map((user) => [`${user.kind} ${user.name}`, user])).values(),
];

const linksOf = (node: BlockNode, raw: RawInventory): string[] =>
  (raw.udev.get(node.path)?.get("DEVLINKS") ?? "")
    .split(" ")
    // by-diskseq, by-label and the like are of this boot or of the content, not of the disk.
    .filter((link) => /^\/dev\/(disk\/by-(id|path)\/|mapper\/)/.test(link));

/** lsblk first, udev where lsblk is silent: NVMe and virtio serials are missing from one or the other. */
export function identityOf(node: BlockNode, raw: Pick<RawInventory, "udev">): DiskIdentity {
  const udev = raw.udev.get(node.path);
  const read = (...keys: string[]): string | undefined =>
    keys.map((key) => clean(udev?.get(key))).find((value) => value !== undefined);
  const wwn = node.wwn ?? read("ID_WWN_WITH_EXTENSION", "ID_WWN");
  const serial = node.serial ?? read("ID_SCSI_SERIAL", "ID_SERIAL_SHORT");
  const model = node.model ?? read("ID_MODEL");
  const byPath = (udev?.get("DEVLINKS") ?? "")
    .split(" ")
    .filter((link) => link.startsWith("/dev/disk/by-path/"))
    .toSorted()[0];
  return {
    sizeBytes: node.sizeBytes,
    ...(wwn === undefined ? {} : { wwn }),
    ...(serial === undefined ? {} : { serial }),
    ...(model === undefined ? {} : { model }),
    ...(byPath === undefined ? {} : { byPath }),
  };
}

export function busOf(node: BlockNode): Bus {
  switch (node.transport) {
    case "nvme":
    case "sata":
    case "sas":
    case "usb":
    case "virtio":
      return node.transport;
    case "mmc":
      return "mmc";
    case "ata":
      return "sata";
    default:
      for (const name of ["usb", "virtio", "nvme", "mmc"] as const) if (node.subsystems.includes(name)) return name;
      return "other";
  }
}

function toArrays(raw: RawInventory): readonly MdArray[] {
  const byUuid = new Map<string, MemberFacts[]>();
  for (const member of raw.arrays) byUuid.set(member.uuid, [...(byUuid.get(member.uuid) ?? []), member]);
  const nodes = new Map([...flatten(raw.tree).values()].map((node) => [node.path, node]));
  return [...byUuid.entries()]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([uuid, members]) => {
      const pick = <K extends keyof MemberFacts>(key: K): Partial<Pick<MemberFacts, K>> => {
        const value = members.map((member) => member[key]).find((each) => each !== undefined);
        return value === undefined ? {} : ({ [key]: value } as unknown as Pick<MemberFacts, K>);
      };
      const holder = members
        .flatMap((member) => raw.holders.get(nodes.get(member.path)?.kernelName ?? "") ?? [])
        .find((name) => name.startsWith("md"));
      return {
        uuid,
        memberPaths: members.map((member) => member.path).toSorted(),
        ...pick("name"),
        ...pick("level"),
        ...pick("expectedMembers"),
        ...pick("filesystemUuid"),
        ...pick("filesystemType"),
        ...pick("label"),
        ...(holder === undefined ? {} : { path: `/dev/${holder}` }),
      };
    });
}
