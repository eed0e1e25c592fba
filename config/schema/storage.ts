import * as z from "zod";
import { DEFAULTS } from "../default-values.ts";
import { arrayName, devicePathProblem, isNormalPath, parseSize, type DevicePathProblem } from "../device.ts";
import type { Problem } from "../messages/codes.ts";
import { valueSays } from "../messages/values.ts";
import { isStorageName } from "../names.ts";
import { anyText, freeMap, secretSource, sourceMeta, text } from "./fields.ts";

const DEVICE_SAYS: Readonly<Record<DevicePathProblem, (path: string) => Problem>> = {
  "not-dev": valueSays.deviceNotDev,
  "not-normal": valueSays.deviceNotNormal,
  glob: valueSays.deviceGlob,
  "no-disk": valueSays.deviceNoDisk,
  partition: valueSays.devicePartition,
  array: valueSays.deviceArray,
};

const size = text((value) => (parseSize(value) === undefined ? valueSays.size(value) : undefined), {
  pattern: "^[0-9]+([.][0-9]+)? ?[kKMGT]i?B$",
});

const SIZE_RULE = "a number with its unit: kB MB GB TB, KiB MiB GiB TiB";

/** What a disk says of itself is one line of text, as udev and lsblk have it. */
// oxlint-disable-next-line no-control-regex -- exactly those are refused
const identity = text((value) => (/[\u0000-\u001f\u007f]/.test(value) ? valueSays.notOneLine() : undefined));

const selector = z
  .strictObject({
    serial: identity.optional().meta({ description: "Serial number.", examples: ["EXAMPLE0001"] }),
    wwn: identity.optional().meta({ description: "World wide name; quote it.", examples: ["0x5000c500a0b1c2d3"] }),
    model: identity.optional().meta({ description: "Model.", rule: "a glob", examples: ["EXAMPLE SSD 9?0*"] }),
    type: z
      .enum(["nvme", "ssd", "hdd"])
      .optional()
      .meta({ description: "Kind of disk.", examples: ["nvme"] }),
    bus: z
      .enum(["nvme", "sata", "sas", "usb", "virtio", "mmc"])
      .optional()
      .meta({ description: "How it is attached.", examples: ["sata"] }),
    minSize: size.optional().meta({ description: "At least this big.", rule: SIZE_RULE, examples: ["500GB"] }),
    maxSize: size.optional().meta({ description: "At most this big.", rule: SIZE_RULE, examples: ["1.8TiB"] }),
  })
  .superRefine((value, context) => {
    if (Object.values(value).some((field) => field !== undefined)) return;
    const found = valueSays.emptySelector();
    context.addIssue({ code: "custom", message: found.message, params: { problem: found } });
  });

const DEVICE_FORM = { pattern: "^/dev/[^\\s*?]*[^/\\s*?]$" };

const diskPath = text((value) => {
  const found = devicePathProblem(value);
  return found === undefined ? undefined : DEVICE_SAYS[found](value);
}, DEVICE_FORM);

const diskOrArrayPath = text((value) => {
  const found = devicePathProblem(value);
  return found === undefined || arrayName(value) !== undefined ? undefined : DEVICE_SAYS[found](value);
}, DEVICE_FORM);

const DEVICE_RULE = "a path of a whole disk under /dev, or a selector that matches exactly one disk";

/** A field that takes a disk: described by what it is for, with an example of each form. */
const disk = (description: string, name: string): { description: string; rule: string; examples: unknown[] } => ({
  description,
  rule: DEVICE_RULE,
  examples: [`/dev/disk/by-id/ata-EXAMPLE_${name}`, { type: "ssd", serial: `EXAMPLE${name}` }],
});

/** A list of such. */
const diskList = (names: readonly string[]): readonly string[] =>
  names.map((name) => `/dev/disk/by-id/ata-EXAMPLE_${name}`);

const device = z.union([diskPath, selector]);
const deviceOrArray = z.union([diskOrArrayPath, selector]);

const NAME_FORM = { pattern: "^[A-Za-z0-9][A-Za-z0-9_-]*$", maxLength: 32 };

const name = text((value) => (isStorageName(value) ? undefined : valueSays.storageName(value)), NAME_FORM).meta({
  description: "A name of your own.",
  rule: "letters, digits, _ and -, at most 32; unique of its kind",
  examples: ["data"],
});

const filesystem = z
  .enum(["ext4", "xfs", "none"])
  .optional()
  .meta({ description: "What it is formatted with.", default: DEFAULTS.filesystem, examples: ["xfs"] });

/**
 * The state partition is Corium's own, and so is the folder that /opt, /srv and /mnt are bound from; only the folder that
 * backups go to by default may be another disk.
 */
const KEPT = /^\/var\/(?:lib\/corium(?!\/backups(?:\/|$))|corium|run|lock)(?:\/|$)|^\/var\/(?:lib|log)$/;

/** NAME_MAX, for each folder and for `ESCAPED.mount`, where systemd writes most bytes as `\xNN`. */
function fitsUnitName(path: string): boolean {
  const escaped = Buffer.from(path.slice(1))
    .toString("latin1")
    .replace(/[^A-Za-z0-9:_./]/g, "\\xNN");
  return escaped.length + ".mount".length <= 255 && path.split("/").every((part) => Buffer.byteLength(part) <= 255);
}

export function mountPointProblem(value: string): Problem | undefined {
  if (!isNormalPath(value) && value !== "/") return valueSays.mountPath(value);
  if (!/^\/(?:var|srv|mnt|opt)\/./.test(value)) return valueSays.mountPlace(value);
  // systemd cuts it off a setting, not off a unit's name, and refuses a mount whose two names differ.
  if (value.endsWith(" ")) return valueSays.mountBlank(value);
  if (!fitsUnitName(value)) return valueSays.mountLength();
  return KEPT.test(value) ? valueSays.mountKept(value) : undefined;
}

