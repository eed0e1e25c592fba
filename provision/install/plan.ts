/**
 * The document's `install` and what was found → the steps of an installation. Pure.
 *
 * A live system forgets everything when power is lost, so the half-made disk identifies itself: its state partition is
 * called `corium-installing` until the last act, and all its UUIDs follow from the installation id, which is the UUID of
 * the first partition and of the table. Such a disk is gone on with; any other one needs the document's consent.
 */
import { createHash } from "node:crypto";
import type { Document } from "../../config/document.ts";
import type { Layout, PartitionRole } from "../../iso/layout.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import type { Finding } from "../../kit/finding.ts";
import type { Intent } from "../../state/model.ts";
import type { ImageSource, InstallStep, PartitionStep } from "./model.ts";
import { describeDisk, describeUser, holdsData } from "../../disks/describe.ts";
import { lintClaims } from "../../disks/lint.ts";
import { stepDevice, wipeStep } from "../../disks/plan.ts";
import { resolveDevice } from "../../disks/select.ts";
import { encodeSlotEnv } from "../../iso/bootenv.ts";
import { partitionOf, PARTITIONS, planLayout } from "../../iso/layout.ts";
import { sameDisk } from "../../kit/disk.ts";
import { hasErrors } from "../../kit/finding.ts";
import { hasTornTable } from "./mark.ts";
import { INSTALLING } from "./table.ts";

export interface InstallInput {
  readonly document: Pick<Document, "install">;
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
}

export interface InstallPlan {
  readonly steps: readonly InstallStep[];
  readonly findings: readonly Finding[];
  readonly disk?: Disk;
}

export function planInstall(input: InstallInput): InstallPlan {
  const { document, inventory, image } = input;
  const { install } = document;
  if (install === undefined) return { steps: [], findings: [] };
  const found = resolveDevice(install.disk, inventory);
  if (!found.ok) {
    const { code, message, details, hint } = found.error;
    const finding = refusal(code, "install.disk", message, hint);
    return { steps: [], findings: [details === undefined ? finding : { ...finding, details }] };
  }
  const disk = found.value;
  if (install.mirror !== undefined) {
    return refuse(
      "not-in-release",
      "install.mirror",
      "a mirrored root is not in this release",
      "remove install.mirror",
    );
  }
  const mark = hasTornTable(disk) ? input.marks?.get(disk.path) : undefined;
  const standing = mark === undefined ? standingOf(disk) : "half-made";
  if (standing === "installed" && input.mayGiveUp?.(disk) !== true) {
    return refuse(
      "installed",
      "install.disk",
      `disk ${describeDisk(disk)} holds an installed Corium, which wipe never covers`,
      "remove the medium and boot from this disk; or give it up with --wipe-own at the claim or on the console",
    );
  }
  const claim = { disk, field: "install.disk", wipe: install.wipe, isOurs: standing === "half-made" };
  const findings = lintClaims([claim], inventory);
  const busy = disk.users.find((user) => user.isBusy);
  if (claim.isOurs && busy !== undefined) {
    findings.push(refusal("in-use", "install.disk", `disk ${describeDisk(disk)} is in use by ${describeUser(busy)}`));
  }
  const named = mark ?? (standing === "half-made" ? installationOf(disk) : undefined);
  const installation = named ?? begunOn(disk, input.intents) ?? input.uuid();
  const layout = planLayout({
    diskSizeBytes: disk.sizeBytes,
    sectorBytes: disk.logicalSectorBytes,
    rootImageBytes: image.rootBytes,
    diskGuid: guidOf(bare(installation)),
    partUuids: partUuidsOf(bare(installation)),
  });
  if (!layout.ok) {
    findings.push(
      refusal(layout.error.code, "install.disk", `${describeDisk(disk)}: ${layout.error.message}`, layout.error.hint),
    );
  }
  if (!layout.ok || hasErrors(findings)) return { steps: [], findings, disk };
  const wipes =
    standing !== "half-made" && (holdsData(disk) || disk.users.length > 0) ? [wipeStep("install:wipe", disk)] : [];
  return { steps: [...wipes, ...stepsFor(disk, layout.value, bare(installation), input)], findings, disk };
}

