import { arrayName, deviceKey, describeDevice, isUnstableDevice, parseSize } from "../device.ts";
import type { DeviceRef } from "../document.ts";
import { ruleSays } from "../messages/rules.ts";
import { formatPath, type Path } from "../path.ts";
import { checkExclusive, checkSource, entries, uniqueNames, type RuleContext } from "./rule.ts";

const LEAST_MEMBERS = { 0: 2, 1: 2, 5: 3, 6: 4, 10: 4 } as const;
const LEAST_VDEV = { stripe: 1, mirror: 2, raidz: 2, raidz2: 3, raidz3: 4 } as const;

export function checkStorageNames(context: RuleContext): void {
  const { disks, raid, luks, zfs } = context.draft;
  uniqueNames(context, ["disks"], disks, "disks");
  uniqueNames(context, ["raid"], raid, "arrays");
  uniqueNames(context, ["luks"], luks, "volumes");
  uniqueNames(context, ["zfs"], zfs, "pools");
}

export function checkRaid(context: RuleContext): void {
  for (const [index, { level, devices, spares }] of entries(context.draft.raid)) {
    const path: Path = ["raid", index];
    if (level === undefined) continue;
    const least = LEAST_MEMBERS[level];
    if (devices !== undefined && devices.length < least) {
      context.report([...path, "devices"], ruleSays.tooFewDevices(`RAID ${level}`, least, devices.length));
    }
    if (level === 0 && (spares?.length ?? 0) > 0) context.report([...path, "spares"], ruleSays.sparesOnStripe());
  }
  for (const [index, { vdevs }] of entries(context.draft.zfs)) {
    const path: Path = ["zfs", index, "vdevs"];
    if (vdevs?.length === 0) context.report(path, ruleSays.tooFewDevices("a pool", 1, 0));
    for (const [at, { type, devices }] of entries(vdevs)) {
      if (devices === undefined || !context.isSound([...path, at, "type"])) continue;
      const least = LEAST_VDEV[type ?? "stripe"];
      if (devices.length >= least) continue;
      context.report([...path, at, "devices"], ruleSays.tooFewDevices(`a ${type ?? "stripe"}`, least, devices.length));
    }
  }
}

export function checkLuks(context: RuleContext): void {
  const { luks, raid } = context.draft;
  for (const [index, volume] of entries(luks)) {
    const path: Path = ["luks", index];
    checkSource(context, [...path, "passphraseFrom"], volume.passphraseFrom);
    checkPassphrase(context, path, volume.unlock);
    const name = typeof volume.device === "string" ? arrayName(volume.device) : undefined;
    if (name === undefined) continue;
    const array = raid?.find((entry) => entry?.name === name);
    const isKnown = context.isSound(["raid"]) || (raid ?? []).every((entry) => entry?.name !== undefined);
    if (array === undefined && isKnown) context.report([...path, "device"], ruleSays.luksUndeclared(name));
    const at = raid?.indexOf(array) ?? -1;
    if (array !== undefined && array.filesystem !== "none" && context.isSound(["raid", at, "filesystem"])) {
      context.report([...path, "device"], ruleSays.luksFilesystem(name));
    }
  }
}

function checkPassphrase(context: RuleContext, path: Path, unlock: string | undefined): void {
  const fields = ["passphrase", "passphraseFrom"].filter((field) => context.given([...path, field]));
  if (!checkExclusive(context, path, "passphrase", "passphraseFrom")) return;
  if (!context.isSound([...path, "unlock"])) return;
  if (unlock !== "passphrase") {
    for (const field of fields) context.report([...path, field], ruleSays.passphraseWithTpm());
  } else if (fields.length === 0) {
    context.report([...path, "passphrase"], ruleSays.secretMissing("passphrase", "passphraseFrom"));
  }
}

interface Claim {
  readonly path: Path;
  readonly device: DeviceRef;
}

/** One disk, one purpose: by path and by selector here, by disk on the node. */
export function checkClaims(context: RuleContext): void {
  const seen = new Map<string, Claim>();
  const claims = collectClaims(context);
  for (const claim of [...claims].sort((a, b) => (context.later(a.path, b.path) === a.path ? 1 : -1))) {
    if (typeof claim.device === "string") {
      if (isUnstableDevice(claim.device)) context.report(claim.path, ruleSays.unstableDevice(claim.device));
    } else {
      checkSizes(context, claim);
    }
    const key = deviceKey(claim.device);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, claim);
    else context.report(claim.path, ruleSays.claimedTwice(describeDevice(claim.device), formatPath(first.path)));
  }
}

function checkSizes(context: RuleContext, { path, device }: Claim): void {
  if (typeof device === "string" || device.minSize === undefined || device.maxSize === undefined) return;
  const [min, max] = [parseSize(device.minSize), parseSize(device.maxSize)];
  if (min === undefined || max === undefined || min <= max) return;
  const at = context.later([...path, "minSize"], [...path, "maxSize"]);
  context.report(at, ruleSays.sizesCross(device.minSize, device.maxSize));
}

function collectClaims(context: RuleContext): readonly Claim[] {
  const { install, disks, raid, luks, zfs } = context.draft;
  const list = (path: Path, devices: readonly unknown[] | undefined): readonly Claim[] =>
    entries(devices).map(([index, device]) => ({ path: [...path, index], device: device as DeviceRef }));
  const one = (path: Path, device: unknown): readonly Claim[] =>
    device === undefined ? [] : [{ path, device: device as DeviceRef }];
  const all = [
    ...one(["install", "disk"], install?.disk),
    ...one(["install", "mirror"], install?.mirror),
    ...entries(disks).flatMap(([index, disk]) => one(["disks", index, "device"], disk.device)),
    ...entries(raid).flatMap(([index, array]) => [
      ...list(["raid", index, "devices"], array.devices),
      ...list(["raid", index, "spares"], array.spares),
    ]),
    ...entries(luks).flatMap(([index, volume]) => one(["luks", index, "device"], volume.device)),
    ...entries(zfs).flatMap(([index, pool]) =>
      entries(pool.vdevs).flatMap(([at, vdev]) => list(["zfs", index, "vdevs", at, "devices"], vdev.devices)),
    ),
  ];
  return all.filter(({ path }) => context.isSound(path));
}

/** Mount points are unique over all kinds, and there must be something to mount. */
export function checkMounts(context: RuleContext): void {
  const { disks, raid, luks, zfs } = context.draft;
  const kinds = { disks, raid, luks, zfs };
  const mounts = Object.entries(kinds).flatMap(([kind, list]) =>
    entries<{ readonly mountPoint?: string | undefined; readonly filesystem?: string | undefined }>(list).flatMap(
      ([index, entry]) => {
        const path: Path = [kind, index, "mountPoint"];
        if (entry.filesystem === "none" && context.given(path)) context.report(path, ruleSays.mountWithoutFilesystem());
        return entry.mountPoint === undefined ? [] : [{ path, mountPoint: entry.mountPoint }];
      },
    ),
  );
  const seen = new Map<string, Path>();
  for (const { path, mountPoint } of mounts.sort((a, b) => (context.later(a.path, b.path) === a.path ? 1 : -1))) {
    const first = seen.get(mountPoint);
    if (first === undefined) seen.set(mountPoint, path);
    else context.report(path, ruleSays.mountTwice(mountPoint, formatPath(first.slice(0, -1))));
  }
}
