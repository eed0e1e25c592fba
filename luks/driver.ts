/** Reads volumes and this machine's TPM; mints recovery keys and opens volumes by hand. */
import { argumentValue, parseCmdline } from "../config/cmdline.ts";
import type { AppError } from "../kit/app-error.ts";
import { appError, fail } from "../kit/app-error.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { err, ok } from "../kit/result.ts";
import { Secret } from "../kit/secret.ts";
import {
  closeArgv,
  cryptsetupUnit,
  dumpArgv,
  enrollArgv,
  headerPath,
  mappingName,
  mappingUuid,
  mappingsArgv,
  openArgv,
  openTpmArgv,
  passphraseFile,
  recoveryArgv,
  testKeyArgv,
  testTpmArgv,
  wipeTpmArgv,
} from "./argv.ts";
import { WRONG_KEY, toolFailed } from "./errors.ts";
import { ACKNOWLEDGED, PCR7_ARGUMENT } from "./lint.ts";
import type { Header, KnownVolume, Probed, TpmFacts, VolumeReport } from "./model.ts";
import { hasSlot, parseHeader, parseMappings } from "./parse.ts";

const toolTimeoutMs = 5 * 60_000;
/** A recovery key is minted seldom, status is asked every two seconds. */
const headerAgeMs = 30_000;
const RUN_FOLDER = "/run/corium";
const SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

export async function readTpm(host: Host): Promise<TpmFacts> {
  const version = await host.files.readText("/sys/class/tpm/tpm0/tpm_version_major");
  const efi = await host.files.stat("/sys/firmware/efi");
  // Four bytes of attributes, then the value.
  const secureBoot = await host.files.read(SECURE_BOOT);
  const cmdline = await host.files.readText("/proc/cmdline");
  return {
    ...(version.ok ? { versionMajor: Number(version.value.trim()) } : {}),
    isEfi: efi.ok && efi.value !== null,
    isSecureBoot: secureBoot.ok && secureBoot.value[4] === 1,
    isAcknowledged: cmdline.ok && argumentValue(parseCmdline(cmdline.value), PCR7_ARGUMENT) === ACKNOWLEDGED,
  };
}

export async function readHeader(host: Host, path: string): Promise<Result<Header, AppError>> {
  const dumped = await host.exec({ argv: dumpArgv(path), timeoutMs: 60_000 });
  return dumped.exitCode === 0 ? parseHeader(dumped.stdout) : err(toolFailed(`${path} has no header to read`, dumped));
}

/** Of what is on a device now; undefined when it is no LUKS volume. */
export async function readHeaderMarks(
  host: Host,
  path: string,
): Promise<Result<{ readonly uuid?: string; readonly label?: string } | undefined, AppError>> {
  const stat = await host.files.stat(path);
  if (!stat.ok) return stat;
  if (stat.value === null) return ok(undefined);
  const probed = await host.exec({ argv: ["blkid", "-p", "-o", "export", path], timeoutMs: 60_000 });
  // 2: nothing found; 8: several things found.
  if (probed.exitCode === 2 || probed.exitCode === 8) return ok(undefined);
  if (probed.exitCode !== 0) return err(toolFailed(`${path} can't be read`, probed));
  const values = new Map(
    probed.stdout.split("\n").map((line) => [line.split("=")[0], line.slice(line.indexOf("=") + 1)]),
  );
  if (values.get("TYPE") !== "crypto_LUKS") return ok(undefined);
  const [uuid, label] = [values.get("UUID"), values.get("LABEL")];
  return ok({ ...(uuid === undefined ? {} : { uuid }), ...(label === undefined ? {} : { label }) });
}

async function readMappings(host: Host): Promise<ReadonlyMap<string, string>> {
  const listed = await host.exec({ argv: mappingsArgv, timeoutMs: 20_000 });
  return listed.exitCode === 0 ? parseMappings(listed.stdout) : new Map();
}

/** Open under our name, and it is that very header. */
export async function isOpen(host: Host, volume: { readonly name: string; readonly uuid: string }): Promise<boolean> {
  return (await readMappings(host)).get(mappingName(volume.name)) === mappingUuid(volume.uuid, volume.name);
}

