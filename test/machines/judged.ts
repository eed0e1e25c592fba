/** A machine → what the planners make of it, as a page: every disk, claimed and installed onto, with and without consent. */
import type { DeviceRef, DeviceSelector } from "../../config/document.ts";
import { describeContent, describeDisk } from "../../disks/describe.ts";
import { judgeDisk, resolveDevice } from "../../disks/select.ts";
import type { Disk, Inventory } from "../../kit/disk.ts";
import type { Finding } from "../../kit/finding.ts";
import type { StepBase } from "../../kit/step.ts";
import { planInstall } from "../../provision/install/plan.ts";
import { planStorage } from "../../provision/storage.ts";
import { countedUuids, mirror, plainDisk, storageDocument } from "./machines.ts";

const image = { directory: "/run/medium/corium", rootBytes: 200 << 20, rootHash: "ab".repeat(32), hashOffsetBytes: 1 };

/** What a first look at a disk needs to be told; a machine of three hundred has its first ones shown. */
const SHOWN = 12;

interface Outcome {
  readonly steps: readonly StepBase[];
  readonly findings: readonly Finding[];
}

export const claim = (inventory: Inventory, device: DeviceRef, wipe: boolean): Outcome =>
  planStorage({
    document: storageDocument({ disks: [plainDisk({ device, wipe })] }),
    inventory,
    owned: [],
    intents: [],
    uuid: countedUuids(),
  });

export const install = (inventory: Inventory, disk: DeviceRef, wipe: boolean, mirror?: DeviceRef): Outcome =>
  planInstall({
    document: { install: { disk, wipe, ...(mirror === undefined ? {} : { mirror }) } },
    documentSha256: "cd".repeat(32),
    inventory,
    image,
    version: "1.0.0",
    args: "",
    uuid: countedUuids(),
    intents: [],
  });

const array = (inventory: Inventory, disks: readonly Disk[], wipe: boolean): Outcome =>
  planStorage({
    document: storageDocument({ raid: [mirror({ devices: disks.map((disk) => disk.path), wipe })] }),
    inventory,
    owned: [],
    intents: [],
    uuid: countedUuids(),
  });

const errorsOf = ({ findings }: Outcome): readonly Finding[] => findings.filter((each) => each.severity === "error");

function outcome(result: Outcome, told: Set<string>): string {
  const errors = errorsOf(result);
  const warnings = result.findings.filter(({ severity, code }) => severity === "warning" && code !== "kernel-name");
  const noted = warnings.map(({ code }) => ` (${code})`).join("");
  if (errors.length === 0) return result.steps.map((step) => step.id).join(", ") + noted;
  // Said once: claim and installation are refused in the same words.
  const fresh = errors.filter(({ message }) => !told.has(message));
  for (const { message } of fresh) told.add(message);
  const codes = `refused: ${errors.map(({ code }) => code).join(", ")}${noted}`;
  // Of the list of all disks the line of the one that was named: why it is not taken.
  const why = fresh.flatMap(({ message, details = [] }) => {
    const own = details.filter((line) => line.startsWith(`${message.replace("no disk matches ", "")} `));
    return [message, ...own.map((line) => `  ${line}`)];
  });
  return [codes, ...why.map((line) => `      ${line}`)].join("\n");
}

function diskPage(disk: Disk, inventory: Inventory): string {
  const { identity, bus, type, logicalSectorBytes, physicalSectorBytes, users } = disk;
  const told = new Set<string>();
  const marks = [
    `${bus} ${type}`,
    `${disk.sizeBytes} bytes`,
    `sectors ${logicalSectorBytes}/${physicalSectorBytes}`,
    ...(identity.wwn === undefined ? [] : [`wwn ${identity.wwn}`]),
    ...(disk.isRemovable ? ["removable"] : []),
    ...(disk.isReadOnly ? ["read-only"] : []),
    ...(disk.isSystemDisk ? ["system disk"] : []),
    ...(disk.isBootMedium ? ["boot medium"] : []),
  ];
  return [
    describeDisk(disk),
    `  ${marks.join(", ")}`,
    `  links: ${disk.links.length === 0 ? "none" : disk.links.join(" ")}`,
    `  holds: ${describeContent(disk) || "nothing"}`,
    ...(users.length === 0
      ? []
      : [`  users: ${users.map(({ kind, name, isBusy }) => `${kind} ${name}${isBusy ? "" : " (idle)"}`).join(", ")}`]),
    `  to the console: ${judgeDisk(disk, inventory).reason}`,
    `  claim: ${outcome(claim(inventory, disk.path, false), told)}`,
    `  claim, wipe: ${outcome(claim(inventory, disk.path, true), told)}`,
    `  install: ${outcome(install(inventory, disk.path, false), told)}`,
    `  install, wipe: ${outcome(install(inventory, disk.path, true), told)}`,
  ].join("\n");
}

/** By each property that a disk of the machine has. */
export function selectorsFor({ disks }: Inventory): readonly DeviceSelector[] {
  const all: DeviceSelector[] = disks.flatMap(({ identity, type, bus, sizeBytes }) => [
    { type },
    ...(bus === "other" ? [] : [{ bus }]),
    ...(identity.model === undefined ? [] : [{ model: `${identity.model.split(" ")[0]}*` }]),
    { minSize: `${Math.floor(sizeBytes / 2 ** 20)}MiB` },
  ]);
  return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()].slice(0, SHOWN);
}

function selection(selector: DeviceSelector, inventory: Inventory): string {
  const found = resolveDevice(selector, inventory);
  return `${JSON.stringify(selector)}: ${found.ok ? found.value.path : `${found.error.code}, ${found.error.message}`}`;
}

export function judgedPage(about: string, inventory: Inventory): string {
  const { disks, arrays, unknown } = inventory;
  const shown = disks.slice(0, SHOWN);
  const pairs = shown.slice(0, -1).map((disk, at) => [disk, shown[at + 1] ?? disk] as const);
  const foreign = arrays.slice(0, SHOWN).map(({ uuid, name, level, path, memberPaths, expectedMembers }) => {
    const state = path === undefined ? "not running" : `runs as ${path}`;
    return `${name ?? "no name"}, ${level ?? "no level"}, ${uuid}, ${state}: ${memberPaths.join(", ")} of ${expectedMembers ?? "unknown"}`;
  });
  const more = disks.length > shown.length ? [`… and ${disks.length - shown.length} more`] : [];
  const sections = [
    ...shown.map((disk) => diskPage(disk, inventory)),
    ...more,
    ...(foreign.length === 0 ? [] : [["arrays", ...foreign.map((line) => `  ${line}`)].join("\n")]),
    ...(unknown.length === 0 ? [] : [["could not be read", ...unknown.map((line) => `  ${line}`)].join("\n")]),
    ["selectors", ...selectorsFor(inventory).map((each) => `  ${selection(each, inventory)}`)].join("\n"),
    ...(pairs.length === 0
      ? []
      : [
          [
            "mirrors of neighbours, wipe",
            ...pairs.map((pair) => {
              const told = new Set(errorsOf(array(inventory, pair, true)).map(({ message }) => message));
              return `  ${pair.map(({ path }) => path).join(" ")}: ${outcome(array(inventory, pair, true), told)}`;
            }),
            "a mirrored system on neighbours, wipe",
            ...pairs.map(([first, second]) => {
              const result = install(inventory, first.path, true, second.path);
              const told = new Set(errorsOf(result).map(({ message }) => message));
              return `  ${first.path} ${second.path}: ${outcome(result, told)}`;
            }),
          ].join("\n"),
        ]),
  ];
  return `${about}\n\n${sections.join("\n\n")}\n`;
}
