/**
 * The document's `install` and what was found → the steps of an installation. Pure.
 *
 * A live system forgets everything when power is lost, so the half-made disk identifies itself: its state partition is
 * called `corium-installing` until the last act, and all its UUIDs follow from the installation id, which is the UUID of
 * the first partition and of the table. Such a disk is gone on with; any other one needs the document's consent.
 *
 * With `install.mirror` there are two disks of one layout, and an array over each pair of partitions that firmware does
 * not read by itself; all that follows is written to the arrays.
 */
import type { DeviceRef, Document } from "../../config/document.ts";
import type { Layout, PartitionRole } from "../../iso/layout.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import type { Finding } from "../../kit/finding.ts";
import type { Intent } from "../../state/model.ts";
import type { Result } from "../../kit/result.ts";
import type { ArraysStep, ImageSource, InstallStep, LoaderStep, PartitionStep } from "./model.ts";
import { describeDisk, describeUser, holdsData } from "../../disks/describe.ts";
import { lintClaims } from "../../disks/lint.ts";
import { stepDevice, wipeStep } from "../../disks/plan.ts";
import { resolveDevice } from "../../disks/select.ts";
import { encodeSlotEnv } from "../../iso/bootenv.ts";
import { partitionOf, planLayout } from "../../iso/layout.ts";
import type { MirroredRole } from "../../iso/uuids.ts";
import { arrayNameOf, arrayUuidOf, bare, guidOf, MIRRORED_ROLES, partUuidsOf, twinOf } from "../../iso/uuids.ts";
import { hasErrors } from "../../kit/finding.ts";
import { err, ok } from "../../kit/result.ts";
import { arrayPath } from "../../raid/argv.ts";
import { hasTornTable } from "./mark.ts";
import type { DataBlocks } from "./purpose-lint.ts";
import { lintPurposes } from "./purpose-lint.ts";
import type { Standing } from "./standing.ts";
import { begunOn, installationOf, standingOf } from "./standing.ts";

export interface InstallInput {
  readonly document: Pick<Document, "install"> & DataBlocks;
  readonly documentSha256: string;
  readonly inventory: Inventory;
  readonly image: ImageSource;
  readonly version: string;
  /** Kernel arguments that go along to the disk. */
  readonly args: string;
  readonly uuid: () => string;
  /** Of this boot: an installation that failed before the table was written is gone on with under the same id. */
  readonly intents: readonly Intent[];
  /** `--wipe-own`: an installed Corium on this disk may be lost. The document's `wipe` is needed as well. */
  readonly mayGiveUp?: (disk: Disk) => boolean;
  /** By path, of disks whose table was being written when power was lost: the id that stands there. */
  readonly marks?: ReadonlyMap<string, string>;
  /** What has started this machine. Absent: not known. */
  readonly firmware?: Firmware;
}

export type Firmware = "bios" | "uefi";

export interface InstallPlan {
  readonly steps: readonly InstallStep[];
  readonly findings: readonly Finding[];
  readonly disk?: Disk;
}

export function planInstall(input: InstallInput): InstallPlan {
  const { install } = input.document;
  if (install === undefined) return { steps: [], findings: [] };
  const resolved = [
    resolveTarget("install.disk", install.disk, input),
    ...(install.mirror === undefined ? [] : [resolveTarget("install.mirror", install.mirror, input)]),
  ];
  const missing = resolved.flatMap((each) => ("finding" in each ? [each.finding] : []));
  const [first, second] = resolved.flatMap((each) => ("disk" in each ? [each] : []));
  if (missing.length > 0 || first === undefined) return { steps: [], findings: missing };
  const targets: Targets = second === undefined ? [first] : [first, second];
  const owned = present(targets).flatMap(({ disk, field, standing }) =>
    standing === "installed" && input.mayGiveUp?.(disk) !== true
      ? [
          refusal(
            "installed",
            field,
            `disk ${describeDisk(disk)} holds an installed Corium, which wipe never covers`,
            "remove the medium and boot from this disk; or give it up with --wipe-own at the claim or on the console",
          ),
        ]
      : [],
  );
  if (owned.length > 0) return { steps: [], findings: owned };
  const findings = [
    ...lintTargets(targets, install.wipe, input.inventory),
    ...lintSectors(targets),
    ...lintFirmware(targets, input.firmware),
    ...lintPurposes(input.document, present(targets), input.inventory),
  ];
  const installation = bare(namedBy(targets) ?? begunOn(first.disk, input.intents) ?? input.uuid());
  const layouts = layTargets(targets, installation, input.image.rootBytes);
  if (!layouts.ok) findings.push(layouts.error);
  const shown = { findings, disk: first.disk };
  if (!layouts.ok || hasErrors(findings)) return { steps: [], ...shown };
  return { steps: [...wipesOf(targets), ...stepsFor(layouts.value, installation, input)], ...shown };
}

