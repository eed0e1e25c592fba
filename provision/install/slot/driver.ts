/** Slot A: the root image as it is, kernel and initramfs in a filesystem that GRUB reads. */
import type { AppError } from "../../../kit/app-error.ts";
import type { Result } from "../../../kit/result.ts";
import type { StepContext, StepExecutor, StepState } from "../../../kit/step.ts";
import type { SlotStep } from "../model.ts";
import { ok } from "../../../kit/result.ts";
import { isEqual, minuteMs, tool, whenMounted, withMount } from "../block/driver.ts";

export const slotExecutor: StepExecutor<SlotStep> = {
  argv: (step) => [ddArgv(`${step.image.directory}/root.img`, step.rootPath), bootMkfs(step)],
  check: checkSlot,
  run: writeSlot,
};

const ddArgv = (from: string, to: string): readonly string[] => [
  "dd",
  `if=${from}`,
  `of=${to}`,
  "bs=4M",
  "conv=notrunc,fsync",
  "status=none",
];

/**
 * GRUB's ext2 driver reads neither a journal nor the features that mke2fs added lately, and looks each block up by itself:
 * large ones, where mke2fs would choose small ones for a filesystem of this size.
 */
const bootMkfs = ({ bootUuid, bootPath }: SlotStep): readonly string[] => [
  "mkfs.ext4",
  "-q",
  "-F",
  "-b",
  "4096",
  "-O",
  "^has_journal,^metadata_csum_seed,^orphan_file,^64bit",
  "-U",
  bootUuid,
  "-L",
  "corium-boot-a",
  bootPath,
];

async function checkSlot(step: SlotStep, { host }: StepContext): Promise<Result<StepState, AppError>> {
  const { image, rootPath, bootPath, slotEnv } = step;
  const root = await isEqual(host, `${image.directory}/root.img`, rootPath, image.rootBytes);
  if (!root) return ok("todo");
  return whenMounted(host, bootPath, "ext4", async (mounted) => {
    for (const name of ["vmlinuz", "initrd"]) {
      if (!(await isEqual(host, `${image.directory}/${name}`, `${mounted}/${name}`))) return false;
    }
    const env = await host.files.readText(`${mounted}/slot.env`);
    return env.ok && env.value === slotEnv;
  });
}

async function writeSlot(step: SlotStep, { host, report }: StepContext): Promise<Result<void, AppError>> {
  const { image, rootPath, bootPath } = step;
  report(`writing ${Math.ceil(image.rootBytes / 1024 ** 2)} MiB into slot A`);
  const written = await tool(host, ddArgv(`${image.directory}/root.img`, rootPath), { timeoutMs: 60 * minuteMs });
  if (!written.ok) return written;
  const flushed = await tool(host, ["blockdev", "--flushbufs", rootPath]);
  if (!flushed.ok) return flushed;
  report("writing kernel and initramfs");
  const made = await tool(host, bootMkfs(step), { timeoutMs: 10 * minuteMs });
  if (!made.ok) return made;
  const filled = await withMount(host, bootPath, "ext4", "rw", async (mounted) => {
    for (const name of ["vmlinuz", "initrd"]) {
      const copied = await tool(host, ["cp", `${image.directory}/${name}`, `${mounted}/${name}`], {
        timeoutMs: 10 * minuteMs,
      });
      if (!copied.ok) return copied;
    }
    return host.files.write(`${mounted}/slot.env`, step.slotEnv, { mode: 0o644 });
  });
  if (filled.ok) report("reading slot A back");
  return filled;
}
