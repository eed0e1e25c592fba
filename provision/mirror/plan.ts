/** A disk that works and a blank one → the steps that make a mirrored system of them. Pure. */
import { describeDisk, holdsData } from "../../disks/describe.ts";
import { lintClaims } from "../../disks/lint.ts";
import { stepDevice, wipeStep } from "../../disks/plan.ts";
import type { Layout } from "../../iso/layout.ts";
import { ALIGNMENT_BYTES, gptBytes, partitionOf, PARTITIONS } from "../../iso/layout.ts";
import { arrayNameOf, arrayUuidOf, guidOf, MIRRORED_ROLES, partUuidsOf } from "../../iso/uuids.ts";
import type { Disk, DiskIdentity, Inventory } from "../../kit/disk.ts";
import type { Finding } from "../../kit/finding.ts";
import { hasErrors } from "../../kit/finding.ts";
import { INSTALLING } from "../install/table.ts";
import type { ReplacementStep } from "./model.ts";
import { sha256Of } from "../../kit/sha256.ts";

export interface SystemReplacement {
  readonly inventory: Inventory;
  readonly installation: string;
  /** The one that has everything: what the other must become. */
  readonly survivor: Disk;
  readonly replacement: Disk;
  /** What it holds may be lost. */
  readonly isWipeAllowed: boolean;
  /** Where a finding points: the field or argument that names the new disk. */
  readonly path: string;
  /** What the ids of the steps begin with: each request has its own, or an old intent would stand for a new one. */
  readonly prefix: string;
}

export interface SystemReplacementPlan {
  readonly steps: readonly ReplacementStep[];
  readonly findings: readonly Finding[];
}

export function planSystemReplacement(input: SystemReplacement): SystemReplacementPlan {
  const { inventory, installation, survivor, replacement, isWipeAllowed, path, prefix } = input;
  const layout = layoutLike(survivor, nameOf(installation, replacement.identity));
  const isOurs = isHalfMade(replacement, layout);
  const findings = [
    ...lintClaims([{ disk: replacement, field: path, wipe: isWipeAllowed, isOurs }], inventory),
    ...lintFit(input, layout),
  ];
  if (hasErrors(findings)) return { steps: [], findings };
  const device = stepDevice(replacement);
  const wipes =
    !isOurs && (holdsData(replacement) || replacement.users.length > 0)
      ? [wipeStep(`${prefix}:wipe`, replacement)]
      : [];
  return {
    findings,
    steps: [
      ...wipes,
      {
        kind: "install:partition",
        id: `${prefix}:partition`,
        title: `partition ${describeDisk(replacement)} as ${describeDisk(survivor)}`,
        device,
        layout,
        destroys: [replacement.identity],
      },
      {
        kind: "mirror:join",
        id: `${prefix}:join`,
        title: `make ${describeDisk(replacement)} part of the mirrored system`,
        device,
        members: MIRRORED_ROLES.map((role) => ({
          name: arrayNameOf(role),
          arrayUuid: arrayUuidOf(installation, role),
          partUuid: partitionOf(layout, role).partUuid,
        })),
      },
      {
        kind: "mirror:rebuild",
        id: `${prefix}:rebuild`,
        title: `copy the system to ${describeDisk(replacement)} and make it bootable`,
        device,
        installation,
      },
    ],
  };
}

/**
 * Of its own UUIDs, for the disk that it replaces may come back; but the same ones when this is gone on with after a
 * power cut.
 */
function nameOf(installation: string, { serial, wwn, byPath }: DiskIdentity): string {
  const disk = [serial, wwn, byPath].join(" ");
  return sha256Of(`corium ${installation} disk ${disk}`).slice(0, 32);
}

/** Each partition begins where the one before it ends (iso/layout.ts), so their sizes tell all. */
function layoutLike(survivor: Disk, name: string): Layout {
  const partUuids = partUuidsOf(name);
  let startBytes = ALIGNMENT_BYTES;
  const partitions = PARTITIONS.map((kind) => {
    const sizeBytes = survivor.partitions.find(({ number }) => number === kind.number)?.sizeBytes ?? 0;
    const partition = { ...kind, partUuid: partUuids[kind.role], startBytes, sizeBytes };
    startBytes += sizeBytes;
    return partition;
  });
  return { diskGuid: guidOf(name), sectorBytes: survivor.logicalSectorBytes, partitions };
}

/** What an earlier attempt for this very purpose left behind. */
const isHalfMade = (disk: Disk, layout: Layout): boolean =>
  layout.partitions.every(({ number, partUuid, role, name }) =>
    disk.partitions.some(
      (found) =>
        found.number === number &&
        found.partUuid?.toLowerCase() === partUuid &&
        (found.label === name || (role === "state" && found.label === INSTALLING)),
    ),
  );

function lintFit({ survivor, replacement, path }: SystemReplacement, layout: Layout): Finding[] {
  const refuse = (code: string, message: string, hint: string): Finding[] => [
    { severity: "error", code, path, message: `${describeDisk(replacement)}: ${message}`, hint },
  ];
  const { logicalSectorBytes, sizeBytes } = replacement;
  if (logicalSectorBytes !== survivor.logicalSectorBytes) {
    const message = `its sectors have ${logicalSectorBytes} bytes, those of ${describeDisk(survivor)} ${survivor.logicalSectorBytes}`;
    return refuse("sector-size", message, "take a disk of the same kind");
  }
  const data = partitionOf(layout, "data");
  const neededBytes = data.startBytes + data.sizeBytes + gptBytes(layout.sectorBytes);
  if (sizeBytes >= neededBytes) return [];
  return refuse("disk-too-small", `the disk has ${sizeBytes} bytes, ${neededBytes} are needed`, "take a larger disk");
}
