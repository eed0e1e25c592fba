/**
 * What has to be done to the disks: document + inventory + what we remember → steps. Pure: the same input gives the
 * same steps in whatever order disks were discovered. A finding of severity error means that no step is planned at
 * all, so that no half of an intent is ever applied.
 */
import { isUnstableDevice } from "../config/device.ts";
import type { DeviceRef, DiskSpec, Document, RaidSpec } from "../config/document.ts";
import { describeDisk, describeIdentity, holdsData } from "../disks/describe.ts";
import { filesystemLabel } from "../disks/label.ts";
import type { DiskClaim } from "../disks/lint.ts";
import { lintClaims } from "../disks/lint.ts";
import type { DiskMountStep, DiskStep } from "../disks/model.ts";
import { byDepth } from "../disks/mount.ts";
import { filesystemStep, stepDevice, wipeStep } from "../disks/plan.ts";
import { resolveDevice } from "../disks/select.ts";
import type { Disk, Inventory, OwnedStorage } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import { hasErrors } from "../kit/finding.ts";
import { arrayPath, mdUuid } from "../raid/argv.ts";
import { lintArray } from "../raid/lint.ts";
import type { RaidStep } from "../raid/model.ts";
import { assembleStep, configStep, createStep } from "../raid/plan.ts";
import type { Intent } from "../state/model.ts";
import { mountStep } from "./mount-plan.ts";
import type { Standing } from "./storage-standing.ts";
import { arrayStanding, diskStanding, incomplete, isWipeOpen } from "./storage-standing.ts";

export type StorageStep = DiskStep | RaidStep;

export interface StorageInput {
  readonly document: Pick<Document, "role" | "disks" | "raid" | "luks" | "zfs">;
  readonly inventory: Inventory;
  readonly owned: readonly OwnedStorage[];
  readonly intents: readonly Intent[];
  /** RFC 9562 version 4. Asked in the document's order, only for what no record has chosen yet. */
  readonly uuid: () => string;
  /** `--wipe-own`: what is ours may be destroyed like anything else, where the document says `wipe: true`. */
  readonly ownLossSinceMs?: number;
}

export interface StoragePlan {
  readonly steps: readonly StorageStep[];
  readonly findings: readonly Finding[];
  /** What is ours once the steps ran: to be recorded then, not before. */
  readonly owned: readonly OwnedStorage[];
}

/** What one entry of the document adds to the plan, by phase. */
interface Part {
  readonly claims: readonly DiskClaim[];
  readonly findings: readonly Finding[];
  readonly wipes: readonly StorageStep[];
  readonly arrays: readonly StorageStep[];
  readonly filesystems: readonly StorageStep[];
  readonly mounts: readonly DiskMountStep[];
  readonly owned: readonly OwnedStorage[];
}

const nothing: Part = { claims: [], findings: [], wipes: [], arrays: [], filesystems: [], mounts: [], owned: [] };

export function planStorage(input: StorageInput): StoragePlan {
  const { document, inventory } = input;
  const parts = [
    ...document.disks.map((spec, at) => planDisk(spec, `disks[${at}]`, input)),
    ...document.raid.map((spec, at) => planArray(spec, `raid[${at}]`, input)),
  ];
  const findings = [
    ...lintRelease(document),
    ...parts.flatMap((part) => part.findings),
    ...lintClaims(
      parts.flatMap((part) => part.claims),
      inventory,
    ),
  ];
  if (hasErrors(findings)) return { steps: [], findings, owned: [] };
  const mounts = parts.flatMap((part) => part.mounts).toSorted((a, b) => byDepth(a.point, b.point));
  return {
    steps: [
      ...parts.flatMap((part) => part.wipes),
      ...parts.flatMap((part) => part.arrays),
      ...parts.flatMap((part) => part.filesystems),
      ...mounts,
    ],
    findings,
    owned: parts.flatMap((part) => part.owned),
  };
}

/** Blocks that are read and checked, but that no step carries out yet. */
export const NOT_IN_RELEASE = ["luks", "zfs"] as const;

function lintRelease(document: StorageInput["document"]): Finding[] {
  return NOT_IN_RELEASE.filter((kind) => document[kind].length > 0).map((kind) => ({
    severity: "error",
    code: "not-in-release",
    path: kind,
    message: `${kind} is not in this release`,
    hint: `remove ${kind} from the document, or install a release that has it`,
  }));
}

