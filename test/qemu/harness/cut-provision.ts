/** What may be found after power was lost while a first boot made its storage, and what may not. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Document } from "../../../config/document.ts";
import { formatFinding } from "../../../kit/finding.ts";
import { planStorage } from "../../../provision/storage.ts";
import type { Intent } from "../../../state/model.ts";
import { openState } from "../../../state/open.ts";
import { checkDatabase, checkExt4, type CutDisk, ext4Label, fileIn, inventoryOf, machineOf } from "./cut-disk.ts";
import { once } from "./cut-install.ts";
import { readGpt } from "./gpt.ts";
import type { View } from "./replayed-image.ts";

export interface ProvisionCheck {
  /** Steps that the next run would carry out. */
  readonly steps: readonly string[];
  readonly problems: readonly string[];
  readonly hasMarker: boolean;
}

export interface Machine {
  readonly system: View;
  readonly data: readonly CutDisk[];
}

const MEMBER_DATA = 1024 * 1024;

export async function checkProvisionCut(
  { system, data }: Machine,
  document: Pick<Document, "role" | "disks" | "raid" | "luks" | "zfs">,
  folder: string,
): Promise<ProvisionCheck> {
  const state = partition(system, 7);
  const image = join(folder, "state.raw");
  mkdirSync(folder, { recursive: true });
  const damage = checkExt4(state, image);
  if (damage.length > 0) return { steps: [], problems: damage, hasMarker: false };
  const answer = checkDatabase(image, folder);
  if (answer !== "ok") return { steps: [], problems: [`corium.db: ${answer}`], hasMarker: false };
  const marker = join(folder, "bootstrapped");
  const hasMarker = fileIn(image, "/bootstrapped", marker) !== undefined;
  const opened = openState({ database: join(folder, "corium.db"), marker });
  if (!opened.ok) return { steps: [], problems: [`${opened.error.code}: ${opened.error.message}`], hasMarker };
  const intents = opened.value.journal.intents();
  const owned = opened.value.owned.list();
  opened.value.close();

  const inventory = await inventoryOf(machineOf(data, folder));
  let asked = 0;
  const uuid = (): string => `00000000-0000-4000-8000-${String((asked += 1)).padStart(12, "0")}`;
  const plan = planStorage({ document, inventory, owned, intents, uuid });
  const problems = plan.findings.filter(({ severity }) => severity === "error").map(formatFinding);
  problems.push(...promises(intents, JSON.stringify(plan.steps)));
  if (hasMarker && intents.some(({ closedAtMs }) => closedAtMs === undefined))
    problems.push("in service, but an intent is open");
  for (const { serial, view } of data) problems.push(...once(view, () => checkMember(serial, view, folder)));
  return { steps: plan.steps.map(({ id }) => id), problems, hasMarker };
}

const partition = (disk: View, number: number): View => {
  const table = readGpt(disk.read, disk.sizeBytes);
  const part = (table.primary ?? table.backup ?? []).find((each) => each.number === number);
  if (part === undefined) throw new Error(`there is no partition ${number}`);
  return disk.part(part.startBytes, part.sizeBytes);
};

/** What was begun is gone on with under its own UUIDs; what was finished is not made again. */
function promises(intents: readonly Intent[], steps: string): readonly string[] {
  return intents.flatMap(({ stepId, step, closedAtMs }) => {
    const { uuid } = step as { readonly uuid?: string };
    if (uuid === undefined) return [];
    if (!steps.includes(uuid)) return [`${stepId}: ${uuid} is chosen anew`];
    const isAgain = new RegExp(`"id":"${stepId}"`).test(steps);
    return closedAtMs !== undefined && isAgain ? [`${stepId} is finished, and would be done again`] : [];
  });
}

/** A filesystem that has its label passes for whole. */
function checkMember(serial: string, disk: View, folder: string): readonly string[] {
  const inside = disk.part(MEMBER_DATA, disk.sizeBytes - MEMBER_DATA);
  if (ext4Label(inside) !== "corium-data") return [];
  return checkExt4(inside, join(folder, "member.raw")).map((problem) => `${serial}: ${problem}`);
}
