import { watch, type FSWatcher } from "node:fs";
import { dirname } from "node:path";
import type { WatchPaths } from "../kit/ports.ts";

/**
 * inotify on each folder from the root to the paths, for their names only: so a folder that is made, moved or made anew
 * is seen as well, and what was replaced by rename. A folder that can't be watched is left to who polls.
 */
export const watchPaths: WatchPaths = (paths, onChange) => {
  const names = namesByFolder(paths);
  const files = new Set(paths);
  let watchers: FSWatcher[] = [];
  let isClosed = false;
  const close = (): void => {
    for (const each of watchers) each.close();
    watchers = [];
  };
  const arm = (): void => {
    close();
    for (const [folder, wanted] of names) {
      try {
        const watcher = watch(folder, { persistent: false }, (_event, name) => {
          if (isClosed || (typeof name === "string" && !wanted.has(name))) return;
          // A folder on the way is another one now: its watch is of the old one.
          if (typeof name !== "string" || !files.has(join(folder, name))) arm();
          onChange();
        });
        watcher.on("error", () => undefined);
        watchers.push(watcher);
      } catch {
        // It is not there; the watch of its parent says when it comes.
      }
    }
  };
  arm();
  return {
    close() {
      isClosed = true;
      close();
    },
  };
};

const join = (folder: string, name: string): string => (folder === "/" ? `/${name}` : `${folder}/${name}`);

/** What of each folder leads to a path. From the root down: what is made while it is armed is seen from above. */
function namesByFolder(paths: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const names = new Map<string, Set<string>>();
  for (const path of paths) {
    for (let at = path; at !== "/" && at !== "."; at = dirname(at)) {
      const folder = dirname(at);
      const known = names.get(folder) ?? new Set();
      names.set(folder, known.add(at.slice(at.lastIndexOf("/") + 1)));
    }
  }
  return new Map([...names].toSorted(([a], [b]) => a.length - b.length));
}
