import type { LuksFormatStep } from "./model.ts";

/** Mappings of ours; `corium-root` is the root's. */
export const mappingName = (name: string): string => `corium-luks-${name}`;
export const mappingPath = (name: string): string => `/dev/mapper/${mappingName(name)}`;
/** Made by systemd-cryptsetup-generator from our line of crypttab. Of what a name may hold only the dash is escaped. */
export const cryptsetupUnit = (name: string): string =>
  `systemd-cryptsetup@${mappingName(name).replaceAll("-", "\\x2d")}.service`;

/** By which the header is found whatever it lies on. */
export const headerPath = (uuid: string): string => `/dev/disk/by-uuid/${uuid}`;

/** What device-mapper calls an open LUKS 2 volume of this header and name. */
export const mappingUuid = (uuid: string, name: string): string =>
  `CRYPT-LUKS2-${uuid.replaceAll("-", "")}-${mappingName(name)}`;

export const KEY_FOLDER = "/var/lib/corium/luks";
/** The passphrase of a volume, 0600, beside which nothing of it is kept. */
export const passphraseFile = (name: string): string => `${KEY_FOLDER}/${name}.key`;
/** The random first key of a TPM volume: there only until the TPM opens it. */
export const bootstrapKeyFile = (name: string): string => `${KEY_FOLDER}/${name}.bootstrap`;

/**
 * What a person chose is made expensive to guess, at a fixed cost: a benchmark takes ten seconds on a slow machine and
 * picks another cost on each. 64 random bytes need none of that.
 */
const derivation = {
  passphrase: [
    "--pbkdf",
    "argon2id",
    "--pbkdf-memory",
    "65536",
    "--pbkdf-parallel",
    "1",
    "--pbkdf-force-iterations",
    "4",
  ],
  tpm2: ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"],
} as const;

/** Without a label: that is the mark of completion, as with filesystems. */
export const formatArgv = ({
  unlock,
  uuid,
  device,
  keyFile,
}: Pick<LuksFormatStep, "unlock" | "uuid" | "device" | "keyFile">): string[] => [
  "cryptsetup",
  "-q",
  "luksFormat",
  "--type",
  "luks2",
  "--uuid",
  uuid,
  ...derivation[unlock],
  device.path,
  keyFile,
];

export const labelArgv = (path: string, label: string): string[] => [
  "cryptsetup",
  "-q",
  "config",
  "--label",
  label,
  path,
];

/** fsync of the device node. */
export const syncArgv = (path: string): string[] => ["sync", path];

export const dumpArgv = (path: string): string[] => ["cryptsetup", "luksDump", "--dump-json-metadata", path];

/**
 * Whether a key opens it: 0, or 2 when not. `--disable-external-tokens`: as long as the TPM opens the volume any key at all
 * would pass, because the token's plugin goes first. `-`: on stdin.
 */
export const testKeyArgv = (path: string, keyFile: string): string[] => [
  "cryptsetup",
  "open",
  "--test-passphrase",
  "--disable-external-tokens",
  "--key-file",
  keyFile,
  path,
];

/** Whether the TPM opens it, and nothing else. */
export const testTpmArgv = (path: string): string[] => [
  "cryptsetup",
  "open",
  "--test-passphrase",
  "--token-only",
  "--token-type",
  "systemd-tpm2",
  path,
];

/** With a key on stdin. */
export const openArgv = (path: string, mapping: string, more: readonly string[] = []): string[] => [
  "cryptsetup",
  "open",
  ...more,
  "--type",
  "luks2",
  "--disable-external-tokens",
  "--key-file",
  "-",
  path,
  mapping,
];

/** With the TPM. */
export const openTpmArgv = (path: string, mapping: string, more: readonly string[] = []): string[] => [
  "cryptsetup",
  "open",
  ...more,
  "--type",
  "luks2",
  "--token-only",
  "--token-type",
  "systemd-tpm2",
  path,
  mapping,
];

export const closeArgv = (mapping: string): string[] => ["cryptsetup", "close", mapping];

const tpm = ["--tpm2-device=auto", "--tpm2-pcrs=7"] as const;

export const enrollArgv = (path: string, keyFile: string): string[] => [
  "systemd-cryptenroll",
  `--unlock-key-file=${keyFile}`,
  ...tpm,
  path,
];

/**
 * Slots of a TPM that does not open the volume any more, before a new one is made. Not both in one call: for another TPM
 * that measures the same systemd-cryptenroll says "This PCR set is already enrolled", does nothing and exits with 0.
 */
export const wipeTpmArgv = (path: string, keyFile: string): string[] => [
  "systemd-cryptenroll",
  `--unlock-key-file=${keyFile}`,
  "--wipe-slot=tpm2",
  path,
];

/** By kind, never by number: a number that was read a moment ago may be another slot now. */
export const wipePasswordArgv = (path: string): string[] => [
  "systemd-cryptenroll",
  "--unlock-tpm2-device=auto",
  "--wipe-slot=password",
  path,
];

/** Prints the key and a newline on stdout, prose on stderr. */
export const recoveryArgv = (path: string, keyFile: string | undefined, isReplacing: boolean): string[] => [
  "systemd-cryptenroll",
  keyFile === undefined ? "--unlock-tpm2-device=auto" : `--unlock-key-file=${keyFile}`,
  ...(isReplacing ? ["--wipe-slot=recovery"] : []),
  "--recovery-key",
  path,
];

/** `NAME UUID` of every mapping. */
export const mappingsArgv = ["dmsetup", "info", "-c", "--noheadings", "--separator", " ", "-o", "name,uuid"] as const;
