/** The boot environment on the ESP of the disk that was booted: read, decide, write in place, read back. */
import { fail } from "../kit/app-error.ts";
import type { AppError } from "../kit/app-error.ts";
import type { BootFacts } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import { ok } from "../kit/result.ts";
import type { Result } from "../kit/result.ts";
import { BOOT_ENV_BYTES, BOOT_ENV_PATH, decodeBootEnv, encodeBootEnv } from "./bootenv.ts";
import type { BootEnv } from "./bootenv.ts";
import { decide } from "./bootstate.ts";
import type { Request } from "./bootstate.ts";

type Runner = Pick<Host, "exec" | "files">;

async function must(
  host: Runner,
  argv: readonly string[],
  what: string,
  stdin?: Uint8Array,
): Promise<Result<void, AppError>> {
  const done = await host.exec({ argv, timeoutMs: 30_000, ...(stdin !== undefined && { stdin }) });
  if (done.exitCode === 0) return ok(undefined);
  return fail(
    "boot-environment",
    `${what}: ${done.stderr.trim() || `exit status ${done.exitCode ?? done.signal ?? "unknown"}`}`,
  );
}

/** The ESP is mounted only for the moment: after a power cut a mounted FAT says it was not cleanly unmounted. */
async function withEsp<T>(
  host: Runner,
  device: string,
  mode: "ro" | "rw",
  use: (folder: string) => Promise<Result<T, AppError>>,
): Promise<Result<T, AppError>> {
  const folder = "/run/corium/esp";
  const made = await host.files.mkdir(folder, { mode: 0o700 });
  if (!made.ok) return made;
  const options = `${mode},nodev,nosuid,noexec,umask=0077`;
  const mounted = await must(host, ["mount", "-t", "vfat", "-o", options, device, folder], "the ESP can't be mounted");
  if (!mounted.ok) return mounted;
  const result = await use(folder);
  const unmounted = await must(host, ["umount", folder], "the ESP can't be unmounted");
  return result.ok && !unmounted.ok ? unmounted : result;
}

const readEnv = async (host: Runner, folder: string): Promise<Result<BootEnv, AppError>> => {
  const read = await host.files.read(`${folder}/${BOOT_ENV_PATH}`, { maxBytes: BOOT_ENV_BYTES });
  return read.ok ? decodeBootEnv(read.value) : read;
};

/** One request of `corium bootstate`; the answer is its standard output. */
export async function bootState(host: Runner, facts: BootFacts, request: Request): Promise<Result<string, AppError>> {
  const { slot, installation } = facts;
  const esp = facts.partUuids?.esp;
  if (facts.mode !== "disk" || slot === undefined || esp === undefined) {
    return fail("not-installed", "this system runs from a medium, there is no boot environment", {
      hint: "boot from the installed disk",
    });
  }
  const device = `/dev/disk/by-partuuid/${esp}`;
  const found = await withEsp(host, device, "ro", (folder) => readEnv(host, folder));
  if (!found.ok) return found;
  if (found.value.id !== installation) {
    return fail(
      "boot-environment",
      `the boot environment belongs to installation ${found.value.id}, not to ${installation}`,
    );
  }
  const decided = decide(found.value, request, slot);
  if (!decided.ok) return decided;
  const { answer, next } = decided.value;
  if (next === undefined) return ok(answer);
  const written = await withEsp(host, device, "rw", async (folder) => {
    // One write of 1024 bytes into the file as it lies: a rename or truncation would move what GRUB knows.
    const argv = [
      "dd",
      `of=${folder}/${BOOT_ENV_PATH}`,
      "bs=1024",
      "count=1",
      "iflag=fullblock",
      "conv=notrunc,fsync",
      "status=none",
    ];
    const put = await must(host, argv, "the boot environment can't be written", encodeBootEnv(next));
    if (!put.ok) return put;
    const back = await readEnv(host, folder);
    if (!back.ok) return back;
    return back.value.generation === next.generation
      ? ok(undefined)
      : fail("boot-environment", "the boot environment was written but reads back otherwise");
  });
  return written.ok ? ok(answer) : written;
}
