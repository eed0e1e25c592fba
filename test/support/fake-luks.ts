/**
 * cryptsetup, systemd-cryptenroll and what they work on, in memory; they fail as the tools do. The trap is in it too: as
 * long as the TPM opens a volume, every key passes unless `--disable-external-tokens` is given. And so is another: a slot
 * bound to the same measurement, even if by another TPM, makes enrolling do nothing and succeed.
 */
import type { Disk, Inventory, Signature } from "../../kit/disk.ts";
import type { ExecResult } from "../../kit/ports.ts";
import { fail } from "../../kit/app-error.ts";
import { ok } from "../../kit/result.ts";
import type { FakeHost, FakeProgram } from "./fake-host-model.ts";

export interface FakeSlot {
  readonly kind: "password" | "tpm2" | "recovery";
  /** A key, or for the TPM `BOARD:MEASURED`. */
  readonly opens: string;
}

export interface FakeHeader {
  readonly uuid: string;
  label?: string;
  slots: FakeSlot[];
  inside?: { type: string; uuid: string; label?: string };
}

export interface FakeDisk {
  readonly serial: string;
  header?: FakeHeader;
  /** Anything else on it. */
  foreign?: { readonly type: string; readonly uuid: string };
}

export interface FakeLuks {
  /** By path. */
  readonly disks: Map<string, FakeDisk>;
  /** `BOARD:MEASURED`, which TPM it is and what its PCR 7 is; absent: no TPM. */
  tpm: string | undefined;
  /** Mapping → path of the disk. */
  readonly open: Map<string, string>;
  mounted: { readonly point: string; readonly uuid: string } | undefined;
  recoveryCount: number;
  /** The next enrolment ends before it has done anything. */
  isEnrolmentBroken: boolean;
  readonly programs: Readonly<Record<string, FakeProgram>>;
  inventory(): Inventory;
  /** The unit that the generator makes of the line in crypttab. */
  openByCrypttab(mapping: string, fake: FakeHost): ReturnType<typeof ok<void>> | ReturnType<typeof fail>;
  /** Mappings and mounts are gone; the TPM is what it was. */
  powerOff(): void;
}

const bad = (exitCode: number, stderr: string): Partial<ExecResult> => ({ exitCode, stderr });
const SIZE = 512 * 1024 * 1024;

