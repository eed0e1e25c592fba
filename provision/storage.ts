/**
 * What has to be done to the disks: document + inventory + what we remember → steps. Pure: the same input gives the
 * same steps in whatever order disks were discovered. A finding of severity error means that no step is planned at
 * all, so that no half of an intent is ever applied.
 */
import { standInFor } from "../config/replaced.ts";
import type { DeviceRef, DiskSpec, RaidSpec } from "../config/document.ts";
import { describeDisk, describeIdentity } from "../disks/describe.ts";
import { filesystemLabel } from "../disks/label.ts";
import { lintClaims } from "../disks/lint.ts";
import type { DiskMountStep } from "../disks/model.ts";
import { byDepth } from "../disks/mount.ts";
import { filesystemStep, stepDevice } from "../disks/plan.ts";
import type { Disk, DiskIdentity, Inventory, OwnedStorage } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import { hasErrors } from "../kit/finding.ts";
import { arrayPath, mdUuid } from "../raid/argv.ts";
import { lintArray } from "../raid/lint.ts";
import { assembleStep, configStep, createStep, findArray } from "../raid/plan.ts";
import { lintStale, mountStep, staleMounts, unmountSteps, withoutMounts } from "./mount-plan.ts";
import type { Part, StorageInput, StorageStep } from "./storage-part.ts";
import { arrayBytes, lintRoom } from "./room-lint.ts";
import { claimed, nothing, resolve, wipeOf } from "./storage-part.ts";
import { arrayStanding, begun, diskStanding, incomplete } from "./storage-standing.ts";
import { lintVolumesOn, planVolume } from "./volume-plan.ts";

export type { StorageInput, StorageStep };

export interface StoragePlan {
  readonly steps: readonly StorageStep[];
  readonly findings: readonly Finding[];
  /** What is ours once the steps ran: to be recorded then, not before. */
  readonly owned: readonly OwnedStorage[];
}

export function planStorage(given: StorageInput): StoragePlan {
  const { document, written = [], hasK0sRecord = false } = given;
  // Each is on a disk that is ours and stays as it is, or is unmounted before anything else is done.
  const input = { ...given, inventory: withoutMounts(given.inventory, written) };
  const { inventory } = input;
  const parts = [
    ...document.disks.map((spec, at) => planDisk(spec, `disks[${at}]`, input)),
    ...document.raid.map((spec, at) => planArray(spec, `raid[${at}]`, input)),
  ];
  const arrays = parts.flatMap((part) => part.array ?? []);
  parts.push(...document.luks.map((spec, at) => planVolume(spec, `luks[${at}]`, arrays, input)));
  const mounts = parts.flatMap((part) => part.mounts).toSorted((a, b) => byDepth(a.point, b.point));
  const stale = staleMounts(written, mounts);
  const findings = [
    ...lintRelease(document),
    ...lintPoints(input),
    ...lintStale(stale, hasK0sRecord),
    ...parts.flatMap((part) => part.findings),
    ...lintClaims(
      parts.flatMap((part) => part.claims),
      inventory,
    ),
    ...lintCopies(parts, inventory),
  ];
  if (hasErrors(findings)) return { steps: [], findings, owned: [] };
  return {
    steps: [
      ...unmountSteps(stale),
      ...parts.flatMap((part) => part.wipes),
      ...parts.flatMap((part) => part.arrays),
      ...parts.flatMap((part) => part.volumes),
      ...parts.flatMap((part) => part.filesystems),
      ...mounts,
    ],
    findings,
    owned: parts.flatMap((part) => part.owned),
  };
}

