/** What sysfs and lsblk show → the mirror. Pure. */
import type { BlockNode } from "../../disks/model.ts";
import { contentNodes, physicalDisks } from "../../disks/inventory.ts";
import { PARTITIONS } from "../layout.ts";
import type { MirroredRole } from "../uuids.ts";
import { arrayUuidOf, bare, MIRRORED_ROLES } from "../uuids.ts";
import type { MemberState, Mirror, MirrorArray, MirrorDisk } from "./model.ts";
import { MIRROR_WIDTH } from "./model.ts";

/** `md/uuid` of sysfs has dashes, mdadm has colons: the digits are the same. */
const digits = (uuid: string): string => bare(uuid.replaceAll(":", "").trim());

/** Whose array is it? `undefined`: not one of this installation. */
export const roleOfArray = (installation: string, uuid: string): MirroredRole | undefined =>
  MIRRORED_ROLES.find((role) => digits(arrayUuidOf(installation, role)) === digits(uuid));

/** `md/dev-NAME/state`: words with commas; `in_sync` is absent while a copy is made. */
export function memberState(text: string, isThere: boolean): MemberState {
  const words = text.trim().split(",");
  if (!isThere) return "gone";
  if (words.includes("faulty")) return "faulty";
  return words.includes("in_sync") ? "in-sync" : "joining";
}

export const numberOf = (role: MirroredRole): number => PARTITIONS.find((each) => each.role === role)?.number ?? 0;

const ESP_NUMBER = PARTITIONS.find(({ role }) => role === "esp")?.number ?? 2;

/** Our table: each partition under its name. The state partition may still be called half-made (install/table.ts). */
const isOurTable = (top: BlockNode): boolean =>
  PARTITIONS.every(({ role, number, name }) =>
    contentNodes(top).some((node) => node.partitionNumber === number && (role === "state" || node.partLabel === name)),
  );

export function buildMirror(arrays: readonly MirrorArray[], tree: readonly BlockNode[]): Mirror {
  const disks = physicalDisks({ tree, diskTypes: ["disk"] })
    .filter(({ top }) => isOurTable(top))
    .map(({ top }) => toDisk(top, arrays));
  return { arrays, disks };
}

function toDisk(top: BlockNode, arrays: readonly MirrorArray[]): MirrorDisk {
  const nodes = contentNodes(top).slice(1);
  const stateOf = (role: MirroredRole): MemberState | undefined => {
    const name = nodes.find((node) => node.partitionNumber === numberOf(role))?.kernelName;
    return arrays.find((array) => array.role === role)?.members.find((member) => member.kernelName === name)?.state;
  };
  return {
    path: top.path,
    partitions: new Map(nodes.map((node) => [node.partitionNumber ?? 0, node.path])),
    espPartUuid: nodes.find((node) => node.partitionNumber === ESP_NUMBER)?.partUuid ?? "",
    sectorBytes: top.logicalSectorBytes,
    isInSync: MIRRORED_ROLES.every((role) => stateOf(role) === "in-sync"),
    lacking: MIRRORED_ROLES.filter((role) => stateOf(role) === undefined),
  };
}

/** `mdadm --examine` of a member, "Array State : A.": it went on alone, so what it holds is no older state of ours. */
export const ranAlone = (examined: string): boolean => /^\s*Array State : [A-Z]*\./m.test(examined);

/** ESPs that may be written, by their paths of this boot. */
export const espsInSync = ({ disks }: Mirror): readonly string[] => disks.filter(({ isInSync }) => isInSync).map(espOf);

/** `/dev/vda2`. */
export const espOf = ({ partitions }: MirrorDisk): string => partitions.get(ESP_NUMBER) ?? "";

/** `/dev/vda7`. */
export const stateOf = ({ partitions }: MirrorDisk): string => partitions.get(numberOf("state")) ?? "";

/** Two disks have everything. */
export const isWhole = ({ disks }: Mirror): boolean => disks.filter(({ isInSync }) => isInSync).length >= MIRROR_WIDTH;
