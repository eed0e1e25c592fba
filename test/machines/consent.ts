/**
 * What a document allows on a machine, worked out from the document and the disks alone. It shares no code with the
 * planner, and is as plain as can be: the planner may allow less, never more.
 */
import { parseSize } from "../../config/device.ts";
import type { DeviceRef, DeviceSelector, Document } from "../../config/document.ts";
import type { Disk, DiskIdentity, Inventory, OwnedStorage } from "../../kit/disk.ts";
import type { Intent } from "../../state/model.ts";

export interface Consent {
  /** Paths of the disks that a step may have to do with. */
  readonly touch: ReadonlySet<string>;
  /** Those whose content may be lost. */
  readonly destroy: ReadonlySet<string>;
  /** UUIDs of what this node finished and must not make again. */
  readonly kept: ReadonlySet<string>;
}

export interface Memory {
  readonly owned: readonly OwnedStorage[];
  readonly intents: readonly Intent[];
}

const bare = (uuid: string): string => uuid.toLowerCase().replace(/[^0-9a-f]/g, "");

export const isNever = (disk: Disk): boolean =>
  disk.isBootMedium || disk.isSystemDisk || disk.isReadOnly || disk.users.some((user) => user.isBusy);

const isTwin = (a: Disk, b: Disk): boolean => {
  const [x, y] = [a.identity, b.identity];
  if (a === b || x.sizeBytes !== y.sizeBytes) return false;
  if (x.wwn !== undefined && y.wwn !== undefined) return x.wwn === y.wwn;
  return x.serial !== undefined && x.serial === y.serial && x.model === y.model;
};

function fits(selector: DeviceSelector, disk: Disk): boolean {
  const { serial, wwn, model, type, bus, minSize, maxSize } = selector;
  const plain = (text: string | undefined): string => (text ?? "").replace(/^(wwn-)?0x/i, "").toLowerCase();
  const glob = new RegExp(
    `^${(model ?? "")
      .replace(/[.+^${}()|[\]\\]/g, "\\$&")
      .replace(/\*/g, ".*")
      .replace(/\?/g, ".")
      .replace(/[ _]+/g, "[ _]+")}$`,
  );
  return (
    (serial === undefined || disk.identity.serial === serial) &&
    (wwn === undefined || (disk.identity.wwn !== undefined && plain(disk.identity.wwn) === plain(wwn))) &&
    (model === undefined || (disk.identity.model !== undefined && glob.test(disk.identity.model))) &&
    (type === undefined || disk.type === type) &&
    (bus === undefined || disk.bus === bus) &&
    (minSize === undefined || disk.sizeBytes >= (parseSize(minSize) ?? Infinity)) &&
    (maxSize === undefined || disk.sizeBytes <= (parseSize(maxSize) ?? 0))
  );
}

/** The one disk that is meant; none when two could be. */
export function meant(ref: DeviceRef, { disks }: Inventory): Disk | undefined {
  const isNamed = typeof ref === "string" || ref.serial !== undefined || ref.wwn !== undefined || ref.bus === "usb";
  const found = disks.filter((disk) => {
    if (disk.isBootMedium || disk.isSystemDisk || disk.isReadOnly) return false;
    const isWanted =
      typeof ref === "string"
        ? disk.path === ref || disk.links.includes(ref)
        : (isNamed || !disk.isRemovable) && fits(ref, disk);
    if (!isWanted || disks.some((other) => isTwin(disk, other))) return false;
    const serial = typeof ref === "string" ? undefined : ref.serial;
    return serial === undefined || !disks.some((other) => other !== disk && other.identity.serial === serial);
  });
  return found.length === 1 ? found[0] : undefined;
}

const uuidsIn = (step: Intent["step"]): readonly string[] =>
  Object.entries(step).flatMap(([key, value]) => (key === "uuid" && typeof value === "string" ? [bare(value)] : []));

const isOf = (disk: Disk, identities: readonly DiskIdentity[]): boolean =>
  identities.some((each) => JSON.stringify(each) === JSON.stringify(disk.identity));

const isBlank = (disk: Disk): boolean => disk.signatures.length === 0 && disk.partitions.length === 0;

/** Nothing on it but what a step that was begun on this very disk has put there. */
function isOurRuin(disk: Disk, { intents }: Memory): boolean {
  const open = intents.filter((each) => each.closedAtMs === undefined && isOf(disk, each.disks));
  const begun = open.flatMap((each) => uuidsIn(each.step));
  return (
    open.length > 0 &&
    disk.partitions.length === 0 &&
    disk.signatures.every(({ uuid }) => uuid === undefined || begun.includes(bare(uuid)))
  );
}

const hasLabel = (disk: Disk, label: string): boolean => disk.partitions.some((each) => each.label === label);

/** Somebody's node: no `wipe` is for that. */
const isInstalled = (disk: Disk): boolean => hasLabel(disk, "corium-state");

/** An installation onto this very disk, which was consented to when it began. */
const isHalfInstalled = (disk: Disk, targets: readonly DeviceRef[], inventory: Inventory): boolean =>
  hasLabel(disk, "corium-installing") && targets.some((ref) => meant(ref, inventory) === disk);

export function consentOf(
  document: Pick<Document, "disks" | "raid" | "luks"> & Pick<Partial<Document>, "install">,
  inventory: Inventory,
  memory: Memory,
): Consent {
  const { install } = document;
  const targets = [install?.disk, install?.mirror].filter((ref) => ref !== undefined);
  const wishes = [
    ...document.disks.map(({ device, wipe }) => ({ refs: [device], wipe })),
    ...document.luks.map(({ device, wipe }) => ({ refs: [device], wipe })),
    ...document.raid.map(({ devices, spares, wipe }) => ({ refs: [...devices, ...spares], wipe })),
    ...(install === undefined ? [] : [{ refs: targets, wipe: install.wipe }]),
  ].flatMap(({ refs, wipe }) => refs.map((ref) => ({ disk: meant(ref, inventory), wipe })));
  const kept = new Set([
    ...memory.owned.flatMap((each) => [each.uuid, each.filesystemUuid ?? each.uuid].map(bare)),
    ...memory.intents.filter((each) => each.closedAtMs !== undefined).flatMap((each) => uuidsIn(each.step)),
  ]);
  const touch = new Set<string>();
  const destroy = new Set<string>();
  for (const { disk, wipe } of wishes) {
    if (disk === undefined || isNever(disk)) continue;
    touch.add(disk.path);
    const holdsKept = disk.signatures.some(({ uuid }) => uuid !== undefined && kept.has(bare(uuid)));
    const isFree = isBlank(disk) && disk.users.length === 0;
    const isRuin = isOurRuin(disk, memory) || isHalfInstalled(disk, targets, inventory);
    if ((isFree || wipe || isRuin) && !holdsKept && !isInstalled(disk)) destroy.add(disk.path);
  }
  return { touch, destroy, kept };
}
