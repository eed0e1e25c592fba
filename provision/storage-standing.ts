/** Whose is what is on the disks of one entry: blank or foreign, begun by us, or ours. */
import type { DiskSpec, RaidSpec } from "../config/document.ts";
import { describeContent, describeDisk } from "../disks/describe.ts";
import { filesystemLabel } from "../disks/label.ts";
import type { Disk, DiskIdentity, Inventory, MdArray, OwnedStorage, Signature } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import { mdUuid } from "../raid/argv.ts";
import { disksWithout, findArray, findOurArray } from "../raid/plan.ts";
import type { Intent } from "../state/model.ts";
import { describeIdentity, sameDisks } from "./identity.ts";
import { standingOf } from "./install/standing.ts";
import { lintOwnArray, lintOwnFilesystem } from "./own-lint.ts";

export interface Standing {
  /** Neither consent nor a wipe is needed. */
  readonly isOurs: boolean;
  /** The array exists as a whole: it is started, not created. */
  readonly isThere: boolean;
  readonly hasFilesystem: boolean;
  readonly uuid?: string;
  readonly filesystemUuid?: string;
  readonly findings: readonly Finding[];
}

export interface Records {
  readonly inventory: Inventory;
  readonly owned: readonly OwnedStorage[];
  readonly intents: readonly Intent[];
  readonly ownLossSinceMs?: number;
}

/** An intent for this step on these very disks, and the UUID that was chosen for it. */
export interface Begun {
  readonly uuid: string;
  readonly isOpen: boolean;
  readonly openedAtMs: number;
  /** What was to be made. */
  readonly filesystem?: string;
  readonly unlock?: string;
}

/** `--wipe-own` is for what was made before it was given: what is made under it is ours again. */
export const isOwnLost = (
  { wipe }: { readonly wipe: boolean },
  made: Pick<Begun, "isOpen" | "openedAtMs"> | undefined,
  { ownLossSinceMs }: Records,
): boolean => wipe && ownLossSinceMs !== undefined && !(made?.isOpen === false && made.openedAtMs >= ownLossSinceMs);

export function begun(stepId: string, disks: readonly DiskIdentity[], intents: readonly Intent[]): Begun | undefined {
  const intent = intents.find((each) => each.stepId === stepId && sameDisks(each.disks, disks));
  const uuid = intent === undefined ? undefined : chosenUuid(intent);
  if (intent === undefined || uuid === undefined) return undefined;
  const [filesystem, unlock] = [textIn(intent, "filesystem"), textIn(intent, "unlock")];
  return {
    uuid,
    isOpen: intent.closedAtMs === undefined,
    openedAtMs: intent.openedAtMs,
    ...(filesystem === undefined ? {} : { filesystem }),
    ...(unlock === undefined ? {} : { unlock }),
  };
}

function textIn({ step }: Intent, key: string): string | undefined {
  const value = (step as unknown as Readonly<Record<string, unknown>>)[key];
  return typeof value === "string" ? value : undefined;
}

const chosenUuid = (intent: Intent): string | undefined => textIn(intent, "uuid");

/**
 * What is journalled of a filesystem inside an array or a volume. Where that was made anew under `--wipe-own`, an intent
 * from before is of the one that is gone.
 */
export const insideOf = (
  inside: Begun | undefined,
  outside: Begun | undefined,
  { ownLossSinceMs: since }: Pick<Records, "ownLossSinceMs">,
): Begun | undefined =>
  since !== undefined && (outside?.openedAtMs ?? 0) >= since && (inside?.openedAtMs ?? since) < since
    ? undefined
    : inside;

const foreign = (findings: readonly Finding[], uuids: Partial<Standing> = {}): Standing => ({
  isOurs: false,
  isThere: false,
  hasFilesystem: false,
  ...uuids,
  findings,
});

const ownedDisk = (spec: DiskSpec, disk: Disk, owned: readonly OwnedStorage[]): OwnedStorage | undefined =>
  owned.find(
    (each) => each.kind === "disk" && each.name === spec.name && each.disks.some((one) => sameDisk(one, disk.identity)),
  );

/** A wipe that was begun here and whose end nobody wrote down: even if all of it was done, it must be closed. */
export const isWipeOpen = (stepId: string, disk: Disk, intents: readonly Intent[]): boolean =>
  intents.some(
    (each) => each.stepId === stepId && each.closedAtMs === undefined && sameDisks(each.disks, [disk.identity]),
  );