const mountPoint = text(mountPointProblem, { pattern: "^/(var|srv|mnt|opt)/.*[^/ ]$" })
  .optional()
  .meta({
    description: "Where it is mounted.",
    rule: "below /var, /srv, /mnt or /opt; unique; not with filesystem none",
    examples: ["/srv/data"],
  });

const wipe = z
  .boolean()
  .optional()
  .meta({
    description: "Whether disks that hold data may be overwritten, at first boot only.",
    default: false,
    examples: [true],
  });

export const disks = z
  .array(z.strictObject({ name, device: device.meta(disk("The disk.", "0003")), filesystem, mountPoint, wipe }))
  .meta({
    description: "Plain data disks, one filesystem each.",
    default: [],
    examples: [[{ name: "data", device: "/dev/disk/by-id/ata-EXAMPLE_0003", mountPoint: "/srv/data" }]],
  });

export const raid = z
  .array(
    z.strictObject({
      name,
      level: z.literal([0, 1, 5, 6, 10]).meta({ description: "RAID level.", examples: [1] }),
      devices: z.array(device).meta({
        description: "Its members.",
        rule: "disks, at least 2, 2, 3, 4, 4 for levels 0, 1, 5, 6, 10",
        examples: [diskList(["0004", "0005"]), [{ serial: "EXAMPLE0004" }, { serial: "EXAMPLE0005" }]],
      }),
      spares: z
        .array(device)
        .optional()
        .meta({
          description: "Disks that stand in for a member that fails.",
          rule: "disks; not on level 0",
          default: [],
          examples: [diskList(["0006"])],
        }),
      filesystem,
      mountPoint,
      wipe,
    }),
  )
  .meta({
    description: "Software RAID arrays (md).",
    default: [],
    examples: [[{ name: "k0s", level: 1, devices: diskList(["0004", "0005"]), mountPoint: "/var/lib/k0s" }]],
  });

export const luks = z
  .array(
    z.strictObject({
      name,
      device: deviceOrArray.meta({
        description: "What is encrypted.",
        rule: `${DEVICE_RULE}; or /dev/md/NAME of an array with filesystem none`,
        examples: ["/dev/disk/by-id/ata-EXAMPLE_0007", "/dev/md/data"],
      }),
      unlock: z
        .enum(["tpm2", "passphrase"])
        .optional()
        .meta({ description: "How it is unlocked at boot.", default: DEFAULTS.unlock, examples: ["passphrase"] }),
      passphrase: anyText.optional().meta({
        description: "The passphrase itself.",
        rule: "only with unlock passphrase; exactly one of passphrase and passphraseFrom",
        examples: ["correct horse battery staple"],
      }),
      passphraseFrom: secretSource.optional().meta(sourceMeta("the passphrase")),
      filesystem,
      mountPoint,
      wipe,
    }),
  )
  .meta({
    description: "Encrypted volumes (LUKS 2).",
    default: [],
    examples: [
      [{ name: "vault", device: "/dev/disk/by-id/ata-EXAMPLE_0007", unlock: "tpm2", mountPoint: "/srv/vault" }],
    ],
  });

const poolName = text((value) => {
  if (/^(?:mirror|raidz|draid|spare|log)/.test(value)) return valueSays.poolName(value);
  return isStorageName(value) ? undefined : valueSays.storageName(value);
}, NAME_FORM).meta({
  description: "Name of the pool.",
  rule: "letters, digits, _ and -, no word that zpool keeps for itself; unique",
  examples: ["tank"],
});

export const zfs = z
  .array(
    z.strictObject({
      name: poolName,
      vdevs: z
        .array(
          z.strictObject({
            type: z
              .enum(["stripe", "mirror", "raidz", "raidz2", "raidz3"])
              .optional()
              .meta({ description: "Layout of the vdev.", default: DEFAULTS.vdevType, examples: ["mirror"] }),
            devices: z.array(device).meta({
              description: "Its disks.",
              rule: "at least 1, 2, 2, 3, 4 for stripe, mirror, raidz, raidz2, raidz3",
              examples: [diskList(["0008", "0009"])],
            }),
          }),
        )
        .meta({
          description: "What the pool is made of.",
          rule: "at least one",
          examples: [[{ type: "mirror", devices: diskList(["0008", "0009"]) }]],
        }),
      mountPoint,
      options: freeMap.optional().meta({ description: "Pool properties.", default: {}, examples: [{ ashift: 12 }] }),
      filesystemOptions: freeMap.optional().meta({
        description: "Properties of the root filesystem.",
        default: {},
        examples: [{ compression: "zstd" }],
      }),
      datasets: z
        .array(freeMap)
        .optional()
        .meta({ description: "Further datasets.", default: [], examples: [[{ name: "backups", quota: "500G" }]] }),
      wipe,
    }),
  )
  .meta({
    description: "ZFS pools.",
    rule: "need the ZFS flavour of the image",
    default: [],
    examples: [
      [{ name: "tank", vdevs: [{ type: "mirror", devices: diskList(["0008", "0009"]) }], mountPoint: "/srv/tank" }],
    ],
  });

export const install = z
  .strictObject({
    disk: device.meta(disk("The disk that the live system installs itself to.", "0001")),
    mirror: device.optional().meta(disk("A second disk that mirrors it.", "0002")),
    wipe,
  })
  .meta({
    description: "Installation to disk; used by the live system only.",
    examples: [{ disk: { type: "nvme", serial: "EXAMPLE0001" }, mirror: { type: "nvme", serial: "EXAMPLE0002" } }],
  });
