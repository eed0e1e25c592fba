import type { Role } from "../config/document.ts";
import type { DiskMountStep } from "../disks/model.ts";
import { isK0sMount } from "../disks/mount.ts";
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

const unitFolder = "/etc/systemd/system";

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
      content: renderUnit("Written by corium from the node's document.", [
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
    wantsLink: `${unitFolder}/local-fs.target.wants/${unit}`,
    isPointImmutable: !isNeeded,
  };
}

/** For a setting that takes a list: `/srv/my data` would be two paths there (systemd.syntax(7), quoting). */
const quoteWord = (text: string): string => (/[\s"']/.test(text) ? `"${text.replace(/["\\]/g, "\\$&")}"` : text);

/** `%` starts a specifier in every unit setting. */
const escapeSpecifiers = (text: string): string => text.replace(/%/g, "%%");