function planDisk(spec: DiskSpec, field: string, input: StorageInput): Part {
  const resolved = resolve([spec.device], `${field}.device`, () => `${field}.device`, input.inventory);
  const [disk] = resolved.disks;
  if (disk === undefined) return { ...nothing, findings: resolved.findings };
  const standing = diskStanding(spec, `${field}.device`, disk, input);
  const part = { ...nothing, ...claimed([disk], () => `${field}.device`, spec.wipe, standing, resolved.findings) };
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
  const resolved = resolve([...spec.devices, ...spec.spares], `${field}.devices`, fieldOf, input.inventory);
  const { disks } = resolved;
  if (disks.length < spec.devices.length + spec.spares.length)
    return { ...nothing, findings: [...resolved.findings, ...lintMissing(spec.name, field, input)] };
  const members = disks.slice(0, spec.devices.length);
  const spares = disks.slice(spec.devices.length);
  const standing = arrayStanding(spec, field, disks, input);
  const lint = lintArray(spec, field, members, spares);
  const part = { ...nothing, ...claimed(disks, fieldOf, spec.wipe, standing, [...resolved.findings, ...lint]) };

  const uuid = standing.uuid ?? mdUuid(input.uuid());
  const wipes = disks.flatMap((disk, at) => wipeOf(`raid:${spec.name}:wipe:${at}`, disk, spec, standing, input));
  const started = standing.isThere ? assembleStep(spec.name, uuid, disks) : createStep(spec, uuid, members, spares);
  const arrays = [started, configStep(spec.name, uuid, disks.length)];
  const identities = disks.map((disk) => disk.identity);
  const own = { kind: "raid", name: spec.name, uuid, disks: identities } as const;
  if (spec.filesystem === "none") return { ...part, wipes, arrays, owned: [own] };

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

/** A held disk is wiped even if it shows nothing: something stands on it that must be taken down. */
function wipeOf(
  id: string,
  disk: Disk,
  spec: DiskSpec | RaidSpec,
  standing: Standing,
  { intents }: StorageInput,
): readonly StorageStep[] {
  if (standing.isOurs) return [];
  const isWanted = holdsData(disk) || disk.users.length > 0 || (spec.wipe && isWipeOpen(id, disk, intents));
  return isWanted ? [wipeStep(id, disk)] : [];
}

function claimed(
  disks: readonly Disk[],
  fieldOf: (at: number) => string,
  wipe: boolean,
  standing: Standing,
  findings: readonly Finding[],
): Pick<Part, "claims" | "findings"> {
  return {
    claims: disks.map((disk, at) => ({ disk, field: fieldOf(at), wipe, isOurs: standing.isOurs })),
    findings: [...findings, ...standing.findings],
  };
}

function resolve(
  refs: readonly DeviceRef[],
  listField: string,
  fieldOf: (at: number) => string,
  inventory: Inventory,
): { readonly disks: readonly Disk[]; readonly findings: readonly Finding[] } {
  const disks: Disk[] = [];
  const findings: Finding[] = [];
  for (const [at, ref] of refs.entries()) {
    const found = resolveDevice(ref, inventory);
    if (found.ok) {
      const twin = disks.findIndex((disk) => sameDisk(disk.identity, found.value.identity));
      if (twin === -1) disks.push(found.value);
      else findings.push(repeated(fieldOf(at), fieldOf(twin), found.value));
      if (isKernelName(ref)) findings.push(kernelName(fieldOf(at), ref, found.value));
      continue;
    }
    const { code, message, details, hint } = found.error;
    findings.push({
      severity: "error",
      code,
      path: refs.length === 1 ? listField : fieldOf(at),
      message,
      ...(details === undefined ? {} : { details }),
      ...(hint === undefined ? {} : { hint }),
    });
  }
  return { disks, findings };
}

const repeated = (path: string, earlier: string, disk: Disk): Finding => ({
  severity: "error",
  code: "claimed-twice",
  path,
  message: `disk ${describeDisk(disk)} is claimed already by ${earlier}`,
  hint: "name another disk",
});

const isKernelName = (ref: DeviceRef): ref is string => typeof ref === "string" && isUnstableDevice(ref);

function kernelName(path: string, ref: string, disk: Disk): Finding {
  const link = disk.links.find((each) => each.startsWith("/dev/disk/by-id/")) ?? disk.links[0];
  return {
    severity: "warning",
    code: "kernel-name",
    path,
    message: `${ref} can be another disk at the next boot; now it is ${describeDisk(disk)}`,
    ...(link === undefined ? {} : { hint: `use ${link}` }),
  };
}
