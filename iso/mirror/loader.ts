/**
 * Boot code, core image and ESP of one disk → the other. Only onto a disk whose members are all in sync, and from one
 * that is: GRUB reads kernel and arguments from the disk whose environment it took.
 */
import type { AppError } from "../../kit/app-error.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import { BOOT_ENV_PATH } from "../bootenv.ts";
import type { BootEnv } from "../bootenv.ts";
import { must, readEnv, withEsp, writeEnv } from "../esp.ts";
import type { Runner } from "../esp.ts";
import { PARTITIONS } from "../layout.ts";
import { BOOT_CODE_BYTES } from "../loader.ts";
import type { MirrorDisk } from "./model.ts";

const numberOf = (role: "bios" | "esp"): number => PARTITIONS.find((each) => each.role === role)?.number ?? 0;
const partition = (disk: MirrorDisk, role: "bios" | "esp"): string => disk.partitions.get(numberOf(role)) ?? "";

const FROM = "/run/corium/esp-from";
const TO = "/run/corium/esp-to";
const [ENV_FOLDER = "", ENV_NAME = ""] = BOOT_ENV_PATH.split("/");

/**
 * Done is a disk that holds byte for byte what the other one boots from. Says whether anything had to be written. While
 * more than its environment is written it has none: a cut in between leaves a disk that neither GRUB nor a later copy
 * takes anything from.
 */
export async function copyLoader(host: Runner, from: MirrorDisk, to: MirrorDisk): Promise<Result<boolean, AppError>> {
  if (!(await isLoaderEqual(host, from, to))) {
    // Boot code last of these: a BIOS that finds none takes the other disk, one that finds some waits in GRUB for the rest.
    for (const part of [makeEsp, fillEsp, copyCore, copyCode]) {
      const done = await part(host, from, to);
      if (!done.ok) return done;
    }
  }
  // Last, and in place.
  const wanted = await readEnv(host, partition(from, "esp"));
  if (!wanted.ok) return wanted;
  const found = await readEnv(host, partition(to, "esp"));
  if (found.ok && isSame(found.value, wanted.value)) return ok(false);
  const written = await writeEnv(host, partition(to, "esp"), wanted.value);
  return written.ok ? ok(true) : written;
}

/** Whether `copyLoader` would write nothing. */
export async function isBootEqual(host: Runner, from: MirrorDisk, to: MirrorDisk): Promise<boolean> {
  const wanted = await readEnv(host, partition(from, "esp"));
  const found = await readEnv(host, partition(to, "esp"));
  return wanted.ok && found.ok && isSame(wanted.value, found.value) && isLoaderEqual(host, from, to);
}

const isSame = (a: BootEnv, b: BootEnv): boolean => JSON.stringify(a) === JSON.stringify(b);

/** All but the environment. An ESP that can't be mounted has nothing that is equal. */
async function isLoaderEqual(host: Runner, from: MirrorDisk, to: MirrorDisk): Promise<boolean> {
  if (!(await isEqual(host, from.path, to.path, BOOT_CODE_BYTES))) return false;
  if (!(await isEqual(host, partition(from, "bios"), partition(to, "bios")))) return false;
  const argv = ["diff", "--recursive", "--brief", `--exclude=${ENV_NAME}`, FROM, TO];
  const compare = async (): Promise<Result<boolean, AppError>> =>
    ok((await host.exec({ argv, timeoutMs: 60_000 })).exitCode === 0);
  const equal = await withEsp(
    host,
    partition(from, "esp"),
    "ro",
    () => withEsp(host, partition(to, "esp"), "ro", compare, TO),
    FROM,
  );
  return equal.ok && equal.value;
}

async function isEqual(host: Runner, from: string, to: string, bytes?: number): Promise<boolean> {
  const limit = bytes === undefined ? [] : [`--bytes=${bytes}`];
  return (await host.exec({ argv: ["cmp", "--silent", ...limit, from, to], timeoutMs: 60_000 })).exitCode === 0;
}

/** Made anew, so that what was there before is gone with certainty, its environment too. */
const makeEsp = (host: Runner, _from: MirrorDisk, to: MirrorDisk): Promise<Result<void, AppError>> => {
  const path = partition(to, "esp");
  const argv = ["mkfs.vfat", "-F", "32", "-S", String(to.sectorBytes), "-i", to.espPartUuid.slice(0, 8)];
  return must(host, [...argv, "-n", "CORIUM-ESP", path], `the ESP ${path} can't be made`);
};

const copyCore = (host: Runner, from: MirrorDisk, to: MirrorDisk): Promise<Result<void, AppError>> =>
  copyBytes(host, partition(from, "bios"), partition(to, "bios"), ["bs=64K"]);

const copyCode = (host: Runner, from: MirrorDisk, to: MirrorDisk): Promise<Result<void, AppError>> =>
  copyBytes(host, from.path, to.path, [`bs=${BOOT_CODE_BYTES}`, "count=1"]);

const copyBytes = (
  host: Runner,
  from: string,
  to: string,
  size: readonly string[],
): Promise<Result<void, AppError>> => {
  const argv = ["dd", `if=${from}`, `of=${to}`, ...size, "conv=notrunc,fsync", "status=none"];
  return must(host, argv, `the boot loader can't be written to ${to}`);
};

function fillEsp(host: Runner, from: MirrorDisk, to: MirrorDisk): Promise<Result<void, AppError>> {
  const fill = async (): Promise<Result<void, AppError>> => {
    // No chmod: FAT refuses the modes it does not have.
    const made = await must(host, ["mkdir", "-p", `${TO}/${ENV_FOLDER}`], `the ESP of ${to.path} can't be filled`);
    if (!made.ok) return made;
    const top = await host.files.list(FROM);
    if (!top.ok) return top;
    const beside = await host.files.list(`${FROM}/${ENV_FOLDER}`);
    if (!beside.ok) return beside;
    const entries = [
      ...top.value.filter((name) => name !== ENV_FOLDER),
      ...beside.value.filter((name) => name !== ENV_NAME).map((name) => `${ENV_FOLDER}/${name}`),
    ];
    for (const entry of entries) {
      const argv = ["cp", "--recursive", "--no-target-directory", `${FROM}/${entry}`, `${TO}/${entry}`];
      const copied = await must(host, argv, `the ESP of ${to.path} can't be filled`);
      if (!copied.ok) return copied;
    }
    return must(host, ["sync", "--file-system", TO], `the ESP of ${to.path} can't be written`);
  };
  return withEsp(host, partition(from, "esp"), "ro", () => withEsp(host, partition(to, "esp"), "rw", fill, TO), FROM);
}
