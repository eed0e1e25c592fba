import type { Role } from "../config/document.ts";
import type { DiskMountStep, DiskUnmountStep } from "../disks/model.ts";
import { byDepth, isK0sMount } from "../disks/mount.ts";
import type { Disk, Inventory } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";
import type { RenderedFile } from "../kit/rendered.ts";
import { escapePath } from "../systemd/escape.ts";
import type { UnitEntry } from "../systemd/render.ts";
import { renderUnit } from "../systemd/render.ts";

export interface MountOrder {
  readonly id: string;
  readonly name: string;
  readonly point: string;
  readonly uuid: string;
  readonly filesystem: "ext4" | "xfs";
  readonly role: Role | undefined;
  /** The unit that opens the encrypted volume below. */
  readonly volumeUnit?: string;
}

export const unitFolder = "/etc/systemd/system";
const WRITTEN = "Written by corium from the node's document.";
/** Whose start waits for mounts. */
const services = ["k0scontroller.service", "k0sworker.service", "corium-pods.service"] as const;

/** The unit by UUID, `nofail`: the node boots and answers without its data disk; only k0s waits, where it must. */
export function mountStep(order: MountOrder): DiskMountStep {
  const { name, point, uuid, filesystem } = order;
  const unit = `${escapePath(point)}.mount`;
  const device = `/dev/disk/by-uuid/${uuid}`;
  const fsck = `systemd-fsck@${escapePath(device)}.service`;
  // Native mount units get no check of the filesystem by themselves, as fstab's would. XFS has none to run.
  const below: UnitEntry[] =
    filesystem === "ext4"
      ? [
          ["Requires", fsck],
          ["After", fsck],
        ]
      : [];
  // Locked, it is not waited for; and the volume is closed after it is unmounted.
  if (order.volumeUnit !== undefined) below.push(["Requires", order.volumeUnit], ["After", order.volumeUnit]);
  const files: RenderedFile[] = [
    {
      path: `${unitFolder}/${unit}`,
      mode: 0o644,
      content: renderUnit(WRITTEN, [
        ["Unit", [["Description", `Storage ${name}`], ...below]],
        [
          "Mount",
          [
            ["What", device],
            ["Where", escapeSpecifiers(point)],
            ["Type", filesystem],
            ["Options", "nofail"],
          ],
        ],
        ["Install", [["WantedBy", "local-fs.target"]]],
      ]),
    },
  ];
  const isNeeded = isK0sMount(point);
  if (isNeeded) {
    const service = order.role === "worker" ? "k0sworker.service" : "k0scontroller.service";
    files.push({
      path: `${unitFolder}/${service}.d/50-corium-${escapePath(point)}.conf`,
      mode: 0o644,
      content: renderUnit("Written by corium: k0s must not write beneath this mount.", [
        ["Unit", [["RequiresMountsFor", quoteWord(escapeSpecifiers(point))]]],
      ]),
    });
  }
  if (order.volumeUnit !== undefined) {
    files.push({
      path: `${unitFolder}/corium-pods.service.d/50-corium-${escapePath(point)}.conf`,
      mode: 0o644,
      content: renderUnit("Written by corium: at power-off pods end before this is unmounted and closed.", [
        ["Unit", [["After", unit]]],
      ]),
    });
  }
  return {
    kind: "disk:mount",
    id: order.id,
    title: `mount ${name} at ${point}`,
    point,
    uuid,
    filesystem,
    unit,
    files,
    wantsLink: wantsLink(unit),
    isPointImmutable: !isNeeded,
  };
}

const wantsLink = (unit: string): string => `${unitFolder}/local-fs.target.wants/${unit}`;

/** A mount unit that a document of this node made. */
export interface WrittenMount {
  readonly unit: string;
  readonly point: string;
  /** Of the filesystem. */
  readonly uuid: string;
}

/** Undefined for a unit that is none of ours. */
export function readWrittenMount(unit: string, text: string): WrittenMount | undefined {
  const point = /^Where=(\/.*)$/m.exec(text)?.[1]?.replace(/%%/g, "%");
  const uuid = /^What=\/dev\/disk\/by-uuid\/(.+)$/m.exec(text)?.[1];
  if (!text.startsWith(`# ${WRITTEN}\n`) || point === undefined || uuid === undefined) return undefined;
  return { unit, point, uuid };
}

/** Written for a document that was corrected since: nothing of this one's, or another filesystem at its place. */
export const staleMounts = (
  written: readonly WrittenMount[],
  mounts: readonly Pick<DiskMountStep, "unit" | "uuid">[],
): readonly WrittenMount[] =>
  written.filter(({ unit, uuid }) => !mounts.some((each) => each.unit === unit && each.uuid === uuid));

/** The innermost first. */
export const unmountSteps = (stale: readonly WrittenMount[]): readonly DiskUnmountStep[] =>
  stale
    .toSorted((a, b) => byDepth(b.point, a.point))
    .map(({ unit, point }) => ({
      kind: "disk:unmount",
      id: `unmount:${unit.replace(/\.mount$/, "")}`,
      title: `unmount ${point}, which an earlier document had`,
      point,
      unit,
      files: [
        wantsLink(unit),
        ...services.map((service) => `${unitFolder}/${service}.d/50-corium-${escapePath(point)}.conf`),
      ],
      unitPath: `${unitFolder}/${unit}`,
    }));

/** k0s has data there by now, and would found another cluster on what is mounted, or lies beneath, instead. */
export const lintStale = (stale: readonly WrittenMount[], hasK0sRecord: boolean): readonly Finding[] =>
  stale
    .filter(({ point }) => hasK0sRecord && isK0sMount(point))
    .map(({ point }) => ({
      severity: "error",
      code: "k0s-mount",
      path: "",
      message: `k0s was started with a filesystem at ${point} that the document does not mount there any more`,
      hint: "give the document that mount back; or reset this node",
    }));

/** The machine as it is once these are unmounted: what only they kept busy is free. */
export function withoutMounts(inventory: Inventory, stale: readonly WrittenMount[]): Inventory {
  const points = new Set(stale.map(({ point }) => point));
  if (points.size === 0) return inventory;
  const free = (disk: Disk): Disk => {
    const users = disk.users.filter(({ kind, name }) => kind !== "mount" || !points.has(name));
    if (users.length === disk.users.length) return disk;
    const isHolder = (kind: string): boolean => kind === "md" || kind === "dm";
    if (users.some(({ kind, isBusy }) => isBusy && !isHolder(kind))) return { ...disk, users };
    return { ...disk, users: users.map((user) => (isHolder(user.kind) ? { ...user, isBusy: false } : user)) };
  };
  return { ...inventory, disks: inventory.disks.map(free) };
}

/** For a setting that takes a list: `/srv/my data` would be two paths there (systemd.syntax(7), quoting). */
const quoteWord = (text: string): string => (/[\s"']/.test(text) ? `"${text.replace(/["\\]/g, "\\$&")}"` : text);

/** `%` starts a specifier in every unit setting. */
const escapeSpecifiers = (text: string): string => text.replace(/%/g, "%%");
