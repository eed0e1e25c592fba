/** What each kind of storage adds to the plan, and what their planners have in common. */
import { isUnstableDevice } from "../config/device.ts";
import type { DeviceRef, Document } from "../config/document.ts";
import { describeDisk, describeIdentity, holdsData } from "../disks/describe.ts";
import type { DiskClaim } from "../disks/lint.ts";
import type { DiskMountStep, DiskStep } from "../disks/model.ts";
import { wipeStep } from "../disks/plan.ts";
import { resolveDevice } from "../disks/select.ts";
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Disk, DiskIdentity, Inventory, MdArray, OwnedStorage, ReplacedDisk } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { LuksStep, Probed, TpmFacts } from "../luks/model.ts";
import type { RaidStep } from "../raid/model.ts";
import type { Intent } from "../state/model.ts";
import type { WrittenMount } from "./mount-plan.ts";
import { isWipeOpen } from "./storage-standing.ts";

export type StorageStep = DiskStep | RaidStep | LuksStep;

export interface StorageInput {
  readonly document: Pick<Document, "role" | "disks" | "raid" | "luks" | "zfs">;
  readonly inventory: Inventory;
  readonly owned: readonly OwnedStorage[];
  readonly intents: readonly Intent[];
  /** Disks of arrays that others took the place of: the document may name either. */
  readonly replaced?: readonly ReplacedDisk[];
  /** RFC 9562 version 4. Asked in the document's order, only for what no record has chosen yet. */
  readonly uuid: () => string;
  /** `--wipe-own`: what is ours may be destroyed like anything else, where the document says `wipe: true`. */
  readonly ownLossSinceMs?: number;
  /** Read beforehand where the document has encrypted volumes. */
  readonly volumes?: VolumeFacts;
  /** Mount units of this document and of earlier ones. */
  readonly written?: readonly WrittenMount[];
  /** An earlier attempt got as far as k0s. */
  readonly hasK0sRecord?: boolean;
  /** By mount point of the document, what lies there while nothing is mounted: the mount would hide it. */
  readonly hidden?: ReadonlyMap<string, readonly string[]>;
}

export interface VolumeFacts {
  readonly tpm: TpmFacts;
  /** By name: what the declared unlock opened, of headers that nobody recorded. */
  readonly probed: ReadonlyMap<string, Probed>;
}

/** What one entry of the document adds to the plan, by phase. */
export interface Part {
  readonly claims: readonly DiskClaim[];
  readonly findings: readonly Finding[];
  readonly wipes: readonly StorageStep[];
  readonly arrays: readonly StorageStep[];
  /** Encrypted volumes are made and opened after the arrays that they may lie on. */
  readonly volumes: readonly StorageStep[];
  readonly filesystems: readonly StorageStep[];
  readonly mounts: readonly DiskMountStep[];
  readonly owned: readonly OwnedStorage[];
  readonly array?: PlannedArray;
}

/** For a volume that lies on it. */
export interface PlannedArray {
  readonly name: string;
  readonly uuid: string;
  readonly disks: readonly Disk[];
  /** At the most. */
  readonly sizeBytes: number;
  /** As it is on the disks; absent when it is yet to be made. */
  readonly found?: MdArray;
  /** As journalled. */
  readonly madeAtMs?: number;
}

export const nothing: Part = {
  claims: [],
  findings: [],
  wipes: [],
  arrays: [],
  volumes: [],
  filesystems: [],
  mounts: [],
  owned: [],
};

/** A held disk is wiped even if it shows nothing: something stands on it that must be taken down. */
export function wipeOf(
  id: string,
  disk: Disk,
  spec: { readonly wipe: boolean },
  standing: { readonly isOurs: boolean },
  { intents }: Pick<StorageInput, "intents">,
): readonly StorageStep[] {
  if (standing.isOurs) return [];
  const isWanted = holdsData(disk) || disk.users.length > 0 || (spec.wipe && isWipeOpen(id, disk, intents));
  return isWanted ? [wipeStep(id, disk)] : [];
}

export function claimed(
  disks: readonly Disk[],
  fieldOf: (at: number) => string,
  wipe: boolean,
  standing: { readonly isOurs: boolean; readonly findings: readonly Finding[] },
  findings: readonly Finding[],
): Pick<Part, "claims" | "findings"> {
  return {
    claims: disks.map((disk, at) => ({ disk, field: fieldOf(at), wipe, isOurs: standing.isOurs })),
    findings: [...findings, ...standing.findings],
  };
}

export function resolve(
  refs: readonly DeviceRef[],
  listField: string,
  fieldOf: (at: number) => string,
  inventory: Inventory,
  standIn: (ref: DeviceRef) => DiskIdentity | undefined = () => undefined,
): { readonly disks: readonly Disk[]; readonly findings: readonly Finding[] } {
  const disks: Disk[] = [];
  const findings: Finding[] = [];
  for (const [at, ref] of refs.entries()) {
    const instead = standIn(ref);
    const found = instead === undefined ? resolveDevice(ref, inventory) : findDisk(instead, inventory);
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

function findDisk(identity: DiskIdentity, inventory: Inventory): Result<Disk, AppError> {
  const [disk, ...more] = inventory.disks.filter((each) => sameDisk(each.identity, identity));
  if (disk !== undefined && more.length === 0) return ok(disk);
  const message = `the disk that took the place of the one named, ${describeIdentity(identity)}, is not here`;
  return fail("disk-not-found", message, { hint: "connect it" });
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
