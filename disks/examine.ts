/** `mdadm --examine`, as far as an inventory needs it: whose member a disk is, and where its data starts. */
import { clean, parseProperties } from "./parse.ts";

export interface Superblock {
  /** 8:8:8:8 with colons. */
  readonly uuid: string;
  readonly name?: string;
  readonly level?: string;
  readonly expectedMembers?: number;
}

/** `mdadm --examine --export DEVICE`; undefined when it names no array. The homehost (`any:`) is cut off the name. */
export function parseExamineExport(stdout: string): Superblock | undefined {
  const values = parseProperties(stdout);
  const uuid = values.get("MD_UUID");
  if (uuid === undefined || !/^[0-9a-f]{8}(:[0-9a-f]{8}){3}$/.test(uuid)) return undefined;
  const name = clean(values.get("MD_NAME"))?.replace(/^[^:]*:/, "");
  const level = clean(values.get("MD_LEVEL"));
  const expected = Number(values.get("MD_DEVICES"));
  return {
    uuid,
    ...(name === undefined ? {} : { name }),
    ...(level === undefined ? {} : { level }),
    ...(Number.isInteger(expected) && expected > 0 ? { expectedMembers: expected } : {}),
  };
}

/**
 * Where the first byte of the array is on this member, from `mdadm --examine DEVICE`; undefined when this member does
 * not hold it. In the layouts that mdadm makes by default the first chunk is on the member of role 0, on RAID 1 on all; on
 * RAID 6 (left-symmetric: drivers/md/raid5.c, raid5_compute_sector) role 0 begins with Q and the data with role 1.
 */
export function parseDataStart(stdout: string): number | undefined {
  const offset = /^\s*Data Offset : (\d+) sectors/m.exec(stdout)?.[1];
  const role = /^\s*Device Role : Active device (\d+)/m.exec(stdout)?.[1];
  const level = /^\s*Raid Level : (raid\d+)$/m.exec(stdout)?.[1];
  if (offset === undefined || role === undefined) return undefined;
  if (level !== "raid1" && role !== (level === "raid6" ? "1" : "0")) return undefined;
  return Number(offset) * 512;
}
