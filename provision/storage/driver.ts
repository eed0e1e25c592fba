import type { AppError } from "../../kit/app-error.ts";
import type { Result } from "../../kit/result.ts";
import type { Executors, StepBase, StepContext, StepExecutor } from "../../kit/step.ts";
import type { StepDevice } from "../../disks/model.ts";
import { confirmDevices, diskExecutors } from "../../disks/steps/driver.ts";
import { findMounts } from "../../disks/driver.ts";
import { resolveDevice } from "../../disks/select.ts";
import type { Document, LuksSpec } from "../../config/document.ts";
import type { Host } from "../../kit/ports.ts";
import type { Inventory } from "../../kit/disk.ts";
import type { Secret } from "../../kit/secret.ts";
import { ok } from "../../kit/result.ts";
import { probeVolume, readTpm } from "../../luks/driver.ts";
import type { Probed } from "../../luks/model.ts";
import { luksExecutors } from "../../luks/steps/driver.ts";
import { raidExecutors } from "../../raid/driver.ts";
import { mdUuid } from "../../raid/argv.ts";
import type { VolumeFacts } from "../storage-part.ts";
import { replaceExecutors as raidReplaceExecutors } from "../../raid/replace/driver.ts";
import { systemReplaceExecutors } from "../mirror/driver.ts";
import type { WrittenMount } from "../mount-plan.ts";
import { readWrittenMount, unitFolder } from "../mount-plan.ts";
import type { ReplaceStep } from "../replace-plan.ts";
import type { StorageStep } from "../storage.ts";
import { madeUuids } from "../storage-standing.ts";
import type { Records } from "../storage-standing.ts";
import { diskPlace } from "../volume-standing.ts";

/** Before an array is made or started, or a volume: behind each path is still the disk that was decided about. */
function guarded<S extends StepBase>(
  executor: StepExecutor<S>,
  devicesOf: (step: S) => readonly StepDevice[],
): StepExecutor<S> {
  return {
    argv: (step) => executor.argv(step),
    check: (step, context) => executor.check(step, context),
    async run(step: S, context: StepContext): Promise<Result<void, AppError>> {
      const confirmed = await confirmDevices(context.host, devicesOf(step));
      return confirmed.ok ? executor.run(step, context) : confirmed;
    },
  };
}

export const storageExecutors: Executors<StorageStep> = {
  ...diskExecutors,
  ...raidExecutors,
  ...luksExecutors,
  "raid:create": guarded(raidExecutors["raid:create"], (step) => [...step.members, ...step.spares]),
  "raid:assemble": guarded(raidExecutors["raid:assemble"], (step) => step.members),
  "luks:key": guarded(luksExecutors["luks:key"], (step) => [step.device]),
  "luks:format": guarded(luksExecutors["luks:format"], (step) => [step.device]),
  "luks:enroll": guarded(luksExecutors["luks:enroll"], (step) => [step.device]),
};

export const replaceExecutors: Executors<ReplaceStep> = {
  ...raidReplaceExecutors,
  ...systemReplaceExecutors,
  "raid:add": guarded(raidReplaceExecutors["raid:add"], (step) => [step.member]),
  "raid:retire": guarded(raidReplaceExecutors["raid:retire"], (step) => [step.member]),
};

/**
 * What the plan of encrypted volumes needs beside the inventory. Headers that no record of ours names are tried with the
 * declared unlock, on disks only: what lies in an array can't be opened before the array runs.
 */
export async function readVolumeFacts(
  host: Host,
  document: Pick<Document, "luks">,
  records: Records,
  keyOf: (spec: LuksSpec) => Promise<Secret | undefined>,
): Promise<Result<VolumeFacts, AppError>> {
  const tpm = await readTpm(host);
  const probed = new Map<string, Probed>();
  for (const spec of document.luks) {
    const path = unknownHeader(spec, records.inventory, madeUuids(records));
    if (path === undefined) continue;
    const key = spec.unlock === "tpm2" ? "tpm2" : await keyOf(spec);
    if (key === undefined || (key === "tpm2" && tpm.versionMajor !== 2)) continue;
    const found = await probeVolume(host, path, key);
    if (!found.ok) return found;
    if (found.value !== undefined) probed.set(spec.name, found.value);
  }
  return ok({ tpm, probed });
}

/** What this document, or an earlier one of a first boot that is not over, has had mounted. */
export async function readWritten(host: Host): Promise<readonly WrittenMount[]> {
  const listed = await host.files.list(unitFolder);
  const written: WrittenMount[] = [];
  for (const unit of listed.ok ? listed.value.filter((name) => name.endsWith(".mount")).toSorted() : []) {
    const text = await host.files.readText(`${unitFolder}/${unit}`);
    const mount = text.ok ? readWrittenMount(unit, text.value) : undefined;
    if (mount !== undefined) written.push(mount);
  }
  return written;
}

/** By mount point of the document: what lies there while nothing is mounted. */
export async function readHidden(
  host: Host,
  { disks, raid, luks }: Pick<Document, "disks" | "raid" | "luks">,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const points = [...disks, ...raid, ...luks].flatMap(({ mountPoint }) => mountPoint ?? []);
  const hidden = new Map<string, readonly string[]>();
  if (points.length === 0) return hidden;
  const mounted = new Set((await findMounts(host)).map(({ point }) => point));
  for (const point of points.filter((each) => !mounted.has(each))) {
    const listed = await host.files.list(point);
    if (listed.ok && listed.value.length > 0) hidden.set(point, listed.value.toSorted());
  }
  return hidden;
}

/** The path of a disk that is nothing but a volume which we know nothing of. */
function unknownHeader(spec: LuksSpec, inventory: Inventory, made: readonly string[]): string | undefined {
  const disk = resolveDevice(spec.device, inventory);
  if (!disk.ok || disk.value.users.length > 0) return undefined;
  const uuid = diskPlace(disk.value).headerUuid;
  return uuid === undefined || made.includes(mdUuid(uuid)) ? undefined : disk.value.path;
}