export function fakeLuks(disks: Readonly<Record<string, FakeDisk>>, tpm: string | undefined = "a:7"): FakeLuks {
  const byUuid = (uuid: string): string | undefined =>
    [...luks.disks].find(([, disk]) => disk.header?.uuid === uuid)?.[0];
  /** `/dev/vdb`, `/dev/disk/by-uuid/…`. */
  const find = (path: string): readonly [string, FakeDisk] | undefined => {
    const real = path.startsWith("/dev/disk/by-uuid/") ? byUuid(path.slice("/dev/disk/by-uuid/".length)) : path;
    const disk = real === undefined ? undefined : luks.disks.get(real);
    return real === undefined || disk === undefined ? undefined : [real, disk];
  };
  const insideOf = (path: string): FakeHeader | undefined =>
    luks.disks.get(luks.open.get(path.replace("/dev/mapper/", "")) ?? "")?.header;
  const isOpenedByTpm = (header: FakeHeader): boolean =>
    luks.tpm !== undefined && header.slots.some((slot) => slot.kind === "tpm2" && slot.opens === luks.tpm);
  const isOpenedBy = (header: FakeHeader, key: string): boolean =>
    header.slots.some((slot) => slot.kind !== "tpm2" && slot.opens === key);
  const flag = (argv: readonly string[], name: string): string | undefined =>
    argv.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ??
    (argv.includes(name) ? (argv[argv.indexOf(name) + 1] ?? "") : undefined);

  const cryptsetup: FakeProgram = ({ argv, stdinText }, fake) => {
    const words = argv.filter((word) => word !== "-q");
    const verb = words[1];
    if (verb === "luksFormat") {
      const [path = "", keyFile = ""] = words.slice(-2);
      const disk = luks.disks.get(path);
      const key = fake.text(keyFile);
      if (disk === undefined || key === undefined) return bad(4, "Device or key file does not exist.");
      delete disk.foreign;
      disk.header = { uuid: flag(words, "--uuid") ?? "", slots: [] };
      // The header is there before its first key is.
      if (!fake.isTearing) disk.header.slots.push({ kind: "password", opens: key });
      fake.put(`/dev/disk/by-uuid/${disk.header.uuid}`, "", { kind: "block" });
      return "";
    }
    if (verb === "config") {
      const header = find(words.at(-1) ?? "")?.[1].header;
      if (header === undefined) return bad(4, "not a LUKS device");
      header.label = flag(words, "--label") ?? "";
      return "";
    }
    if (verb === "luksDump") {
      const header = find(words.at(-1) ?? "")?.[1].header;
      return header === undefined ? bad(1, "not a valid LUKS device") : dumpOf(header);
    }
    if (verb === "close") {
      luks.open.delete(words[2] ?? "");
      return "";
    }
    const isTest = words.includes("--test-passphrase");
    const found = find(words.at(isTest ? -1 : -2) ?? "");
    const header = found?.[1].header;
    if (found === undefined || header === undefined) return bad(4, "Device is not a valid LUKS device.");
    const keyFile = flag(words, "--key-file");
    const key = keyFile === undefined || keyFile === "-" ? stdinText : (fake.text(keyFile) ?? "");
    const byToken = !words.includes("--disable-external-tokens") && isOpenedByTpm(header);
    if (words.includes("--token-only") ? !byToken : !byToken && !isOpenedBy(header, key))
      return words.includes("--token-only")
        ? bad(1, "No usable token is available.")
        : bad(2, "No key available with this passphrase.");
    if (!isTest) makeMapping(words.at(-1) ?? "", found[0], fake);
    return "";
  };

  const makeMapping = (mapping: string, path: string, fake: FakeHost): void => {
    luks.open.set(mapping, path);
    fake.put(`/dev/mapper/${mapping}`, "", { kind: "block" });
  };

  const cryptenroll: FakeProgram = ({ argv }, fake) => {
    const header = find(argv.at(-1) ?? "")?.[1].header;
    if (header === undefined) return bad(1, "Failed to load LUKS2 superblock");
    if (luks.isEnrolmentBroken) return bad(1, "Failed to open TPM2 token: No such file or directory");
    const keyFile = flag(argv, "--unlock-key-file");
    const isUnlocked = keyFile === undefined ? isOpenedByTpm(header) : isOpenedBy(header, fake.text(keyFile) ?? "");
    if (!isUnlocked) return bad(1, "Failed to unlock: Operation not permitted");
    const wiped = flag(argv, "--wipe-slot");
    const before = header.slots;
    let printed = "";
    let added: FakeSlot | undefined;
    if (argv.includes("--tpm2-pcrs=7")) {
      const { tpm: now } = luks;
      if (now === undefined) return bad(1, "No TPM2 device found.");
      const measured = (tpm: string): string => tpm.split(":")[1] ?? "";
      if (before.some((slot) => slot.kind === "tpm2" && measured(slot.opens) === measured(now)))
        return { exitCode: 0, stderr: "This PCR set is already enrolled, executing no operation." };
      added = { kind: "tpm2", opens: now };
    }
    if (argv.includes("--recovery-key")) {
      luks.recoveryCount += 1;
      added = { kind: "recovery", opens: `recovery-${luks.recoveryCount}` };
      printed = `${added.opens}\n`;
    }
    if (added !== undefined) header.slots = [...before, added];
    if (!fake.isTearing && wiped !== undefined)
      header.slots = header.slots.filter((slot) => slot === added || slot.kind !== wiped);
    return printed;
  };

  const blkid: FakeProgram = ({ argv }) => {
    const path = argv.at(-1) ?? "";
    const marks = path.startsWith("/dev/mapper/") ? insideOf(path)?.inside : marksOf(find(path)?.[1]);
    if (marks === undefined) return bad(2, "");
    const label = marks.label === undefined ? "" : `LABEL=${marks.label}\n`;
    return `TYPE=${marks.type}\nUUID=${marks.uuid}\n${label}`;
  };

  const wipefs: FakeProgram = ({ argv }) => {
    const path = argv.at(-1) ?? "";
    const isMapping = path.startsWith("/dev/mapper/");
    const disk = luks.disks.get(path);
    if (argv.includes("-a")) {
      delete disk?.header;
      delete disk?.foreign;
      return "";
    }
    const marks = isMapping ? insideOf(path)?.inside : marksOf(disk);
    if (marks === undefined) return "";
    const one = { ...marks, label: marks.label ?? null };
    const signatures =
      marks.type === "crypto_LUKS"
        ? [
            { offset: "0x0", ...one },
            { offset: "0x4000", ...one },
          ]
        : [one];
    return JSON.stringify({ signatures });
  };

  const lsblk: FakeProgram = () =>
    JSON.stringify({
      blockdevices: [...luks.disks].map(([path, { serial }]) => ({
        path,
        kname: path.slice("/dev/".length),
        type: "disk",
        size: SIZE,
        serial,
        mountpoints: [null],
      })),
    });

  const luks: FakeLuks = {
    disks: new Map(Object.entries(disks)),
    tpm,
    open: new Map(),
    mounted: undefined,
    recoveryCount: 0,
    isEnrolmentBroken: false,
    programs: {
      cryptsetup,
      "systemd-cryptenroll": cryptenroll,
      blkid,
      wipefs,
      lsblk,
      udevadm: () => "",
      sync: () => "",
      chattr: () => "",
      dmsetup: () =>
        [...luks.open]
          .map(([mapping, path]) => {
            const uuid = luks.disks.get(path)?.header?.uuid.replaceAll("-", "") ?? "";
            return `${mapping} CRYPT-LUKS2-${uuid}-${mapping}\n`;
          })
          .join(""),
      "mkfs.ext4": ({ argv }) => {
        const header = insideOf(argv.at(-1) ?? "");
        if (header === undefined) return bad(1, "no such device");
        header.inside = { type: "ext4", uuid: flag(argv, "-U") ?? "" };
        return "";
      },
      tune2fs: ({ argv }) => {
        const inside = insideOf(argv.at(-1) ?? "")?.inside;
        if (inside === undefined) return bad(1, "no filesystem");
        inside.label = flag(argv, "-L") ?? "";
        return "";
      },
      findmnt: () => {
        const { mounted } = luks;
        return JSON.stringify({
          filesystems:
            mounted === undefined ? [] : [{ target: mounted.point, source: "/dev/dm-1", uuid: mounted.uuid }],
        });
      },
    },
    inventory: () => ({ disks: [...luks.disks].map(([path, disk]) => toDisk(path, disk)), arrays: [], unknown: [] }),
    openByCrypttab(mapping, fake) {
      const line = (fake.text("/etc/crypttab") ?? "").split("\n").find((each) => each.startsWith(`${mapping} `));
      const [, uuid = "", keyFile = "", options = ""] = line?.split(" ") ?? [];
      const found = find(uuid.replace("UUID=", "/dev/disk/by-uuid/"));
      const header = found?.[1].header;
      if (found === undefined || header === undefined) return fail("unit-failed", "no such device");
      if (luks.open.get(mapping) === found[0]) return ok(undefined);
      const byTpm = options.includes("tpm2-device=auto") && isOpenedByTpm(header);
      if (!byTpm && !isOpenedBy(header, fake.text(keyFile) ?? "\0"))
        return fail("unit-failed", "Password querying disabled");
      makeMapping(mapping, found[0], fake);
      return ok(undefined);
    },
    powerOff() {
      luks.open.clear();
      luks.mounted = undefined;
    },
  };

  const toDisk = (path: string, disk: FakeDisk): Disk => {
    const marks = marksOf(disk);
    const signature = (where: string): Signature => ({ device: path, where, type: "", ...marks });
    const isHeader = marks?.type === "crypto_LUKS";
    const signatures = marks === undefined ? [] : [signature("the whole disk at 0x0")];
    const mapping = [...luks.open].find(([, on]) => on === path)?.[0];
    return {
      path,
      links: [],
      identity: { serial: disk.serial, sizeBytes: SIZE },
      sizeBytes: SIZE,
      logicalSectorBytes: 512,
      physicalSectorBytes: 512,
      bus: "virtio",
      type: "ssd",
      isRemovable: false,
      isReadOnly: false,
      partitions: [],
      signatures: isHeader ? [...signatures, signature("the whole disk at 0x4000")] : signatures,
      users: mapping === undefined ? [] : [{ kind: "dm", name: mapping, isBusy: luks.mounted !== undefined }],
      isBootMedium: false,
      isSystemDisk: false,
    };
  };
  return luks;
}

function marksOf(disk: FakeDisk | undefined): { type: string; uuid: string; label?: string } | undefined {
  if (disk?.foreign !== undefined) return disk.foreign;
  if (disk?.header === undefined) return undefined;
  const { uuid, label } = disk.header;
  return { type: "crypto_LUKS", uuid, ...(label === undefined ? {} : { label }) };
}

const tokenTypes = { tpm2: "systemd-tpm2", recovery: "systemd-recovery" } as const;

function dumpOf({ slots }: FakeHeader): string {
  const tokens = slots.flatMap(({ kind }, at) =>
    kind === "password"
      ? []
      : [{ type: tokenTypes[kind], keyslots: [String(at)], ...(kind === "tpm2" ? { "tpm2-pcrs": [7] } : {}) }],
  );
  return JSON.stringify({
    keyslots: Object.fromEntries(slots.map((_, at) => [at, { type: "luks2" }])),
    tokens: Object.fromEntries(tokens.map((token, at) => [at, token])),
  });
}
