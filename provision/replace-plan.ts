/** One disk in the place of another: request + machine + what we remember → steps. Pure; a refusal plans nothing. */
import { deviceKey } from "../config/device.ts";
import type { DeviceRef, Document, RaidSpec } from "../config/document.ts";
import { describeDisk, describeIdentity, holdsData } from "../disks/describe.ts";
import { lintClaims } from "../disks/lint.ts";
import type { DiskWipeStep } from "../disks/model.ts";
import { wipeStep } from "../disks/plan.ts";
import { resolveDevice } from "../disks/select.ts";
import type { Disk, DiskIdentity, Inventory, OwnedStorage, ReplacedDisk } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import { hasErrors } from "../kit/finding.ts";
import type { RaidReplaceStep } from "../raid/model.ts";
import type { ArrayReport } from "../raid/report.ts";
import type { Intent } from "../state/model.ts";
import type { ReplacementStep } from "./mirror/model.ts";
import { guardOwn } from "./storage-standing.ts";

export type ReplaceStep = DiskWipeStep | RaidReplaceStep | ReplacementStep;

export interface ReplaceRequest {
  readonly array: string;
  /** Serial, WWN or path of the disk that goes. */
  readonly old: string;
  /** Serial or path of the disk that comes. */
  readonly new: string;
  readonly isWipeAllowed: boolean;
}

export interface ReplaceInput {
  readonly request: ReplaceRequest;
  /** Of the request; part of the ids of its steps. */
  readonly id: number;
  /** It was begun before: what it left on the new disk is its own. */
  readonly isResumed: boolean;
  readonly document: Pick<Document, "raid">;
  readonly inventory: Inventory;
  readonly owned: readonly OwnedStorage[];
  readonly intents: readonly Intent[];
  readonly arrays: readonly ArrayReport[];
}

export interface ReplacePlan {
  readonly findings: readonly Finding[];
  /** Empty when refused. */
  readonly steps: readonly ReplaceStep[];
  readonly replaced?: ReplacedDisk;
}

const error = (code: string, path: string, message: string, hint: string): Finding => ({
  severity: "error",
  code,
  path,
  message,
  hint,
});

const refused = (...findings: readonly Finding[]): ReplacePlan => ({ findings: findings.map(asRequested), steps: [] });

/** The cures of the document's rules, for somebody who asked for a replacement: there is no `--wipe-own` to it. */
export function asRequested(finding: Finding): Finding {
  if (finding.code === "own-data")
    return {
      ...finding,
      hint: "name another disk, or blank this one elsewhere: a replacement destroys nothing of ours",
    };
  return finding.hint === undefined ? finding : { ...finding, hint: finding.hint.replace("wipe: true", "--wipe") };
}

export function planReplacement(input: ReplaceInput): ReplacePlan {
  const { request, owned, document, arrays } = input;
  const record = owned.find(({ kind, name }) => kind === "raid" && name === request.array);
  const spec = document.raid.find(({ name }) => name === request.array);
  const report = arrays.find(({ name }) => name === request.array);
  if (record === undefined || spec === undefined || report === undefined) {
    const names = owned.filter(({ kind }) => kind === "raid").map(({ name }) => name);
    const hint = names.length === 0 ? "this node has no arrays" : `arrays of this node: ${names.join(", ")}`;
    return refused(error("array-not-found", "array", `no array of this node is called ${request.array}`, hint));
  }
  const broken = lintState(spec, report);
  if (broken !== undefined) return refused(broken);
  const at = findOld(request.old, record, input.inventory);
  const old = record.disks[at];
  const refs: readonly DeviceRef[] = [...spec.devices, ...spec.spares];
  const ref = refs[at];
  if (old === undefined || ref === undefined) {
    const hint = `its disks: ${record.disks.map(describeIdentity).join("; ")}`;
    return refused(error("not-a-member", "old", `${request.old} is no disk of array ${spec.name}`, hint));
  }
  const found = resolveDevice(request.new.startsWith("/") ? request.new : { serial: request.new }, input.inventory);
  if (!found.ok) {
    const { code, message, details, hint } = found.error;
    return refused({
      ...error(code, "new", message, hint ?? "cctl disks lists every disk"),
      ...(details === undefined ? {} : { details }),
    });
  }
  return withDisk(input, { spec, record, report, old, ref, disk: found.value });
}

