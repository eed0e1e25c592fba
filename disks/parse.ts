/** Output of util-linux and udev → what disks/inventory.ts works with. Nothing here trusts a tool to print valid JSON. */
import { z } from "zod";
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { BlockNode, PartitionEntry, ProbedSignature } from "./model.ts";

const text = z.union([z.string(), z.number()]).nullish();
/** util-linux before 2.33 prints "1" and "512"; a later one true and 512. */
const flag = z.union([z.boolean(), z.string()]).nullish();
const count = z.union([z.number(), z.string()]).nullish();

const node = z.looseObject({
  path: z.string(),
  kname: z.string().nullish(),
  name: z.string().nullish(),
  type: z.string().nullish(),
  size: count,
  "log-sec": count,
  "phy-sec": count,
  tran: text,
  subsystems: text,
  serial: text,
  wwn: text,
  model: text,
  rm: flag,
  hotplug: flag,
  ro: flag,
  rota: flag,
  mountpoints: z.array(z.string().nullable()).nullish(),
  partn: count,
  partuuid: text,
  partlabel: text,
  fstype: text,
  label: text,
  "disk-seq": text,
  children: z.array(z.unknown()).nullish(),
});

/** `lsblk --json -b -O`. Decoded leniently before: a DDF member's UUID is no UTF-8 (util-linux prints it raw). */
export function parseLsblk(stdout: string): Result<readonly BlockNode[], AppError> {
  const parsed = parseJson(stdout);
  const top = z.looseObject({ blockdevices: z.array(z.unknown()) }).safeParse(parsed);
  if (!top.success) return fail("lsblk", "lsblk printed something else than a list of block devices");
  return ok(top.data.blockdevices.flatMap((each) => toNode(each) ?? []));
}

function toNode(raw: unknown): BlockNode | undefined {
  const parsed = node.safeParse(raw);
  if (!parsed.success) return undefined;
  const { data } = parsed;
  const logical = toNumber(data["log-sec"]) || 512;
  return {
    path: data.path,
    kernelName: data.kname ?? data.name ?? data.path.replace(/^\/dev\//, ""),
    type: data.type ?? "unknown",
    sizeBytes: toNumber(data.size),
    logicalSectorBytes: logical,
    physicalSectorBytes: toNumber(data["phy-sec"]) || logical,
    subsystems: clean(data.subsystems)?.split(":") ?? [],
    isRemovable: isSet(data.rm),
    isHotplug: isSet(data.hotplug),
    isReadOnly: isSet(data.ro),
    isRotational: isSet(data.rota),
    mountPoints: (data.mountpoints ?? []).filter((point) => point !== null),
    children: (data.children ?? []).flatMap((each) => toNode(each) ?? []),
    ...optional("transport", clean(data.tran)),
    ...optional("serial", clean(data.serial)),
    ...optional("wwn", clean(data.wwn)),
    ...optional("model", clean(data.model)),
    ...optional("partUuid", clean(data.partuuid)),
    ...optional("partLabel", clean(data.partlabel)),
    ...optional("filesystem", clean(data.fstype)),
    ...optional("label", clean(data.label)),
    ...optional("sequence", clean(data["disk-seq"])),
    ...(data.partn === null || data.partn === undefined ? {} : { partitionNumber: toNumber(data.partn) }),
  };
}

const signature = z.looseObject({
  offset: z.string().nullish(),
  type: z.string(),
  uuid: z.string().nullish(),
  label: z.string().nullish(),
});

/** `wipefs -J DEVICE`: every signature of that device itself. A blank device gives nothing at all, or an empty list. */
export function parseWipefs(stdout: string): Result<readonly ProbedSignature[], AppError> {
  if (stdout.trim() === "") return ok([]);
  const parsed = z.looseObject({ signatures: z.array(signature) }).safeParse(parseJson(stdout));
  if (!parsed.success) return fail("wipefs", "wipefs printed something else than a list of signatures");
  return ok(
    parsed.data.signatures.map(({ offset, type, uuid, label }) => ({
      type,
      ...(offset === null || offset === undefined ? {} : { offsetBytes: Number(offset) }),
      ...optional("uuid", clean(uuid)),
      ...optional("label", clean(label)),
    })),
  );
}

/** `KEY=value` lines: `blkid -p -o export` (which escapes blanks with a backslash) and `udevadm info -q property`. */
export function parseProperties(stdout: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of stdout.split("\n")) {
    const at = line.indexOf("=");
    if (at > 0) values.set(line.slice(0, at), line.slice(at + 1));
  }
  return values;
}

/** `blkid -p -o export`: the one content that libblkid decided on, and the partition table. */
export function parseBlkid(stdout: string): readonly ProbedSignature[] {
  const values = parseProperties(stdout);
  const read = (key: string): string | undefined => clean(values.get(key)?.replace(/\\(.)/g, "$1"));
  const found: ProbedSignature[] = [];
  const type = read("TYPE");
  if (type !== undefined) found.push({ type, ...optional("uuid", read("UUID")), ...optional("label", read("LABEL")) });
  const table = read("PTTYPE");
  if (table !== undefined) found.push({ type: table, ...optional("uuid", read("PTUUID")) });
  return found;
}

/** What the table calls a partition: `blkid -p -o export PARTITION` reads it from the disk, lsblk has it from udev. */
export function parsePartitionEntry(stdout: string): PartitionEntry {
  const values = parseProperties(stdout);
  const read = (key: string): string | undefined => clean(values.get(key)?.replace(/\\(.)/g, "$1"));
  return { ...optional("partUuid", read("PART_ENTRY_UUID")), ...optional("partLabel", read("PART_ENTRY_NAME")) };
}

/** What both tools saw, each thing once; wipefs knows the offset, blkid sees what wipefs does not (and the reverse). */
export function mergeSignatures(
  wipefs: readonly ProbedSignature[],
  blkid: readonly ProbedSignature[],
): readonly ProbedSignature[] {
  const hasTable = wipefs.some((each) => each.type === "gpt");
  const extra = blkid.filter((each) => !wipefs.some((other) => other.type === each.type));
  // A protective MBR is part of a GPT and says nothing beside it.
  return [...wipefs.filter((each) => !(hasTable && each.type === "PMBR")), ...extra];
}

function parseJson(stdout: string): unknown {
  try {
    return JSON.parse(stdout);
  } catch {
    return undefined;
  }
}

/** Firmware pads identity strings with blanks and NULs. */
export function clean(value: string | number | null | undefined): string | undefined {
  if (value === null || value === undefined) return undefined;
  const bare = String(value).replace(/\0/g, " ").replace(/\s+/g, " ").trim();
  return bare === "" ? undefined : bare;
}

const isSet = (value: boolean | string | null | undefined): boolean => value === true || value === "1";

const toNumber = (value: number | string | null | undefined): number => {
  const number = Number(value ?? 0);
  return Number.isFinite(number) ? number : 0;
};

function optional<K extends string>(key: K, value: string | undefined): { readonly [P in K]?: string } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [P in K]: string });
}