/** What is mounted or opened by its UUID: with a copy in the machine chance decides which of the two is written. */
function lintCopies(parts: readonly Part[], inventory: Inventory): Finding[] {
  // Wiped before anything is mounted, or refused.
  const going = new Set(parts.flatMap(({ claims }) => claims.flatMap(({ isOurs, disk }) => (isOurs ? [] : [disk]))));
  return parts.flatMap(({ claims, owned }) => {
    const [claim] = claims;
    const [own] = owned;
    if (claim === undefined || own === undefined || own.kind === "raid" || !holds(claim.disk, own.uuid)) return [];
    return inventory.disks
      .filter((disk) => disk !== claim.disk && !going.has(disk) && holds(disk, own.uuid))
      .map((disk): Finding => {
        const message = `disk ${describeDisk(disk)} holds a copy of what is on ${describeDisk(claim.disk)}, under the same UUID ${own.uuid}`;
        return { severity: "error", code: "same-uuid", path: claim.field, message, hint: "take the copy out" };
      });
  });
}

const holds = ({ signatures }: Disk, uuid: string): boolean => signatures.some((each) => each.uuid === uuid);

/** Blocks that are read and checked, but that no step carries out yet. */
export const NOT_IN_RELEASE = ["zfs"] as const;

function lintRelease(document: StorageInput["document"]): Finding[] {
  return NOT_IN_RELEASE.filter((kind) => document[kind].length > 0).map((kind) => ({
    severity: "error",
    code: "not-in-release",
    path: kind,
    message: "this image has no ZFS: neither its kernel module nor its programs are in it",
    hint: "raid and luks build the same of what is in it; or install an image that has ZFS",
  }));
}

/** The mount itself refuses too, but by then disks have been wiped for it. */
function lintPoints({ document, hidden = new Map() }: StorageInput): Finding[] {
  return (["disks", "raid", "luks"] as const).flatMap((kind) =>
    document[kind].flatMap(({ mountPoint = "" }, at): Finding[] => {
      const names = hidden.get(mountPoint) ?? [];
      if (names.length === 0) return [];
      const shown = [...names.slice(0, 3), ...(names.length > 3 ? [`${names.length - 3} more`] : [])].join(", ");
      return [
        {
          severity: "error",
          code: "point-not-empty",
          path: `${kind}[${at}].mountPoint`,
          message: `${mountPoint} is not empty, and the mount would hide what is in it: ${shown}`,
          hint: "choose another mount point",
        },
      ];
    }),
  );
}

function planDisk(spec: DiskSpec, field: string, input: StorageInput): Part {
  const resolved = resolve([spec.device], `${field}.device`, () => `${field}.device`, input.inventory);
  const [disk] = resolved.disks;
  if (disk === undefined) return { ...nothing, findings: resolved.findings };
  const standing = diskStanding(spec, field, disk, input);
  const room = standing.hasFilesystem
    ? []
    : lintRoom(`disk ${describeDisk(disk)} has`, `${field}.device`, disk.sizeBytes, spec.filesystem);
  const said = [...resolved.findings, ...room];
  const part = { ...nothing, ...claimed([disk], () => `${field}.device`, spec.wipe, standing, said) };
  const wipes = wipeOf(`disk:${spec.name}:wipe`, disk, spec, standing, input);
  if (spec.filesystem === "none") {
    // Nothing on it tells that it is ours, so this UUID is on no disk.
    const raw = { kind: "disk", name: spec.name, uuid: standing.uuid ?? input.uuid(), disks: [disk.identity] } as const;
    return { ...part, wipes, owned: [raw] };
  }

  const { filesystem } = spec;
  const uuid = standing.filesystemUuid ?? input.uuid();
  const made = filesystemStep({
    id: `disk:${spec.name}:filesystem`,
    device: stepDevice(disk),
    deviceName: `disk ${describeDisk(disk)}`,
    filesystem,
    uuid,
    label: filesystemLabel(spec.name, filesystem),
    disks: [disk.identity],
  });
  // Names are unique per kind only, step ids must be unique at all.
  const isShared = input.document.raid.some((other) => other.name === spec.name && other.mountPoint !== undefined);
  const id = isShared ? `mount:disk:${spec.name}` : `mount:${spec.name}`;
  return {
    ...part,
    wipes,
    filesystems: standing.hasFilesystem ? [] : [made],
    mounts: mountOf(spec, id, uuid, filesystem, input),
    owned: [{ kind: "disk", name: spec.name, uuid, filesystemUuid: uuid, disks: [disk.identity] }],
  };
}

