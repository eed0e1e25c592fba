/**
 * GRUB's BIOS boot code on a GPT disk, without grub-install: boot.img goes into the first 440 bytes of the disk
 * and is told where core.img is; core.img goes to the start of the BIOS boot partition and is told where its own
 * second sector is. The offsets are GRUB's include/grub/i386/pc/boot.h; `util/setup.c` does the same.
 */
import { fail } from "../kit/app-error.ts";
import type { AppError } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import type { Result } from "../kit/result.ts";

/** Behind it lie the disk signature and the partition table, which stay. */
export const BOOT_CODE_BYTES = 440;

const SECTOR_BYTES = 512;
const KERNEL_SECTOR_OFFSET = 0x5c;
const BOOT_DRIVE_CHECK_OFFSET = 0x66;
/** The last entry (12 bytes) of diskboot's block list ends its sector. */
const FIRST_BLOCK_OFFSET = SECTOR_BYTES - 12;

export interface BootSectors {
  /** Written at byte 0 of the disk. */
  readonly bootCode: Uint8Array;
  /** Written at the start of the BIOS boot partition. */
  readonly core: Uint8Array;
}

/**
 * `biosStartBytes`: the start of partition 1. GRUB counts in BIOS sectors of 512 bytes; a BIOS that shows
 * 4096-byte sectors can't run this code, such a machine boots by UEFI.
 */
export function bootSectors(
  bootImage: Uint8Array,
  coreImage: Uint8Array,
  biosStartBytes: number,
  biosSizeBytes: number,
): Result<BootSectors, AppError> {
  if (bootImage.length !== SECTOR_BYTES) return fail("loader", `boot.img has ${bootImage.length} bytes instead of 512`);
  if (coreImage.length > biosSizeBytes) {
    return fail("loader", `core.img has ${coreImage.length} bytes, the BIOS boot partition ${biosSizeBytes}`);
  }
  const firstSector = BigInt(biosStartBytes / SECTOR_BYTES);
  const bootCode = bootImage.slice(0, BOOT_CODE_BYTES);
  const bootView = new DataView(bootCode.buffer);
  bootView.setBigUint64(KERNEL_SECTOR_OFFSET, firstSector, true);
  // Two NOPs in place of a jump: some BIOSes pass a wrong drive number (util/setup.c, "buggy BIOSes").
  bootView.setUint16(BOOT_DRIVE_CHECK_OFFSET, 0x9090, true);
  const core = coreImage.slice();
  new DataView(core.buffer).setBigUint64(FIRST_BLOCK_OFFSET, firstSector + 1n, true);
  return ok({ bootCode, core });
}
