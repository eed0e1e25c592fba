import { ruleSays } from "../messages/rules.ts";
import { formatPath, type Path } from "../path.ts";
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
  for (const { path, mountPoint } of mounts.sort((a, b) => (context.later(a.path, b.path) === a.path ? 1 : -1))) {
    const first = seen.get(mountPoint);
    if (first === undefined) seen.set(mountPoint, path);
    else context.report(path, ruleSays.mountTwice(mountPoint, formatPath(first.slice(0, -1))));
  }
}