function planArray(spec: RaidSpec, field: string, input: StorageInput): Part {
  const fieldOf = (at: number): string =>
    at < spec.devices.length ? `${field}.devices[${at}]` : `${field}.spares[${at - spec.devices.length}]`;
  const standIn = (ref: DeviceRef): DiskIdentity | undefined => standInFor(spec.name, ref, input.replaced ?? []);
  const refs = [...spec.devices, ...spec.spares];
  const resolved = resolve(refs, `${field}.devices`, fieldOf, input.inventory, standIn);
  const { disks } = resolved;
  if (disks.length < spec.devices.length + spec.spares.length)
    return { ...nothing, findings: [...resolved.findings, ...lintMissing(spec.name, field, input)] };
  const members = disks.slice(0, spec.devices.length);
  const spares = disks.slice(spec.devices.length);
  const standing = arrayStanding(spec, field, disks, input);
  const sizeBytes = arrayBytes(spec.level, members);
  const room = standing.hasFilesystem
    ? []
    : lintRoom(`array ${spec.name} will have`, `${field}.devices`, sizeBytes, spec.filesystem);
  const said = [
    ...resolved.findings,
    ...lintArray(spec, field, members, spares),
    ...room,
    ...(standing.isOurs ? [] : lintVolumesOn(spec, field, disks, input)),
  ];
  const part = { ...nothing, ...claimed(disks, fieldOf, spec.wipe, standing, said) };

  const uuid = standing.uuid ?? mdUuid(input.uuid());
  const wipes = disks.flatMap((disk, at) => wipeOf(`raid:${spec.name}:wipe:${at}`, disk, spec, standing, input));
  const started = standing.isThere ? assembleStep(spec.name, uuid, disks) : createStep(spec, uuid, members, spares);
  const arrays = [started, configStep(spec.name, uuid, disks.length)];
  const identities = disks.map((disk) => disk.identity);
  const own = { kind: "raid", name: spec.name, uuid, disks: identities } as const;
  const found = standing.isThere ? findArray(input.inventory, uuid) : undefined;
  const created = begun(`raid:${spec.name}:create`, identities, input.intents);
  const array = {
    name: spec.name,
    uuid,
    disks,
    sizeBytes,
    ...(found === undefined ? {} : { found }),
    ...(created === undefined ? {} : { madeAtMs: created.openedAtMs }),
  };
  if (spec.filesystem === "none") return { ...part, wipes, arrays, owned: [own], array };

  const { filesystem } = spec;
  const filesystemUuid = standing.filesystemUuid ?? input.uuid();
  const made = filesystemStep({
    id: `raid:${spec.name}:filesystem`,
    device: { path: arrayPath(uuid) },
    deviceName: `array ${spec.name}`,
    filesystem,
    uuid: filesystemUuid,
    label: filesystemLabel(spec.name, filesystem),
    disks: identities,
  });
  return {
    ...part,
    wipes,
    arrays,
    filesystems: standing.hasFilesystem ? [] : [made],
    mounts: mountOf(spec, `mount:${spec.name}`, filesystemUuid, filesystem, input),
    owned: [{ ...own, filesystemUuid }],
  };
}

/** A recorded array says who is missing, where the document's selector only says that nothing matches. */
function lintMissing(name: string, field: string, { owned, inventory }: StorageInput): Finding[] {
  const record = owned.find((each) => each.kind === "raid" && each.name === name);
  return (record?.disks ?? [])
    .filter((one) => !inventory.disks.some((disk) => sameDisk(disk.identity, one)))
    .map((one) =>
      incomplete(
        `${field}.devices`,
        `array ${name} is this node's, and its member ${describeIdentity(one)} is missing`,
      ),
    );
}

function mountOf(
  spec: DiskSpec | RaidSpec,
  id: string,
  uuid: string,
  filesystem: "ext4" | "xfs",
  input: StorageInput,
): readonly DiskMountStep[] {
  if (spec.mountPoint === undefined) return [];
  const { name, mountPoint: point } = spec;
  return [mountStep({ id, name, point, uuid, filesystem, role: input.document.role })];
}
