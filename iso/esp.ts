/** The boot environment on one ESP: mounted for a moment, read, written in place, read back. */
import { fail } from "../kit/app-error.ts";
import type { AppError } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import { ok } from "../kit/result.ts";
import type { Result } from "../kit/result.ts";
import { BOOT_ENV_BYTES, BOOT_ENV_PATH, decodeBootEnv, encodeBootEnv } from "./bootenv.ts";
import type { BootEnv } from "./bootenv.ts";

export type Runner = Pick<Host, "exec" | "files" | "clock">;

/** Where one is mounted for a moment. */
export const ESP_FOLDER = "/run/corium/esp";
const LOCK = "/run/corium/esp.lock";
const LOCK_WAIT_MS = 120_000;
/** Nobody needs it for so long: its holder was killed. */
const LOCK_STALE_MS = 300_000;

/**
 * Of a mirrored system the daemon and `corium bootstate` both mount ESPs; one that is mounted read-only can't be mounted
 * for writing by another, and what could not be read must not pass for what is not there.
 */
export async function withEspLock<T>(
  host: Runner,
  work: () => Promise<Result<T, AppError>>,
): Promise<Result<T, AppError>> {
  const until = host.clock.monotonicMs() + LOCK_WAIT_MS;
  for (;;) {
    const now = host.clock.monotonicMs();
    const taken = await host.files.write(LOCK, String(now), { mode: 0o600, isNew: true });
    if (taken.ok) break;
    if (taken.error.code !== "EEXIST") return taken;
    const since = await host.files.readText(LOCK);
    if (since.ok && now - Number(since.value) > LOCK_STALE_MS) await host.files.remove(LOCK);
    else if (now > until) return fail("boot-environment", "the ESPs are being written by another program");
    await host.clock.sleep(500);
  }
  try {
    return await work();
  } finally {
    await host.files.remove(LOCK);
  }
}

export async function must(
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

const BUSY_TRIES = 50;
const BUSY_AGAIN_MS = 200;

/** Whoever asks how full the file systems are holds each of them for a moment: `target is busy` is waited for. */
async function unmount(host: Runner, folder: string): Promise<Result<void, AppError>> {
  for (let tries = 1; ; tries += 1) {
    const done = await must(host, ["umount", folder], "the ESP can't be unmounted");
    if (done.ok || tries >= BUSY_TRIES || !done.error.message.includes("busy")) return done;
    await host.clock.sleep(BUSY_AGAIN_MS);
  }
}

/** The ESP is mounted only for the moment: after a power cut a mounted FAT says it was not cleanly unmounted. */
export async function withEsp<T>(
  host: Runner,
  device: string,
  mode: "ro" | "rw",
  use: (folder: string) => Promise<Result<T, AppError>>,
  folder = ESP_FOLDER,
): Promise<Result<T, AppError>> {
  const made = await host.files.mkdir(folder, { mode: 0o700 });
  if (!made.ok) return made;
  const options = `${mode},nodev,nosuid,noexec,umask=0077`;
  const mounted = await must(host, ["mount", "-t", "vfat", "-o", options, device, folder], "the ESP can't be mounted");
  if (!mounted.ok) return mounted;
  const result = await use(folder);
  const unmounted = await unmount(host, folder);
  return result.ok && !unmounted.ok ? unmounted : result;
}

const readIn = async (host: Runner, folder: string): Promise<Result<BootEnv, AppError>> => {
  const read = await host.files.read(`${folder}/${BOOT_ENV_PATH}`, { maxBytes: BOOT_ENV_BYTES });
  return read.ok ? decodeBootEnv(read.value) : read;
};

export const readEnv = (host: Runner, device: string): Promise<Result<BootEnv, AppError>> =>
  withEsp(host, device, "ro", (folder) => readIn(host, folder));

export const writeEnv = (host: Runner, device: string, env: BootEnv): Promise<Result<void, AppError>> =>
  withEsp(host, device, "rw", async (folder) => {
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
    const put = await must(host, argv, "the boot environment can't be written", encodeBootEnv(env));
    if (!put.ok) return put;
    const back = await readIn(host, folder);
    if (!back.ok) return back;
    return back.value.generation === env.generation
      ? ok(undefined)
      : fail("boot-environment", "the boot environment was written but reads back otherwise");
  });