function stepsFor(disk: Disk, layout: Layout, installation: string, input: InstallInput): readonly InstallStep[] {
  const { image, version, args } = input;
  const uuidOf = (role: PartitionRole): string => partitionOf(layout, role).partUuid;
  const device = stepDevice(disk);
  const bios = partitionOf(layout, "bios");
  const slotEnv = encodeSlotEnv({ version, args, rootHash: image.rootHash, hashOffsetBytes: image.hashOffsetBytes });
  return [
    {
      kind: "install:partition",
      id: "install:partition",
      title: `partition ${describeDisk(disk)}`,
      device,
      layout,
      destroys: [disk.identity],
    },
    {
      kind: "install:slot",
      id: "install:slot",
      title: `write Corium ${version} into slot A`,
      image,
      rootPartUuid: uuidOf("rootA"),
      bootPartUuid: uuidOf("bootA"),
      slotEnv: new TextDecoder().decode(slotEnv),
    },
    {
      kind: "install:loader",
      id: "install:loader",
      title: "write the boot loader for BIOS and UEFI",
      device,
      biosPartUuid: bios.partUuid,
      biosStartBytes: bios.startBytes,
      biosSizeBytes: bios.sizeBytes,
      espPartUuid: uuidOf("esp"),
      sectorBytes: layout.sectorBytes,
      installation,
    },
    {
      kind: "install:state",
      id: "install:state",
      title: "create the filesystems for state and data",
      filesystems: [
        { partUuid: uuidOf("state"), label: "corium-state" },
        { partUuid: uuidOf("data"), label: "corium-data" },
      ],
    },
    {
      kind: "install:document",
      id: "install:document",
      title: "take document, claim and identity along",
      statePartUuid: uuidOf("state"),
      installation,
      documentSha256: input.documentSha256,
    },
    {
      kind: "install:boot",
      id: "install:boot",
      title: "make the disk bootable",
      device,
      espPartUuid: uuidOf("esp"),
      installation,
    },
  ];
}

/** Whose is this disk? Only names together with UUIDs that follow from one another make it ours. */
export function standingOf(disk: Disk): "installed" | "half-made" | "other" {
  const labels = new Map(disk.partitions.map((partition) => [partition.number, partition.label]));
  const state = PARTITIONS.find(({ role }) => role === "state");
  const label = labels.get(state?.number ?? 0);
  if (label === state?.name) return "installed";
  if (label !== INSTALLING) return "other";
  const wanted = partUuidsOf(installationOf(disk));
  const isDerived = PARTITIONS.every(({ role, number }) =>
    disk.partitions.some((found) => found.number === number && found.partUuid?.toLowerCase() === wanted[role]),
  );
  return isDerived ? "half-made" : "other";
}

const bare = (uuid: string): string => uuid.replaceAll("-", "").toLowerCase();

const installationOf = (disk: Disk): string => bare(disk.partitions.find(({ number }) => number === 1)?.partUuid ?? "");

function begunOn(disk: Disk, intents: readonly Intent[]): string | undefined {
  const intent = intents.find(({ stepId }) => stepId === "install:partition");
  const isHere = intent?.disks.length === 1 && intent.disks.every((identity) => sameDisk(identity, disk.identity));
  return isHere ? (intent.step as PartitionStep).layout.diskGuid : undefined;
}

/** The first partition is called as the table; the others follow by hash (RFC 9562 version 8: an own recipe). */
export function partUuidsOf(installation: string): Readonly<Record<PartitionRole, string>> {
  const entries = PARTITIONS.map(({ role }) => [
    role,
    role === "bios" ? guidOf(installation) : derived(installation, role),
  ]);
  return Object.fromEntries(entries) as Record<PartitionRole, string>;
}

function derived(installation: string, role: string): string {
  const hex = createHash("sha256").update(`corium ${installation} ${role}`).digest("hex");
  return guidOf(`${hex.slice(0, 12)}8${hex.slice(13, 16)}8${hex.slice(17, 32)}`);
}

const guidOf = (hex: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;

/** What of the command line configures the machine rather than this boot, in its order. */
export function carriedArguments(cmdline: string): string {
  const carried = /^(ip|nameserver|hostname|console|corium\.ntp|rd\.route|vlan|bond)=/;
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
const refuse = (...of: Parameters<typeof refusal>): InstallPlan => ({ steps: [], findings: [refusal(...of)] });
