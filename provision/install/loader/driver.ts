/** The boot loader of one disk: boot code and core image for a BIOS, the ESP for UEFI and for GRUB's own files. */
import type { AppError } from "../../../kit/app-error.ts";
import type { Host } from "../../../kit/ports.ts";
import type { Result } from "../../../kit/result.ts";
import type { StepContext, StepExecutor, StepState } from "../../../kit/step.ts";
import type { LoaderStep } from "../model.ts";
import { confirmDevices } from "../../../disks/steps/driver.ts";
import { bootSectors } from "../../../iso/loader.ts";
import { ok } from "../../../kit/result.ts";
import {
  ddStdinArgv,
  isEqual,
  minuteMs,
  partitionPath,
  settle,
  tool,
  vfatMode,
  whenMounted,
  withMount,
} from "../block/driver.ts";

/** `bootFiles`: everything that the boot loader needs, put into the image by its build. */
export const loaderExecutor = (bootFiles: string): StepExecutor<LoaderStep> => ({
  argv: (step) => [espMkfs(step)],
  check: (step, context) => checkLoader(step, context, bootFiles),
  run: (step, context) => writeLoader(step, context, bootFiles),
});

/** The volume id has 32 bits; sectors as the disk has them, or firmware finds nothing on a 4Kn disk. */
const espMkfs = ({ espPartUuid, sectorBytes }: LoaderStep): readonly string[] => [
  "mkfs.vfat",
  "-F",
  "32",
  "-S",
  String(sectorBytes),
  "-i",
  espPartUuid.slice(0, 8),
  "-n",
  "CORIUM-ESP",
  partitionPath(espPartUuid),
];

/** Removable-media path first: it needs no entry in the firmware's memory, which may be full or locked. */
const espFiles: Readonly<Record<string, string>> = {
  "EFI/BOOT/BOOTX64.EFI": "shimx64.efi",
  "EFI/BOOT/grubx64.efi": "grubx64.efi",
  "EFI/BOOT/mmx64.efi": "mmx64.efi",
  "EFI/debian/grub.cfg": "grub.cfg",
};

const idConfig = (installation: string): string => `set installation=${installation}\n`;

async function readSectors(host: Host, step: LoaderStep, bootFiles: string): Promise<ReturnType<typeof bootSectors>> {
  const boot = await host.files.read(`${bootFiles}/boot.img`);
  if (!boot.ok) return boot;
  const core = await host.files.read(`${bootFiles}/core.img`);
  if (!core.ok) return core;
  return bootSectors(boot.value, core.value, step.biosStartBytes, step.biosSizeBytes);
}

async function checkLoader(
  step: LoaderStep,
  { host }: StepContext,
  bootFiles: string,
): Promise<Result<StepState, AppError>> {
  const sectors = await readSectors(host, step, bootFiles);
  if (!sectors.ok) return sectors;
  const { bootCode, core } = sectors.value;
  for (const [bytes, path] of [
    [bootCode, step.device.path],
    [core, partitionPath(step.biosPartUuid)],
  ] as const) {
    const argv = ["cmp", "--silent", `--bytes=${bytes.length}`, "-", path];
    if ((await host.exec({ argv, stdin: bytes })).exitCode !== 0) return ok("todo");
  }
  return whenMounted(host, partitionPath(step.espPartUuid), "vfat", async (mounted) => {
    for (const [to, from] of Object.entries(espFiles)) {
      if (!(await isEqual(host, `${bootFiles}/${from}`, `${mounted}/${to}`))) return false;
    }
    const id = await host.files.readText(`${mounted}/corium/id.cfg`);
    return id.ok && id.value === idConfig(step.installation);
  });
}

async function writeLoader(
  step: LoaderStep,
  { host }: StepContext,
  bootFiles: string,
): Promise<Result<void, AppError>> {
  const sectors = await readSectors(host, step, bootFiles);
  if (!sectors.ok) return sectors;
  const confirmed = await confirmDevices(host, [step.device]);
  if (!confirmed.ok) return confirmed;
  const { bootCode, core } = sectors.value;
  for (const [bytes, path] of [
    [core, partitionPath(step.biosPartUuid)],
    [bootCode, step.device.path],
  ] as const) {
    const written = await tool(host, ddStdinArgv(path), { stdin: bytes });
    if (!written.ok) return written;
    const flushed = await tool(host, ["blockdev", "--flushbufs", path]);
    if (!flushed.ok) return flushed;
  }
  // udev reads the table again when a whole disk was written: meanwhile its partitions and their links are gone.
  const settled = await settle(host, step.device.path);
  if (!settled.ok) return settled;
  const made = await tool(host, espMkfs(step), { timeoutMs: 10 * minuteMs });
  if (!made.ok) return made;
  return withMount(host, partitionPath(step.espPartUuid), "vfat", "rw", async (mounted) => {
    for (const folder of ["EFI/BOOT", "EFI/debian", "corium"]) {
      const folders = await tool(host, ["mkdir", "-p", `${mounted}/${folder}`]);
      if (!folders.ok) return folders;
    }
    for (const [to, from] of Object.entries(espFiles)) {
      const copied = await tool(host, ["cp", `${bootFiles}/${from}`, `${mounted}/${to}`]);
      if (!copied.ok) return copied;
    }
    return host.files.write(`${mounted}/corium/id.cfg`, idConfig(step.installation), { mode: vfatMode });
  });
}
