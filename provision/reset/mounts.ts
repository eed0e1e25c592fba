/** What has to be unmounted before anything is deleted: `k0s reset` deletes through mounts (facts of k0s, section 2.5). */
import { K0S_DATA } from "../../k0s/paths.ts";

/** Where k0s, its kubelet and its containers mount, and where `k0s reset` deletes. */
export const K0S_FOLDERS = ["/run/k0s", K0S_DATA, "/var/lib/kubelet"] as const;

/** A mount unit that this node's document made. */
export interface MountUnit {
  readonly unit: string;
  readonly point: string;
}

/** Mount points of `/proc/self/mounts`, in the order in which they were made; proc_pid_mounts(5) escapes four characters. */
export const mountPoints = (mounts: string): readonly string[] =>
  mounts
    .split("\n")
    .filter((line) => line !== "")
    .map((line) =>
      (line.split(" ")[1] ?? "").replaceAll(/\\([0-7]{3})/g, (_, code: string) =>
        String.fromCharCode(Number.parseInt(code, 8)),
      ),
    );

const isWithin = (point: string, folder: string): boolean => point === folder || point.startsWith(`${folder}/`);

/** Those at or below k0s's folders and the document's mount points, the latest first: what was mounted over goes last. */
export function pointsToFree(mounts: string, units: readonly MountUnit[]): readonly string[] {
  const folders = [...K0S_FOLDERS, ...units.map(({ point }) => point)];
  return mountPoints(mounts)
    .filter((point) => folders.some((folder) => isWithin(point, folder)))
    .toReversed();
}

/** `Where=` of a unit of ours; undefined for any other. */
export function readMountUnit(unit: string, text: string): MountUnit | undefined {
  if (!unit.endsWith(".mount")) return undefined;
  const point = /^Where=(\/.*)$/m.exec(text)?.[1]?.trim();
  return point === undefined ? undefined : { unit, point };
}
