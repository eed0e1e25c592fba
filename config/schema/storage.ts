import * as z from "zod";
import { DEFAULTS } from "../default-values.ts";
import { arrayName, devicePathProblem, isNormalPath, parseSize, type DevicePathProblem } from "../device.ts";
import type { Problem } from "../messages/codes.ts";
import { valueSays } from "../messages/values.ts";
import { isStorageName } from "../names.ts";
import { anyText, freeMap, secretSource, text } from "./fields.ts";

const DEVICE_SAYS: Readonly<Record<DevicePathProblem, (path: string) => Problem>> = {
  "not-dev": valueSays.deviceNotDev,
  "not-normal": valueSays.deviceNotNormal,
  partition: valueSays.devicePartition,
  array: valueSays.deviceArray,
};

const size = text((value) => (parseSize(value) === undefined ? valueSays.size(value) : undefined));

export const selector = z
  .strictObject({
    serial: anyText.optional().meta({ description: "Serial number." }),
    wwn: anyText.optional().meta({ description: "World wide name, e.g. `0x5000c500a0b1c2d3`." }),
    model: anyText.optional().meta({ description: "Model; a glob." }),
    type: z.enum(["nvme", "ssd", "hdd"]).optional().meta({ description: "Kind of disk." }),
    bus: z
      .enum(["nvme", "sata", "sas", "usb", "virtio", "mmc"])
      .optional()
      .meta({ description: "How it is attached." }),
    minSize: size.optional().meta({ description: "At least this big: `500GB`, `1.8TiB`." }),
    maxSize: size.optional().meta({ description: "At most this big." }),
  })
  .superRefine((value, context) => {
    if (Object.values(value).some((field) => field !== undefined)) return;
    const found = valueSays.emptySelector();
    context.addIssue({ code: "custom", message: found.message, params: { problem: found } });
  });

const diskPath = text((value) => {
  const found = devicePathProblem(value);
  return found === undefined ? undefined : DEVICE_SAYS[found](value);
});

const diskOrArrayPath = text((value) => {
  const found = devicePathProblem(value);
  return found === undefined || arrayName(value) !== undefined ? undefined : DEVICE_SAYS[found](value);
});

const DEVICE_TEXT = "A path of a whole disk under /dev, or a selector that matches exactly one disk.";
export const device = z.union([diskPath, selector]).meta({ description: DEVICE_TEXT });
const deviceOrArray = z.union([diskOrArrayPath, selector]);

const name = text((value) => (isStorageName(value) ? undefined : valueSays.storageName(value))).meta({
  description: "A name of your own; unique of its kind.",
});

const filesystem = z
  .enum(["ext4", "xfs", "none"])
  .optional()
  .meta({ description: "What it is formatted with.", default: DEFAULTS.filesystem });

const KEPT = /^\/var\/(?:lib\/corium\/(?:api|ssh|tmp|state)|run|lock)(?:\/|$)|^\/var\/(?:lib|log|lib\/corium)$/;

/** NAME_MAX, for each folder and for `ESCAPED.mount`, where systemd writes most bytes as `\xNN`. */
function fitsUnitName(path: string): boolean {
  const escaped = Buffer.from(path.slice(1))
    .toString("latin1")
    .replace(/[^A-Za-z0-9:_./]/g, "\\xNN");
  return escaped.length + ".mount".length <= 255 && path.split("/").every((part) => Buffer.byteLength(part) <= 255);
}

const mountPoint = text((value) => {
  if (!isNormalPath(value) && value !== "/") return valueSays.mountPath(value);
  if (!/^\/(?:var|srv|mnt|opt)\/./.test(value)) return valueSays.mountPlace(value);
  if (!fitsUnitName(value)) return valueSays.mountLength();
  return KEPT.test(value) ? valueSays.mountKept(value) : undefined;
})
  .optional()
  .meta({ description: "Where it is mounted: below /var, /srv, /mnt or /opt." });

const wipe = z.boolean().optional().meta({
  description: "Whether disks that hold data may be overwritten, at first boot only.",
  default: false,
});

export const disks = z
  .array(z.strictObject({ name, device, filesystem, mountPoint, wipe }))
  .meta({ description: "Plain data disks, one filesystem each.", default: [] });

export const raid = z
  .array(
    z.strictObject({
      name,
      level: z.literal([0, 1, 5, 6, 10]).meta({ description: "RAID level." }),
      devices: z.array(device).meta({ description: "Members: at least 2, 2, 3, 4, 4 for levels 0, 1, 5, 6, 10." }),
      spares: z.array(device).optional().meta({ description: "Spare disks; not on level 0.", default: [] }),
      filesystem,
      mountPoint,
      wipe,
    }),
  )
  .meta({ description: "Software RAID arrays (md).", default: [] });

export const luks = z
  .array(
    z.strictObject({
      name,
      device: deviceOrArray.meta({ description: "A disk, or `/dev/md/NAME` of an array with filesystem none." }),
      unlock: z
        .enum(["tpm2", "passphrase"])
        .optional()
        .meta({ description: "How it is unlocked at boot.", default: DEFAULTS.unlock }),
      passphrase: anyText.optional().meta({ description: "A secret. Exactly one of passphrase and passphraseFrom." }),
      passphraseFrom: secretSource.optional().meta({ description: "Where the passphrase is fetched from." }),
      filesystem,
      mountPoint,
      wipe,
    }),
  )
  .meta({ description: "Encrypted volumes.", default: [] });

const poolName = text((value) => {
  if (/^(?:mirror|raidz|draid|spare|log)/.test(value)) return valueSays.poolName(value);
  return isStorageName(value) ? undefined : valueSays.storageName(value);
}).meta({ description: "Name of the pool; unique." });

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
              .meta({ description: "Layout of the vdev.", default: DEFAULTS.vdevType }),
            devices: z.array(device).meta({ description: "Its disks: at least 1, 2, 2, 3, 4." }),
          }),
        )
        .meta({ description: "What the pool is made of." }),
      mountPoint,
      options: freeMap.optional().meta({ description: "Pool properties.", default: {} }),
      filesystemOptions: freeMap.optional().meta({ description: "Properties of the root filesystem.", default: {} }),
      datasets: z.array(freeMap).optional().meta({ description: "Further datasets.", default: [] }),
      wipe,
    }),
  )
  .meta({ description: "ZFS pools; need the ZFS flavour of the image.", default: [] });

export const install = z
  .strictObject({
    disk: device.meta({ description: "The disk that the live system installs itself to." }),
    mirror: device.optional().meta({ description: "A second disk that mirrors it." }),
    wipe,
  })
  .meta({ description: "Installation to disk; used by the live system only." });
