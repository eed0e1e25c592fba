/** Whose a disk is, by what is written on it. Pure. */
import type { Disk } from "../../kit/disk.ts";
import type { Intent } from "../../state/model.ts";
import type { PartitionStep } from "./model.ts";
import { PARTITIONS } from "../../iso/layout.ts";
import { bare, partUuidsOf } from "../../iso/uuids.ts";
import { sameDisk } from "../../kit/disk.ts";
import { INSTALLING } from "./table.ts";

export type Standing = "installed" | "half-made" | "other";

/** Whose is this disk? Only names together with UUIDs that follow from one another make it ours. */
export function standingOf(disk: Disk): Standing {
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

/** Meaningful on a disk that has our table. */
export const installationOf = (disk: Disk): string =>
  bare(disk.partitions.find(({ number }) => number === 1)?.partUuid ?? "");

/** An installation of this boot that failed before a table was written. */
export function begunOn(disk: Disk, intents: readonly Intent[]): string | undefined {
  const intent = intents.find(({ stepId }) => stepId === "install:partition");
  const isHere = intent?.disks.length === 1 && intent.disks.every((identity) => sameDisk(identity, disk.identity));
  return isHere ? (intent.step as PartitionStep).layout.diskGuid : undefined;
}
