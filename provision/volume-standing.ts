/** Whose is what lies where an encrypted volume shall be: blank or foreign, begun by us, or ours. */
import type { LuksSpec } from "../config/document.ts";
import { describeDisk } from "../disks/describe.ts";
import { filesystemLabel } from "../disks/label.ts";
import type { Disk, DiskIdentity, OwnedStorage, Signature } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import type { Probed } from "../luks/model.ts";
import { mdUuid } from "../raid/argv.ts";
import { sameDisks } from "./identity.ts";
import type { PlannedArray, StorageInput } from "./storage-part.ts";
import type { Begun } from "./storage-standing.ts";
import { lintOwnFilesystem, lintOwnUnlock } from "./own-lint.ts";
import { adoption, begun, guardOwn, incomplete, insideOf, isOwnLost, madeUuids, OWN_HINT } from "./storage-standing.ts";

export interface VolumeStanding {
  /** Neither consent nor a wipe is needed. */
  readonly isOurs: boolean;
  /** Its header is there: it is opened, not made. */
  readonly isThere: boolean;
  /** No record of ours names it, but the declared unlock opens it. */
  readonly isFound: boolean;
  readonly hasFilesystem: boolean;
  readonly uuid?: string;
  readonly filesystemUuid?: string;
  readonly findings: readonly Finding[];
}

export interface VolumePlace {
  /** `disk /dev/sdb (…)`, `array data`. */
  readonly name: string;
  readonly disks: readonly DiskIdentity[];
  readonly disk?: Disk;
  /** UUID of the header that is all there is; absent when there is something else, or nothing. */
  readonly headerUuid?: string;
  /** Everything there carries this UUID, or none yet: what an interrupted format of ours leaves. */
  readonly mayBeHalf: (uuid: string) => boolean;
  readonly contentUuid?: string;
  /** Of an array: when it was made. Absent: it is yet to be made, or nobody knows. */
  readonly madeAtMs?: number;
  /** An array that is not there yet. */
  readonly isMadeAnew: boolean;
}

/** As blkid calls it. */
export const LUKS = "crypto_LUKS";

export function diskPlace(disk: Disk): VolumePlace {
  // Version 2 has two headers, and both are listed.
  const isHeader = (each: Signature): boolean => each.type === LUKS && each.device === disk.path;
  const isWhole = disk.partitions.length === 0 && disk.signatures.length > 0 && disk.signatures.every(isHeader);
  const uuids = new Set(disk.signatures.flatMap(({ uuid }) => uuid ?? []));
  const [only] = uuids;
  return {
    name: `disk ${describeDisk(disk)}`,
    disks: [disk.identity],
    disk,
    isMadeAnew: false,
    ...(isWhole && uuids.size === 1 && only !== undefined ? { headerUuid: only } : {}),
    mayBeHalf: (uuid) =>
      disk.partitions.length === 0 &&
      disk.signatures.every((each) => isHeader(each) && (each.uuid === undefined || each.uuid === uuid)),
  };
}

/** What shows in an array that we made is ours, or of a life before it: nobody else writes there. */
export function arrayPlace({ name, disks, found, madeAtMs }: PlannedArray): VolumePlace {
  const uuid = found?.filesystemUuid;
  return {
    name: `array ${name}`,
    disks: disks.map((disk) => disk.identity),
    isMadeAnew: found === undefined,
    ...(madeAtMs === undefined ? {} : { madeAtMs }),
    ...(uuid === undefined ? {} : { contentUuid: uuid }),
    ...(uuid !== undefined && found?.filesystemType === LUKS ? { headerUuid: uuid } : {}),
    mayBeHalf: () => true,
  };
}

const isAnew = ({ isMadeAnew, madeAtMs }: VolumePlace, { ownLossSinceMs: since }: StorageInput): boolean =>
  isMadeAnew || (since !== undefined && madeAtMs !== undefined && madeAtMs >= since);

