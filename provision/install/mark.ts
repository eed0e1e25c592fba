/**
 * What stands in the first bytes of a disk while its table is written. sfdisk writes a GPT in five parts, each synced:
 * entries and header of the backup, entries and header of the primary, the protective MBR. Power lost in between leaves
 * a table that nobody can read, hence no name in it that could tell whose it is, and a live system that has forgotten
 * whose idea it was. The MBR comes last and takes the mark away in the same sector. Pure.
 */
import type { Disk } from "../../kit/disk.ts";

const WORDS = "corium is being installed here: ";

export const installingMark = (installation: string): string => `${WORDS}${installation}\n`;

/** The installation id in the first bytes of a disk. */
export function readMark(text: string): string | undefined {
  const id = text.startsWith(WORDS) ? text.slice(WORDS.length, WORDS.length + 33) : "";
  return /^[0-9a-f]{32}\n$/.test(id) ? id.trimEnd() : undefined;
}

/**
 * Parts of a GPT and nothing else. The kernel may show partitions of it (`gpt` on its command line does without the MBR),
 * but nobody can tell their names: udev reads them from a whole table only. What lies in them was there before the disk
 * was found blank, and nobody could see it.
 */
export const hasTornTable = (disk: Disk): boolean => {
  const whole = disk.signatures.filter(({ device }) => device === disk.path);
  return (
    whole.length > 0 &&
    whole.every(({ type }) => type === "gpt" || type === "PMBR") &&
    disk.partitions.every(({ label, partUuid }) => label === undefined && partUuid === undefined)
  );
};
