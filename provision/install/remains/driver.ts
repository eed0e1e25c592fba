/** What an installation that was cut short left behind, on disks and in this boot. */
import type { Inventory } from "../../../kit/disk.ts";
import type { Host } from "../../../kit/ports.ts";
import { findMounts } from "../../../disks/driver.ts";
import { ESP_FOLDER } from "../../../iso/esp.ts";
import { hasTornTable, readMark } from "../mark.ts";

const minuteMs = 60_000;
export const mountRoot = "/run/corium/install";

/** By path: installation ids on disks whose table was being written. */
export async function readMarks(host: Host, inventory: Inventory): Promise<ReadonlyMap<string, string>> {
  const marks = new Map<string, string>();
  for (const { path } of inventory.disks.filter(hasTornTable)) {
    const argv = ["dd", `if=${path}`, "bs=512", "count=1", "status=none"];
    const ran = await host.exec({ argv, timeoutMs: minuteMs });
    const mark = ran.exitCode === 0 ? readMark(ran.stdout) : undefined;
    if (mark !== undefined) marks.set(path, mark);
  }
  return marks;
}

/**
 * What an earlier try left mounted when its process died: such a disk would be taken for the one under the running
 * system, and the installation could not go on before a restart.
 */
export async function releaseMounts(host: Host): Promise<void> {
  for (const { point } of (await findMounts(host)).toReversed()) {
    if (point === ESP_FOLDER || point.startsWith(`${mountRoot}/`))
      await host.exec({ argv: ["umount", point], timeoutMs: 10 * minuteMs });
  }
}
