/** What must hold for every plan, as complaints: an empty list is a plan that keeps to its document. */
import type { Document } from "../../config/document.ts";
import type { Inventory } from "../../kit/disk.ts";
import type { StepBase, StepExecutor } from "../../kit/step.ts";
import type { InstallStep } from "../../provision/install/model.ts";
import type { StorageStep } from "../../provision/storage.ts";
import { storageExecutors } from "../../provision/storage/driver.ts";
import { installExecutors } from "../../provision/install/driver.ts";
import type { Memory } from "./consent.ts";
import { consentOf, isNever } from "./consent.ts";
import { touchedBy } from "./touched.ts";

const install = installExecutors({
  isComplete: async () => ({ ok: true, value: true }),
  copy: async () => ({ ok: true, value: undefined }),
});

const executors = { ...install, ...storageExecutors } as unknown as Readonly<Record<string, StepExecutor<StepBase>>>;

export function argvOf(step: StepBase): readonly (readonly string[])[] {
  const executor = executors[step.kind];
  if (executor === undefined) throw new Error(`no executor for ${step.kind}`);
  return executor.argv(step);
}

/** Kinds that leave nothing of what was there. */
const destroying = new Set<(StorageStep | InstallStep)["kind"] | "luks:format">([
  "disk:wipe",
  "disk:filesystem",
  "raid:create",
  "luks:format",
  "install:partition",
]);

const bare = (uuid: string): string => uuid.toLowerCase().replace(/[^0-9a-f]/g, "");

export function broken(
  steps: readonly StepBase[],
  document: Pick<Document, "disks" | "raid" | "luks"> & Pick<Partial<Document>, "install">,
  inventory: Inventory,
  memory: Memory,
): readonly string[] {
  const complaints: string[] = [];
  const { touch, destroy, kept } = consentOf(document, inventory, memory);
  const never = new Set(inventory.disks.filter(isNever).map((disk) => disk.path));
  const holdsOurOwn = (path: string): boolean =>
    inventory.disks.some(
      (disk) =>
        disk.path === path &&
        disk.signatures.length > 0 &&
        disk.signatures.every(
          ({ type, uuid = "" }) => /^(crypto_LUKS|linux_raid_member)$/.test(type) && kept.has(bare(uuid)),
        ),
    );
  const inner = new Map(
    inventory.arrays.flatMap(({ uuid, filesystemUuid }) =>
      filesystemUuid === undefined ? [] : [[bare(uuid), bare(filesystemUuid)] as const],
    ),
  );
  for (const { step, disks, destroys, strays } of touchedBy(steps, argvOf, inventory)) {
    complaints.push(...strays);
    for (const disk of disks) {
      if (!touch.has(disk)) complaints.push(`${step.id} touches ${disk}, which the document does not name`);
      if (never.has(disk)) complaints.push(`${step.id} touches ${disk}, which is in use, the medium or the system's`);
    }
    for (const { wwn, serial, byPath } of step.destroys ?? [])
      if (wwn === undefined && serial === undefined && byPath === undefined)
        complaints.push(`${step.id} destroys a disk that nothing tells from another`);
    const isDestroying = destroying.has(step.kind as StorageStep["kind"]);
    if (!isDestroying) {
      if ((step.destroys ?? []).length > 0) complaints.push(`${step.id} destroys, as a step of ${step.kind}`);
      continue;
    }
    const lost = [...disks].toSorted().join();
    if (lost === "" || lost !== [...destroys].toSorted().join())
      complaints.push(`${step.id} works on ${lost}, but says that ${[...destroys].join()} is lost`);
    const path = (step as { readonly device?: { readonly path: string } }).device?.path ?? "";
    const array = /md-uuid-(.*)$/.exec(path)?.[1];
    // A filesystem inside an array of ours is no loss of the array.
    if (array !== undefined && kept.has(bare(array))) {
      if (kept.has(inner.get(bare(array)) ?? "")) complaints.push(`${step.id} makes a kept filesystem again`);
      continue;
    }
    // Nor is one inside a volume of ours, on a disk or on an array of ours: header and array stay.
    const isInVolume = path.startsWith("/dev/mapper/corium-luks-");
    for (const disk of destroys)
      if (!destroy.has(disk) && !(isInVolume && holdsOurOwn(disk)))
        complaints.push(`${step.id} destroys ${disk} without the document's consent`);
  }
  return complaints;
}
