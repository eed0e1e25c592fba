import { readlinkSync, watch, type FSWatcher } from "node:fs";
import { dirname } from "node:path";
import type { WatchPaths } from "../kit/ports.ts";

/**
 * inotify on each folder from the root to the paths, for their names only: so a folder that is made, moved or made anew
 * is seen as well, and what was replaced by rename. Symbolic links are followed: an agent that brings secrets often swaps
 * one far from the path. A folder that can't be watched is left to who polls.
 */
export const watchPaths: WatchPaths = (paths, onChange) => {
  const files = new Set(paths);
  let watchers: FSWatcher[] = [];
  let isClosed = false;
  const close = (): void => {
    for (const each of watchers) each.close();
    watchers = [];
  };
  const arm = (): void => {
    close();
    for (const [folder, wanted] of namesByFolder(paths)) {
      try {
        const watcher = watch(folder, { persistent: false }, (event, name) => {
          if (isClosed || (typeof name === "string" && !wanted.has(name))) return;
          // What is on the way, or in the file's place, is another one now: it may be a link that leads elsewhere.
          if (event === "rename" || typeof name !== "string" || !files.has(join(folder, name))) arm();
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
  for (const at of paths.flatMap(passed)) {
    const folder = dirname(at);
    const known = names.get(folder) ?? new Set();
    names.set(folder, known.add(at.slice(at.lastIndexOf("/") + 1)));
  }
  return new Map([...names].toSorted(([a], [b]) => a.length - b.length));
}

/** As path_resolution(7). */
const MOST_LINKS = 40;

/** Every folder, link and file that is passed on the way to a path, and it. */
function passed(path: string): readonly string[] {
  const found: string[] = [];
  const rest = path.split("/");
  let at = "/";
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      at = dirname(at);
      continue;
    }
    const next = join(at, name);
    found.push(next);
    const target = linkTarget(next);
    if (target === undefined) at = next;
    else if (++links > MOST_LINKS) return found;
    else {
      if (target.startsWith("/")) at = "/";
      rest.unshift(...target.split("/"));
    }
  }
  return found;
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
