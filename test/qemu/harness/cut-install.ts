/** What may be found after power was lost during an installation, and what may not. */
import { join } from "node:path";
import { formatFinding } from "../../../kit/finding.ts";
import { planInstall } from "../../../provision/install/plan.ts";
import { readMarks } from "../../../provision/install/remains/driver.ts";
import { checkDatabase, checkExt4, ext4Label, fileIn, inventoryOf, machineOf, sh } from "./cut-disk.ts";
import type { GptPartition } from "./gpt.ts";
import { readGpt } from "./gpt.ts";
import type { View } from "./replayed-image.ts";
import { readFileSync, rmSync, existsSync } from "node:fs";

export type Found = "blank" | "begun" | "installed";

export interface InstallCheck {
  readonly found: Found | "refused";
  readonly problems: readonly string[];
}

/** The finished disk, against which each cut is held. */
export interface Finished {
  readonly view: View;
  readonly partitions: readonly GptPartition[];
  /** 32 hex digits. */
  readonly installation: string;
}

export function finishedDisk(view: View): Finished {
  const { primary } = readGpt(view.read, view.sizeBytes);
  if (primary === undefined) throw new Error("the finished disk has no table");
  return { view, partitions: primary, installation: (primary[0]?.partUuid ?? "").replaceAll("-", "") };
}

const partOf = (disk: View, { partitions }: Finished, number: number): View => {
  const part = partitions.find((each) => each.number === number);
  if (part === undefined) throw new Error(`the finished disk has no partition ${number}`);
  return disk.part(part.startBytes, part.sizeBytes);
};

/** `document`: without consent to wipe, so that only what is recognised as ours is gone on with. */
export async function checkInstallCut(
  disk: View,
  finished: Finished,
  folder: string,
  { hasFat = true }: { readonly hasFat?: boolean } = {},
): Promise<InstallCheck> {
  const host = machineOf([{ serial: "system", view: disk }], folder);
  const inventory = await inventoryOf(host);
  const plan = planInstall({
    document: { install: { disk: { serial: "system" }, wipe: false } },
    documentSha256: "0",
    inventory,
    image: {
      directory: "/medium",
      rootBytes: partOf(disk, finished, 5).sizeBytes / 2,
      rootHash: "a".repeat(64),
      hashOffsetBytes: 0,
    },
    version: "0",
    args: "",
    uuid: () => "00000000-0000-4000-8000-000000000000",
    intents: [],
    marks: await readMarks(host, inventory),
  });
  const errors = plan.findings.filter(({ severity }) => severity === "error");
  if (errors.some(({ code }) => code === "installed"))
    return { found: "installed", problems: differences(disk, finished) };
  if (errors.length > 0) return { found: "refused", problems: errors.map(formatFinding) };
  const isBlank = inventory.disks[0]?.signatures.length === 0 && inventory.disks[0].partitions.length === 0;
  if (isBlank) return { found: "blank", problems: [] };
  const [first] = plan.steps;
  const id = first?.kind === "install:partition" ? first.layout.diskGuid.replaceAll("-", "") : first?.id;
  const problems = id === finished.installation ? [] : [`it goes on as ${id} instead of ${finished.installation}`];
  return { found: "begun", problems: [...problems, ...trusted(disk, finished, folder, hasFat)] };
}

/** Nothing is written after the last name: all but the table must be as at the end. */
function differences(disk: View, { view, partitions }: Finished): readonly string[] {
  return partitions.flatMap(({ name, startBytes, sizeBytes }) => {
    const [found, wanted] = [disk, view].map((each) => each.part(startBytes, sizeBytes));
    return found?.fingerprint() === wanted?.fingerprint() ? [] : [`${name} is not as it was written`];
  });
}

/** What the next run takes for done by its marks must be whole. */
function trusted(disk: View, finished: Finished, folder: string, hasFat: boolean): readonly string[] {
  return [
    ...once(partOf(disk, finished, 7), (part) => checkState(part, folder)),
    ...once(partOf(disk, finished, 8), (part) => checkLabelled(part, "corium-data", folder)),
    ...(hasFat ? once(partOf(disk, finished, 2), (part) => checkEnvironment(part, finished, folder)) : []),
  ];
}

const known = new Map<string, readonly string[]>();

/** Most cuts leave most partitions as the cut before. */
export function once(part: View, check: (part: View) => readonly string[]): readonly string[] {
  const key = `${part.sizeBytes} ${part.fingerprint()}`;
  const problems = known.get(key) ?? check(part);
  known.set(key, problems);
  return problems;
}

function checkLabelled(part: View, label: string, folder: string): readonly string[] {
  if (ext4Label(part) !== label) return [];
  return checkExt4(part, join(folder, "part.raw")).map((problem) => `${label}: ${problem}`);
}

function checkState(part: View, folder: string): readonly string[] {
  const problems = checkLabelled(part, "corium-state", folder);
  if (ext4Label(part) !== "corium-state" || problems.length > 0) return problems;
  const image = join(folder, "part.raw");
  // Written last: without it the handover is made again.
  if (fileIn(image, "/installation", join(folder, "file")) === undefined) return [];
  const answer = checkDatabase(image, folder);
  return answer === "ok" ? [] : [`corium.db: ${answer}`];
}

/** The boot environment as its file is; undefined when there is none. */
export function environmentOf(disk: View, finished: Finished, folder: string): Buffer | undefined {
  return fileOnEsp(partOf(disk, finished, 2), folder);
}

function fileOnEsp(esp: View, folder: string): Buffer | undefined {
  const image = esp.extract(join(folder, "esp.raw"));
  const file = join(folder, "env");
  rmSync(file, { force: true });
  sh("mcopy", "-n", "-i", image, "::/corium/env", file);
  return existsSync(file) ? readFileSync(file) : undefined;
}

/** What GRUB tells an environment by (grub-core/lib/envblk.c). */
const GRUB_SIGNATURE = "# GRUB Environment Block\n";

/** GRUB, the installer and the first boot take for absent what has no signature (iso/grub.ts, provision/install/table). */
export const isForGrub = (environment: Buffer | undefined): environment is Buffer =>
  environment?.toString("latin1").startsWith(GRUB_SIGNATURE) === true;

/**
 * What GRUB would read is this installation's. Without its signature it is none: of a new file on FAT the name, and the
 * size, may be durable before what is in it.
 */
function checkEnvironment(esp: View, { installation }: Finished, folder: string): readonly string[] {
  const bytes = fileOnEsp(esp, folder);
  if (!isForGrub(bytes)) return [];
  const id = /\nid=(.*)\n/.exec(bytes.toString("latin1"))?.[1];
  return id === installation ? [] : [`the boot environment is of ${id ?? "nobody"}, not of ${installation}`];
}