export function diskStanding(spec: DiskSpec, field: string, disk: Disk, records: Records): Standing {
  const { owned, intents } = records;
  const path = `${field}.device`;
  if (spec.filesystem === "none") {
    // Nothing of ours is on such a disk to tell it by: once blanked by us, it is left alone.
    const wiped = intents.find(
      (each) =>
        each.stepId === `disk:${spec.name}:wipe` &&
        each.closedAtMs !== undefined &&
        sameDisks(each.disks, [disk.identity]),
    );
    const blanked = wiped === undefined ? undefined : { isOpen: false, openedAtMs: wiped.openedAtMs };
    const isLost = isOwnLost(spec, blanked, records);
    if (blanked !== undefined && !isLost) return { isOurs: true, isThere: true, hasFilesystem: true, findings: [] };
    // One that was blank when it was taken has no such intent: the record alone keeps what was put on it since.
    const record = ownedDisk(spec, disk, owned);
    if (record !== undefined && !isLost) return adopted({ uuid: record.uuid }, []);
    return foreign(isLost ? [] : guardOwn([disk], records, path));
  }
  const intent = begun(`disk:${spec.name}:filesystem`, [disk.identity], intents);
  const isLost = isOwnLost(spec, intent, records);
  if (intent?.isOpen === true && disk.signatures.every((each) => isHalfMade(each, spec.filesystem, intent.uuid))) {
    return resumed({ filesystemUuid: intent.uuid });
  }
  const record = ownedDisk(spec, disk, owned);
  const recorded = intent?.isOpen === false ? intent.uuid : record?.uuid;
  const found = wholeFilesystem(disk);
  if (recorded !== undefined && !isLost) {
    if (found?.uuid === recorded) {
      const what = `disk ${describeDisk(disk)}`;
      return adopted({ filesystemUuid: recorded }, lintOwnFilesystem(what, field, spec.filesystem, found.type));
    }
    const message = `filesystem ${recorded} that this node made for disk ${spec.name} is not on ${describeDisk(disk)}`;
    return foreign([incomplete(path, message)]);
  }
  if (recorded === undefined && found?.type === spec.filesystem && !isLost) {
    if (found.uuid !== undefined && found.label === filesystemLabel(spec.name, spec.filesystem)) {
      return adopted({ filesystemUuid: found.uuid }, [
        adoption(path, `${describeDisk(disk)}, ${describeContent(disk)}`),
      ]);
    }
  }
  const kept = intent?.isOpen === true ? { filesystemUuid: intent.uuid } : {};
  return foreign(isLost ? [] : guardOwn([disk], records, path), kept);
}

export function arrayStanding(spec: RaidSpec, field: string, disks: readonly Disk[], records: Records): Standing {
  const { inventory, owned, intents } = records;
  const identities = disks.map((disk) => disk.identity);
  const create = begun(`raid:${spec.name}:create`, identities, intents);
  const isLost = isOwnLost(spec, create, records);
  const made = insideOf(begun(`raid:${spec.name}:filesystem`, identities, intents), create, records);
  const filesystem = made === undefined ? {} : { filesystemUuid: made.uuid };
  if (create?.isOpen === true && disks.every((disk) => isHalfMember(disk, create.uuid))) {
    // Superblocks that power left are started as they are, whatever the document has become since.
    const half = findArray(inventory, create.uuid);
    const unlike = half === undefined ? [] : lintOwnArray(spec, field, half);
    if (unlike.length === 0) return resumed({ uuid: create.uuid, ...filesystem });
    if (!isLost) return adopted({ uuid: create.uuid }, unlike);
  }
  const record = owned.find(
    (each) => each.kind === "raid" && each.name === spec.name && sameDisks(each.disks, identities),
  );
  const recorded = create?.isOpen === false ? create.uuid : record?.uuid;
  if (recorded !== undefined && !isLost) {
    const array = findArray(inventory, recorded);
    const lacking = array === undefined ? disks : disksWithout(array, disks);
    if (array === undefined || lacking.length > 0) {
      const message = `array ${spec.name} (${recorded}) is this node's, but is not on ${lacking.map(describeDisk).join(", ")}`;
      return foreign([incomplete(`${field}.devices`, message)]);
    }
    const unlike = lintOwnArray(spec, field, array);
    if (unlike.length > 0) return adopted({ uuid: array.uuid }, unlike);
    return ownArray(spec, field, array, made ?? fromRecord(record?.uuid === recorded ? record : undefined));
  }
  const stranger = owned.find((each) => each.kind === "raid" && each.name === spec.name);
  const partial = stranger === undefined ? undefined : findArray(inventory, stranger.uuid);
  if (stranger !== undefined && partial !== undefined && !isLost) {
    const gone = stranger.disks.filter((one) => !identities.some((each) => sameDisk(each, one)));
    const message = `array ${spec.name} (${stranger.uuid}) is this node's, and its member ${gone.map(describeIdentity).join(", ")} is missing`;
    return foreign([incomplete(`${field}.devices`, message)]);
  }
  if (spec.filesystem !== "none" && !isLost) {
    const array = findOurArray(spec, filesystemLabel(spec.name, spec.filesystem), disks, inventory);
    if (array?.filesystemUuid !== undefined) {
      const note = adoption(field, `array ${spec.name} (${array.uuid}) on ${disks.map(describeDisk).join(", ")}`);
      return adopted({ uuid: mdUuid(array.uuid), filesystemUuid: array.filesystemUuid }, [note]);
    }
  }
  const kept = create?.isOpen === true ? { uuid: create.uuid, ...filesystem } : {};
  return foreign(isLost ? [] : guardOwn(disks, records, field), kept);
}