const foreign = (findings: readonly Finding[], uuids: Partial<VolumeStanding> = {}): VolumeStanding => ({
  isOurs: false,
  isThere: false,
  isFound: false,
  hasFilesystem: false,
  ...uuids,
  findings,
});

export function volumeStanding(
  spec: LuksSpec,
  field: string,
  place: VolumePlace,
  records: StorageInput,
): VolumeStanding {
  const { name } = spec;
  const { owned, intents } = records;
  const path = `${field}.device`;
  const format = begun(`luks:${name}:format`, place.disks, intents);
  const made = insideOf(begun(`luks:${name}:filesystem`, place.disks, intents), format, records);
  // With an array that is made anew goes what was on it.
  const isLost = isOwnLost({ wipe: spec.wipe || isAnew(place, records) }, format, records);
  const chosen = made === undefined ? {} : { filesystemUuid: made.uuid };
  if (format?.isOpen === true && place.mayBeHalf(format.uuid))
    return { ...foreign([]), isOurs: true, uuid: format.uuid, ...chosen };

  const record = owned.find((each) => each.kind === "luks" && each.name === name && sameDisks(each.disks, place.disks));
  const recorded = format?.isOpen === false ? format.uuid : record?.uuid;
  if (recorded !== undefined && !isLost) {
    if (place.headerUuid === recorded) {
      const findings = [
        ...lintOwnUnlock(spec, field, recorded, format?.unlock),
        ...(made?.isOpen === false
          ? lintOwnFilesystem(`volume ${name} (${recorded})`, field, spec.filesystem, made.filesystem)
          : []),
      ];
      const inside = made ?? fromRecord(record?.uuid === recorded ? record : undefined);
      return { ...ownVolume(recorded, inside), findings };
    }
    const message = `volume ${name} (${recorded}) is this node's, but its header is not on ${place.name}`;
    return foreign([incomplete(path, message)]);
  }
  const probed = records.volumes?.probed.get(name);
  if (probed !== undefined && probed.uuid === place.headerUuid && !isLost) {
    const found = foundVolume(spec, path, place, probed);
    if (found !== undefined) return found;
  }
  const kept = format?.isOpen === true ? { uuid: format.uuid, ...chosen } : {};
  return foreign(isLost ? [] : guardPlace(place, records, path), kept);
}

function ownVolume(uuid: string, made: Begun | undefined): VolumeStanding {
  return {
    isOurs: true,
    isThere: true,
    isFound: false,
    uuid,
    hasFilesystem: made?.isOpen === false,
    ...(made === undefined ? {} : { filesystemUuid: made.uuid }),
    findings: [],
  };
}

const fromRecord = (record: OwnedStorage | undefined): Begun | undefined =>
  record?.filesystemUuid === undefined ? undefined : { uuid: record.filesystemUuid, isOpen: false, openedAtMs: 0 };

/** The declared unlock opened it. Ours, unless it holds what this document would not have put there: then it is data. */
function foundVolume(
  { name, filesystem }: LuksSpec,
  path: string,
  place: VolumePlace,
  { uuid, filesystem: inside }: Probed,
): VolumeStanding | undefined {
  const note = adoption(path, `volume ${name} (${uuid}) on ${place.name}, which opens as declared,`);
  const there = { isOurs: true, isThere: true, isFound: true, uuid, findings: [note] };
  if (filesystem === "none") return { ...there, hasFilesystem: true };
  if (inside === undefined) return { ...there, hasFilesystem: false };
  if (inside.type === filesystem && inside.uuid !== undefined && inside.label === filesystemLabel(name, filesystem))
    return { ...there, hasFilesystem: true, filesystemUuid: inside.uuid };
  return undefined;
}

function guardPlace(place: VolumePlace, records: StorageInput, path: string): readonly Finding[] {
  if (place.disk !== undefined) return guardOwn([place.disk], records, path);
  if (place.contentUuid === undefined || !madeUuids(records).includes(mdUuid(place.contentUuid))) return [];
  const message = `${place.name} holds what this node made: ${place.contentUuid}`;
  return [{ severity: "error", code: "own-data", path, message, hint: OWN_HINT }];
}