export interface VolumeReader {
  (volumes: readonly KnownVolume[]): Promise<readonly VolumeReport[]>;
  /** A recovery key was minted: what is remembered of headers is not true any more. */
  forget(): void;
}

export function volumeReader(host: Host): VolumeReader {
  const seen = new Map<string, { readonly atMs: number; readonly hasRecoveryKey: boolean }>();
  const hasRecoveryKey = async (uuid: string): Promise<boolean | undefined> => {
    const known = seen.get(uuid);
    const atMs = host.clock.monotonicMs();
    if (known !== undefined && atMs - known.atMs < headerAgeMs) return known.hasRecoveryKey;
    const header = await readHeader(host, headerPath(uuid));
    if (!header.ok) return undefined;
    const found = hasSlot(header.value, "recovery");
    seen.set(uuid, { atMs, hasRecoveryKey: found });
    return found;
  };
  const read = async (volumes: readonly KnownVolume[]): Promise<readonly VolumeReport[]> => {
    if (volumes.length === 0) return [];
    const mappings = await readMappings(host);
    return Promise.all(
      volumes.map(async ({ name, uuid, unlock }): Promise<VolumeReport> => {
        const device = await host.files.stat(headerPath(uuid));
        if (!device.ok || device.value === null) return { name, unlock, state: "missing" };
        const isHere = mappings.get(mappingName(name)) === mappingUuid(uuid, name);
        const recovery = await hasRecoveryKey(uuid);
        return {
          name,
          unlock,
          state: isHere ? "open" : "locked",
          ...(recovery === undefined ? {} : { hasRecoveryKey: recovery }),
        };
      }),
    );
  };
  return Object.assign(read, { forget: () => seen.clear() });
}

/**
 * Whether the declared unlock opens a header that nobody recorded, and what is inside. The mapping is read-only and gone
 * again at the end: nothing is written to the disk.
 */
export async function probeVolume(
  host: Host,
  path: string,
  key: "tpm2" | Secret,
): Promise<Result<Probed | undefined, AppError>> {
  const marks = await readHeaderMarks(host, path);
  if (!marks.ok) return marks;
  const uuid = marks.value?.uuid;
  if (uuid === undefined) return ok(undefined);
  const mapping = `corium-probe-${uuid.slice(0, 8)}`;
  const opened = await host.exec({
    argv: key === "tpm2" ? openTpmArgv(path, mapping, ["--readonly"]) : openArgv(path, mapping, ["--readonly"]),
    ...(key === "tpm2" ? {} : { stdin: key.reveal().trim() }),
    timeoutMs: toolTimeoutMs,
  });
  if (opened.exitCode !== 0) return ok(undefined);
  const inside = await host.exec({
    argv: ["blkid", "-p", "-o", "export", `/dev/mapper/${mapping}`],
    timeoutMs: 60_000,
  });
  const closed = await host.exec({ argv: closeArgv(mapping), timeoutMs: 60_000 });
  if (closed.exitCode !== 0) return err(toolFailed(`${mapping} could not be closed again`, closed));
  const found = (name: string): string | undefined => new RegExp(`^${name}=(.+)$`, "m").exec(inside.stdout)?.[1];
  const [type, filesystemUuid, label] = [found("TYPE"), found("UUID"), found("LABEL")];
  if (type === undefined) return ok({ uuid });
  return ok({
    uuid,
    filesystem: {
      type,
      ...(filesystemUuid === undefined ? {} : { uuid: filesystemUuid }),
      ...(label === undefined ? {} : { label }),
    },
  });
}

/**
 * A key for the drawer, said once and stored nowhere. It is tried before it is given out. With `isReplacing` older ones
 * stop working. `error.code`: `missing`, `locked`, `has-recovery-key`, or the program's name.
 */