interface Chosen {
  readonly spec: RaidSpec;
  readonly record: OwnedStorage;
  readonly report: ArrayReport;
  readonly old: DiskIdentity;
  readonly ref: DeviceRef;
  readonly disk: Disk;
}

function withDisk(input: ReplaceInput, chosen: Chosen): ReplacePlan {
  const { inventory, request } = input;
  const { spec, record, report, old, ref, disk } = chosen;
  const { owned } = input;
  const oldDisk = inventory.disks.find((each) => sameDisk(each.identity, old));
  const stands = report.members.find(({ device }) => device !== undefined && device === oldDisk?.path);
  const isMember = report.members.some(({ device, state }) => device === disk.path && state !== "failed");
  const isOurs = isMember || (input.isResumed && isBegun(disk, record.uuid));
  const findings = [
    ...lintPlace(chosen, stands !== undefined && stands.state !== "failed" && stands.state !== "spare"),
    ...lintDisk(chosen, inventory),
    ...lintClaims([{ disk, field: "new", wipe: request.isWipeAllowed, isOurs }], inventory),
    // A disk that an earlier request failed to bring in carries this array's superblock, and nothing of value.
    ...(isOurs || isBegun(disk, record.uuid) ? [] : guardOwn([disk], input, "new")),
  ];
  if (hasErrors(findings)) return refused(...findings);
  const others = owned.filter((each) => each !== record && !isOn(each, record));
  const used = isOurs ? [] : lintUsed(disk, others, "new");
  if (used.length > 0) return refused(...used);

  const prefix = `raid:${spec.name}:replace:${input.id}`;
  const { name } = spec;
  const { uuid } = record;
  const member = { path: disk.path, identity: disk.identity };
  const goes = oldDisk === undefined ? undefined : { path: oldDisk.path, identity: oldDisk.identity };
  const steps: ReplaceStep[] = [
    ...(!isOurs && (holdsData(disk) || disk.users.length > 0) ? [wipeStep(`${prefix}:wipe`, disk)] : []),
    {
      kind: "raid:add",
      id: `${prefix}:add`,
      title: `add disk ${describeDisk(disk)} to array ${name}`,
      name,
      uuid,
      member,
      destroys: [disk.identity],
    },
    {
      kind: "raid:rebuild",
      id: `${prefix}:rebuild`,
      title: `rebuild array ${name} onto ${disk.path}`,
      name,
      uuid,
      member,
      ...(goes === undefined ? {} : { leaving: goes }),
    },
  ];
  if (goes !== undefined)
    steps.push({
      kind: "raid:retire",
      id: `${prefix}:retire`,
      title: `clear the old disk ${describeDisk(goes)}`,
      name,
      uuid,
      member: goes,
      destroys: [goes.identity],
    });
  return {
    findings,
    steps,
    replaced: { array: name, device: deviceKey(ref), old, new: disk.identity, newLinks: disk.links },
  };
}

function lintState(spec: RaidSpec, { state }: ArrayReport): Finding | undefined {
  const { name } = spec;
  if (spec.level === 0)
    return error(
      "no-redundancy",
      "array",
      `array ${name} has level 0: what a disk of it held is nowhere else`,
      "restore it from a backup",
    );
  if (["failed", "inactive", "missing"].includes(state))
    return error(
      "array-lost",
      "array",
      `array ${name} is ${state}: there is nothing to rebuild a disk from`,
      "connect its disks and restart the node; or restore a backup",
    );
  return undefined;
}

