import { ruleSays } from "../messages/rules.ts";
import { formatPath, type Path } from "../path.ts";
import { kindName } from "../messages/kinds.ts";
import { decodeSays } from "../messages/decode.ts";
import { mountPointProblem } from "../schema/storage.ts";
import { entries, type RuleContext } from "./rule.ts";

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
  const all = [...mounts, ...zfsMounts(context)];
  for (const { path, mountPoint } of all.sort((a, b) => (context.later(a.path, b.path) === a.path ? 1 : -1))) {
    const first = seen.get(mountPoint);
    if (first === undefined) seen.set(mountPoint, path);
    else context.report(path, ruleSays.mountTwice(mountPoint, formatPath(first.slice(0, -1))));
  }
}

interface Mount {
  readonly path: Path;
  readonly mountPoint: string;
}

/** ZFS mounts by properties of its own: each is a mount point like any other, but for the two words that mean none. */
function zfsMounts(context: RuleContext): readonly Mount[] {
  return entries(context.draft.zfs).flatMap(([index, { filesystemOptions, datasets }]) => [
    ...propertyMounts(context, ["zfs", index, "filesystemOptions"], filesystemOptions, ["mountpoint"]),
    ...entries(datasets).flatMap(([at, dataset]) =>
      propertyMounts(context, ["zfs", index, "datasets", at], dataset, ["mountPoint", "mountpoint"]),
    ),
  ]);
}

function propertyMounts(context: RuleContext, path: Path, map: unknown, names: readonly string[]): readonly Mount[] {
  return names.flatMap((name) => {
    const value = (map as Readonly<Record<string, unknown>> | undefined)?.[name];
    if (value === undefined || value === null || value === "none" || value === "legacy") return [];
    const at = [...path, name];
    const found =
      typeof value === "string"
        ? mountPointProblem(value)
        : decodeSays.wrongType(kindName.text, kindName.some(typeof value));
    if (found !== undefined) context.report(at, found);
    return found === undefined && typeof value === "string" ? [{ path: at, mountPoint: value }] : [];
  });
}