export async function mintRecoveryKey(
  host: Host,
  { name, uuid, unlock }: KnownVolume,
  isReplacing: boolean,
): Promise<Result<Secret, AppError>> {
  const path = headerPath(uuid);
  const there = await host.files.stat(path);
  if (!there.ok || there.value === null) return missing(name);
  const header = await readHeader(host, path);
  if (!header.ok) return header;
  if (hasSlot(header.value, "recovery") && !isReplacing)
    return fail("has-recovery-key", `volume ${name} has a recovery key already`, {
      hint: "ask for a replacement if that one is lost: it stops working then",
    });
  const keyFile = unlock === "tpm2" ? undefined : passphraseFile(name);
  const ran = await host.exec({ argv: recoveryArgv(path, keyFile, isReplacing), timeoutMs: toolTimeoutMs });
  if (ran.exitCode !== 0) {
    const what = unlock === "tpm2" ? "the TPM" : "its passphrase file";
    return fail("locked", `${what} does not open volume ${name}, so that no recovery key can be made`, {
      cause: toolFailed("it was tried", { ...ran, stdout: "" }),
    });
  }
  const key = new Secret(`luks[${name}].recoveryKey`, ran.stdout.trim());
  const tested = await host.exec({ argv: testKeyArgv(path, "-"), stdin: key, timeoutMs: toolTimeoutMs });
  if (tested.exitCode !== 0) return err(toolFailed(`the new recovery key does not open volume ${name}`, tested));
  return ok(key);
}

const missing = (name: string): ReturnType<typeof fail> =>
  fail("missing", `the device of volume ${name} is not here`, { hint: "connect its disks" });

export interface Unlocked {
  /** The TPM opens it again from the next boot on. */
  readonly isBoundAnew: boolean;
  /** It is open, but something after that went wrong. */
  readonly problem?: AppError;
}

/**
 * Opens a volume with a passphrase or recovery key. One that the TPM should open is bound to it anew when the TPM does not
 * open it any more; that failing leaves the volume open and is said once. `error.code`: `missing`, `already-open`,
 * `wrong-key`, or the program's name.
 */
export async function unlockVolume(host: Host, volume: KnownVolume, key: Secret): Promise<Result<Unlocked, AppError>> {
  const { name, uuid, unlock } = volume;
  const path = headerPath(uuid);
  const there = await host.files.stat(path);
  if (!there.ok || there.value === null) return missing(name);
  if (await isOpen(host, volume)) return fail("already-open", `volume ${name} is open`);
  const opened = await host.exec({ argv: openArgv(path, mappingName(name)), stdin: key, timeoutMs: toolTimeoutMs });
  if (opened.exitCode === WRONG_KEY) return fail("wrong-key", `the key does not open volume ${name}`);
  if (opened.exitCode !== 0) return err(toolFailed(`volume ${name} could not be opened`, opened));
  // It finds the volume open and takes it over, so that it is closed in its turn when the machine goes down.
  const unit = cryptsetupUnit(name);
  await host.systemd.resetFailed(unit);
  const taken = await host.systemd.start(unit);
  const bound = unlock === "tpm2" ? await bindAnew(host, volume, key) : ok(false);
  const problem = taken.ok ? (bound.ok ? undefined : bound.error) : taken.error;
  return ok({ isBoundAnew: bound.ok && bound.value, ...(problem === undefined ? {} : { problem }) });
}

async function bindAnew(host: Host, { name, uuid }: KnownVolume, key: Secret): Promise<Result<boolean, AppError>> {
  const path = headerPath(uuid);
  const byTpm = await host.exec({ argv: testTpmArgv(path), timeoutMs: toolTimeoutMs });
  if (byTpm.exitCode === 0) return ok(false);
  const tpm = await readTpm(host);
  if (tpm.versionMajor !== 2)
    return fail("no-tpm2", `volume ${name} can't be bound to the TPM again: this machine shows none`);
  // systemd-cryptenroll takes it from a file only. /run is memory.
  const file = `${RUN_FOLDER}/luks-${name}.key`;
  const written = await host.files.write(file, key.reveal(), { mode: 0o600 });
  if (!written.ok) return written;
  try {
    for (const argv of [wipeTpmArgv(path, file), enrollArgv(path, file)]) {
      const ran = await host.exec({ argv, timeoutMs: toolTimeoutMs });
      if (ran.exitCode !== 0) return err(toolFailed(`volume ${name} could not be bound to the TPM again`, ran));
    }
  } finally {
    await host.files.remove(file);
  }
  const again = await host.exec({ argv: testTpmArgv(path), timeoutMs: toolTimeoutMs });
  if (again.exitCode === 0) return ok(true);
  return err(appError("tpm", `volume ${name} was bound to the TPM again, which does not open it all the same`));
}