const fromRecord = (record: OwnedStorage | undefined): Begun | undefined =>
  record?.filesystemUuid === undefined ? undefined : { uuid: record.filesystemUuid, isOpen: false, openedAtMs: 0 };

/** Our array; its filesystem may still have to be made, or to be made again. */
function ownArray(spec: RaidSpec, field: string, array: MdArray, made: Begun | undefined): Standing {
  const there = { isOurs: true, isThere: true, uuid: array.uuid };
  const found = array.filesystemUuid;
  if (made?.isOpen !== true && found !== undefined && found === made?.uuid) {
    const what = `array ${spec.name} (${array.uuid})`;
    const unlike = lintOwnFilesystem(what, field, spec.filesystem, array.filesystemType ?? made.filesystem);
    if (unlike.length > 0) return { ...there, hasFilesystem: true, findings: unlike };
  }
  // What stands in an array without a filesystem of its own is the business of the volume on it.
  if (spec.filesystem === "none") return { ...there, hasFilesystem: true, findings: [] };
  if (made === undefined && found === undefined) return { ...there, hasFilesystem: false, findings: [] };
  if (made?.isOpen === true) return { ...there, hasFilesystem: false, filesystemUuid: made.uuid, findings: [] };
  if (made !== undefined && (found === undefined || found === made.uuid))
    return { ...there, hasFilesystem: true, filesystemUuid: made.uuid, findings: [] };
  const message = `array ${spec.name} (${array.uuid}) is this node's, but filesystem ${found ?? "unknown"} on it is not`;
  return foreign([incomplete(field, message)]);
}

const resumed = (uuids: Partial<Standing>): Standing => ({
  isOurs: true,
  isThere: false,
  hasFilesystem: false,
  ...uuids,
  findings: [],
});

const adopted = (uuids: Partial<Standing>, findings: readonly Finding[]): Standing => ({
  isOurs: true,
  isThere: true,
  hasFilesystem: true,
  ...uuids,
  findings,
});

/** What an interrupted mkfs of ours leaves: nothing yet, or the filesystem under the UUID that was chosen. */
const isHalfMade = (signature: Signature, filesystem: string, uuid: string): boolean =>
  signature.uuid === undefined
    ? signature.type === filesystem
    : // Nobody has mounted it yet: it is made again, also as another kind that the document names since.
      signature.uuid === uuid && (signature.type === "ext4" || signature.type === "xfs");

/** What an interrupted `mdadm --create` of ours leaves on a member: nothing yet, or a superblock of that array. */
const isHalfMember = (disk: Disk, uuid: string): boolean =>
  disk.partitions.length === 0 &&
  disk.signatures.every(
    (each) => each.type === "linux_raid_member" && each.uuid !== undefined && mdUuid(each.uuid) === uuid,
  );

function wholeFilesystem(disk: Disk): Signature | undefined {
  const [first, ...more] = disk.signatures;
  return disk.partitions.length === 0 && more.length === 0 && first?.device === disk.path ? first : undefined;
}

/** Of all that this node has made and knows of, in one form. */
export const madeUuids = (records: Pick<Records, "owned" | "intents">): readonly string[] =>
  [
    ...records.owned.flatMap((each) => [each.uuid, each.filesystemUuid ?? each.uuid]),
    ...records.intents.filter((each) => each.closedAtMs !== undefined).flatMap((each) => chosenUuid(each) ?? []),
  ].map(mdUuid);

/** Both are needed, and whoever gave one of them is told of the other. */
export const OWN_HINT = "only wipe: true together with --wipe-own destroys it; or name another disk";

/** What this node made under another name, or for other disks, is not destroyed by `wipe: true` alone. */
export function guardOwn(disks: readonly Disk[], records: Records, path: string): Finding[] {
  const made = madeUuids(records);
  const hint = OWN_HINT;
  return disks.flatMap((disk): Finding[] => {
    const refusal = { severity: "error", code: "own-data", path, hint } as const;
    // Of another node, maybe, which was moved here: its state and its data are gone with one wrong serial.
    if (standingOf(disk) === "installed")
      return [{ ...refusal, message: `disk ${describeDisk(disk)} holds an installed Corium` }];
    const own = disk.signatures.filter((each) => each.uuid !== undefined && made.includes(mdUuid(each.uuid)));
    if (own.length === 0) return [];
    return [{ ...refusal, message: `disk ${describeDisk(disk)} holds what this node made: ${describeContent(disk)}` }];
  });
}

export const incomplete = (path: string, message: string): Finding => ({
  severity: "error",
  code: "own-incomplete",
  path,
  message,
  hint: "connect the missing disk; or give up what was on it, with wipe: true and --wipe-own",
});

export const adoption = (path: string, what: string): Finding => ({
  severity: "warning",
  code: "adopted",
  path,
  message: `${what} was made by an earlier installation for this very purpose and is taken over as it is`,
});