/** A disk to install to, and the field that names it. */
interface Target {
  readonly field: "install.disk" | "install.mirror";
  readonly disk: Disk;
  readonly standing: Standing;
  /** What a half-made disk is called: the installation, or its twin on the second one. */
  readonly name?: string;
}

/** One disk, or the two of a mirrored system. */
type Targets = readonly [Target, Target?];

interface LaidTarget {
  readonly disk: Disk;
  readonly layout: Layout;
}

function resolveTarget(
  field: Target["field"],
  ref: DeviceRef,
  { inventory, marks }: InstallInput,
): Target | { readonly finding: Finding } {
  const found = resolveDevice(ref, inventory);
  if (found.ok) {
    const disk = found.value;
    const mark = hasTornTable(disk) ? marks?.get(disk.path) : undefined;
    const standing = mark === undefined ? standingOf(disk) : "half-made";
    return { field, disk, standing, ...(standing === "half-made" && { name: mark ?? installationOf(disk) }) };
  }
  const { code, message, details, hint } = found.error;
  const finding = refusal(code, field, message, hint);
  return { finding: details === undefined ? finding : { ...finding, details } };
}

/** `wipe` is consent for both disks: it is said of the installation. */
function lintTargets(targets: Targets, wipe: boolean, inventory: Inventory): Finding[] {
  const claims = present(targets).map(({ field, disk, standing }) => ({
    disk,
    field,
    wipe,
    isOurs: standing === "half-made",
  }));
  const busy = claims.flatMap(({ disk, field, isOurs }) => {
    const user = isOurs ? disk.users.find(({ isBusy }) => isBusy) : undefined;
    if (user === undefined) return [];
    return [refusal("in-use", field, `disk ${describeDisk(disk)} is in use by ${describeUser(user, inventory)}`)];
  });
  return [...lintClaims(claims, inventory), ...busy];
}

/** An array has one size of sector, and what was laid out for one size is not found on a disk of the other. */
function lintSectors([first, second]: Targets): Finding[] {
  if (second === undefined || second.disk.logicalSectorBytes === first.disk.logicalSectorBytes) return [];
  const say = ({ disk }: Target): string => `${describeDisk(disk)} has sectors of ${disk.logicalSectorBytes} bytes`;
  return [refusal("sector-size", second.field, `${say(second)}, ${say(first)}`, "mirror onto a disk of the same kind")];
}

/** INT 13h, and all that GRUB has in front of its core, count in sectors of 512 bytes. */
function lintFirmware(targets: Targets, firmware: Firmware | undefined): Finding[] {
  if (firmware !== "bios") return [];
  return present(targets)
    .filter(({ disk }) => disk.logicalSectorBytes !== 512)
    .map(({ field, disk }) =>
      refusal(
        "not-bootable",
        field,
        `${describeDisk(disk)} has sectors of ${disk.logicalSectorBytes} bytes, and a BIOS, which has started this machine, can't start from it`,
        "set the firmware to UEFI and start the medium again; or name a disk with sectors of 512 bytes",
      ),
    );
}

/** The smaller disk decides; what the larger one has more is left free, so that each can replace the other. */
function layTargets(
  targets: Targets,
  installation: string,
  rootImageBytes: number,
): Result<readonly LaidTarget[], Finding> {
  const disks = present(targets);
  const smallest = disks.reduce((least, each) => (each.disk.sizeBytes < least.disk.sizeBytes ? each : least));
  const laid: LaidTarget[] = [];
  for (const [at, { disk }] of disks.entries()) {
    const name = at === 0 ? installation : twinOf(installation);
    const layout = planLayout({
      diskSizeBytes: smallest.disk.sizeBytes,
      sectorBytes: disk.logicalSectorBytes,
      rootImageBytes,
      diskGuid: guidOf(name),
      partUuids: partUuidsOf(name),
    });
    if (!layout.ok) {
      const { code, message, hint } = layout.error;
      return err(refusal(code, smallest.field, `${describeDisk(smallest.disk)}: ${message}`, hint));
    }
    laid.push({ disk, layout: layout.value });
  }
  return ok(laid);
}

const present = (targets: Targets): readonly Target[] => targets.filter((each) => each !== undefined);

