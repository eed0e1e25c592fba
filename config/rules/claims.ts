import { deviceKey, describeDevice, isUnstableDevice, parseSize } from "../device.ts";
import type { DeviceRef } from "../document.ts";
import { ruleSays } from "../messages/rules.ts";
import { formatPath, type Path } from "../path.ts";
import { entries, type RuleContext } from "./rule.ts";

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
      checkKind(context, claim);
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

/** What the inventory calls a disk of type nvme is one whose bus is nvme. */
function checkKind(context: RuleContext, { path, device }: Claim): void {
  if (typeof device === "string" || device.bus === undefined || device.type === undefined) return;
  if ((device.bus === "nvme") === (device.type === "nvme")) return;
  const at = context.later([...path, "bus"], [...path, "type"]);
  context.report(at, ruleSays.kindOnBus(device.type, device.bus));
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