/** Place in the record: members as declared, then spares. */
function findOld(wanted: string, record: OwnedStorage, inventory: Inventory): number {
  const isNamed = (identity: DiskIdentity): boolean => {
    if (!wanted.startsWith("/")) return identity.serial === wanted || identity.wwn === wanted;
    const disk = inventory.disks.find(({ path, links }) => path === wanted || links.includes(wanted));
    return disk === undefined ? identity.byPath === wanted : sameDisk(disk.identity, identity);
  };
  const found = record.disks.flatMap((identity, at) => (isNamed(identity) ? [at] : []));
  return found.length === 1 ? (found[0] ?? -1) : -1;
}

/** Power was lost after it was made a member, and before the array knew: nothing but that is on it. */
const isBegun = (disk: Disk, uuid: string): boolean =>
  disk.partitions.length === 0 &&
  disk.signatures.length > 0 &&
  disk.signatures.every(
    (each) => each.type === "linux_raid_member" && each.uuid?.replace(/-/g, "") === uuid.replace(/:/g, ""),
  );

/** The kernel gives a new disk to whoever is missing: then the one that was meant would keep its place. */
function lintPlace({ spec, report, disk, record }: Chosen, isServing: boolean): Finding[] {
  const findings: Finding[] = [];
  if (record.disks.some((each) => sameDisk(each, disk.identity)))
    findings.push(
      error(
        "already-member",
        "new",
        `disk ${describeDisk(disk)} belongs to array ${spec.name} already`,
        "name a disk that is not in use",
      ),
    );
  if (!isServing) return findings;
  const others = report.members.filter(
    ({ state }) => state === "missing" || state === "failed" || state === "detached",
  );
  if (report.active < report.expected && others.length > 0) {
    const names = others.map(({ serial, device }) => serial ?? device ?? "a disk").join(", ");
    const message = `array ${spec.name} is degraded: ${names} is missing, and a new disk would take that place`;
    findings.push(error("other-missing", "old", message, "replace the missing disk first"));
  }
  if (
    ["rebuilding", "resyncing", "reshaping"].includes(report.state) &&
    !report.members.some(({ device }) => device === disk.path)
  )
    findings.push(
      error(
        "array-busy",
        "array",
        `array ${spec.name} is ${report.state}`,
        "wait until that is over: cctl status shows its progress",
      ),
    );
  return findings;
}

/** A volume on the array: it is recorded with the array's disks. */
const isOn = ({ kind, disks }: OwnedStorage, array: OwnedStorage): boolean =>
  kind === "luks" && disks.every((disk) => array.disks.some((each) => sameDisk(each, disk)));

const WORDS = { disk: "disk", raid: "array", luks: "volume" } as const;

/** Nothing on it need tell whose it is: a disk without a filesystem is used as it is, and a member may be blank. */
export function lintUsed(disk: Disk, owned: readonly OwnedStorage[], path: string): Finding[] {
  const [user] = owned.filter(({ disks }) => disks.some((each) => sameDisk(each, disk.identity)));
  if (user === undefined) return [];
  const message = `disk ${describeDisk(disk)} belongs to ${WORDS[user.kind]} ${user.name} of this node`;
  return [error("claimed-twice", path, message, "name a disk that is not in use")];
}

function lintDisk({ spec, record, old, disk }: Chosen, inventory: Inventory): Finding[] {
  const findings: Finding[] = [];
  const least = Math.min(...record.disks.map(({ sizeBytes }) => sizeBytes));
  if (disk.sizeBytes < least) {
    const message = `disk ${describeDisk(disk)} has ${disk.sizeBytes} bytes, the smallest member of array ${spec.name} ${least}`;
    findings.push(error("member-too-small", "new", message, "take a disk at least as large as the smallest member"));
  }
  const others = inventory.disks.filter((each) =>
    record.disks.some((one) => !sameDisk(one, old) && sameDisk(one, each.identity)),
  );
  const differing = others.find((each) => each.logicalSectorBytes !== disk.logicalSectorBytes);
  if (differing !== undefined) {
    const message = `disk ${disk.path} has sectors of ${disk.logicalSectorBytes} bytes, member ${differing.path} of array ${spec.name} ${differing.logicalSectorBytes}`;
    findings.push(error("mixed-sectors", "new", message, "take a disk with sectors of the same size"));
  }
  return findings;
}