/** Which installation a half-made disk belongs to: the first one's name, or what the second one says of it. */
function namedBy([first, second]: Targets): string | undefined {
  if (first.name !== undefined) return first.name;
  return second?.name === undefined ? undefined : twinOf(second.name);
}

const wipesOf = (targets: Targets): readonly InstallStep[] =>
  present(targets).flatMap(({ disk, field, standing }) =>
    standing !== "half-made" && (holdsData(disk) || disk.users.length > 0)
      ? [wipeStep(field === "install.disk" ? "install:wipe" : "install:wipe:mirror", disk)]
      : [],
  );

function stepsFor(laid: readonly LaidTarget[], installation: string, input: InstallInput): readonly InstallStep[] {
  const { image, version, args } = input;
  const [first] = laid;
  if (first === undefined) return [];
  const isMirror = laid.length > 1;
  const uuidOf = (role: PartitionRole): string => partitionOf(first.layout, role).partUuid;
  const pathOf = (role: MirroredRole): string =>
    isMirror ? arrayPath(arrayUuidOf(installation, role)) : `/dev/disk/by-partuuid/${uuidOf(role)}`;
  const slotEnv = encodeSlotEnv({ version, args, rootHash: image.rootHash, hashOffsetBytes: image.hashOffsetBytes });
  return [
    ...laid.map((target, at): PartitionStep => ({
      kind: "install:partition",
      id: `install:partition${suffixOf(at)}`,
      title: `partition ${describeDisk(target.disk)}`,
      device: stepDevice(target.disk),
      layout: target.layout,
      destroys: [target.disk.identity],
    })),
    ...(isMirror ? [arraysStep(laid, installation)] : []),
    {
      kind: "install:slot",
      id: "install:slot",
      title: `write Corium ${version} into slot A`,
      image,
      rootPath: pathOf("rootA"),
      bootPath: pathOf("bootA"),
      bootUuid: uuidOf("bootA"),
      slotEnv: new TextDecoder().decode(slotEnv),
    },
    ...laid.map((target, at) => loaderStep(target, at, isMirror, installation)),
    {
      kind: "install:state",
      id: "install:state",
      title: "create the filesystems for state and data",
      filesystems: [
        { path: pathOf("state"), uuid: uuidOf("state"), label: "corium-state" },
        { path: pathOf("data"), uuid: uuidOf("data"), label: "corium-data" },
      ],
    },
    {
      kind: "install:document",
      id: "install:document",
      title: "take document, claim and identity along",
      statePath: pathOf("state"),
      installation,
      documentSha256: input.documentSha256,
    },
    {
      kind: "install:boot",
      id: "install:boot",
      title: isMirror ? "make both disks bootable" : "make the disk bootable",
      disks: laid.map(({ disk, layout }) => ({
        device: stepDevice(disk),
        espPartUuid: partitionOf(layout, "esp").partUuid,
      })),
      installation,
    },
  ];
}

const suffixOf = (at: number): string => (at === 0 ? "" : ":mirror");

const arraysStep = (laid: readonly LaidTarget[], installation: string): ArraysStep => ({
  kind: "install:arrays",
  id: "install:arrays",
  title: "mirror the two disks",
  arrays: MIRRORED_ROLES.map((role) => ({
    name: arrayNameOf(role),
    uuid: arrayUuidOf(installation, role),
    members: laid.map(({ layout }) => partitionOf(layout, role).partUuid),
  })),
});

function loaderStep({ disk, layout }: LaidTarget, at: number, isMirror: boolean, installation: string): LoaderStep {
  const bios = partitionOf(layout, "bios");
  return {
    kind: "install:loader",
    id: `install:loader${suffixOf(at)}`,
    title: `write the boot loader for BIOS and UEFI${isMirror ? ` to ${describeDisk(disk)}` : ""}`,
    device: stepDevice(disk),
    biosPartUuid: bios.partUuid,
    biosStartBytes: bios.startBytes,
    biosSizeBytes: bios.sizeBytes,
    espPartUuid: partitionOf(layout, "esp").partUuid,
    sectorBytes: layout.sectorBytes,
    installation,
  };
}

/** What of the command line configures the machine rather than this boot, in its order. */
export function carriedArguments(cmdline: string): string {
  const carried = /^(ip|nameserver|hostname|console|corium\.ntp|corium\.luks-pcr7|rd\.route|vlan|bond)=/;
  return cmdline
    .split(/\s+/)
    .filter((argument) => carried.test(argument))
    .join(" ");
}

const refusal = (code: string, path: string, message: string, hint?: string): Finding => ({
  severity: "error",
  code,
  path,
  message,
  ...(hint === undefined ? {} : { hint }),
});
