/** What a program that was killed in the middle of a write left behind: up to a whole file, with its secrets. */
import type { Paths } from "../kit/paths.ts";
import { KEPT_ETC } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import { temporaryWriter } from "../kit/temporary.ts";

/** Deeper than anything that we keep. */
const MAX_DEPTH = 8;
/** Of the state; nothing may be mounted at or below them. */
const OWN_FOLDERS = ["api", "etc", "luks", "ssh", "state", "tmp", "undo"];
/** No write takes this long. */
const OLD_MS = 600_000;

export interface SweepInput {
  readonly host: Host;
  readonly paths: Pick<Paths, "stateDir" | "runDir">;
  /** The folders that we write below /etc; elsewhere than on a node they are somebody else's. */
  readonly isNode: boolean;
}

/** At the daemon's start. Only our own pattern, in our own folders, of writers that are gone. Returns what was removed. */
export async function removeTemporaries({ host, paths, isNode }: SweepInput): Promise<readonly string[]> {
  const folders = isNode ? KEPT_ETC.filter((path) => path.endsWith("/")).map((path) => path.slice(0, -1)) : [];
  const removed: string[] = [];
  const ours = OWN_FOLDERS.map((name) => `${paths.stateDir}/${name}`);
  for (const folder of [...ours, ...folders]) await sweep(host, folder, MAX_DEPTH, removed);
  // Data disks may be mounted below these: not looked at, however many files they hold.
  for (const folder of [paths.stateDir, paths.runDir, ...(isNode ? ["/etc"] : [])])
    await sweep(host, folder, 0, removed);
  return removed;
}

async function sweep(host: Host, folder: string, depth: number, removed: string[]): Promise<void> {
  const names = await host.files.list(folder);
  for (const name of names.ok ? names.value : []) {
    const path = `${folder}/${name}`;
    const writer = temporaryWriter(name);
    if (writer === undefined && depth === 0) continue;
    const stat = await host.files.stat(path, { noFollow: true });
    if (!stat.ok || stat.value === null) continue;
    const { kind, mtimeMs } = stat.value;
    if (kind === "directory" && depth > 0) await sweep(host, path, depth - 1, removed);
    if (writer === undefined || (kind !== "file" && kind !== "symlink")) continue;
    // A number may have been given to another process since.
    const isOld = mtimeMs < host.clock.nowMs() - OLD_MS;
    if (!isOld && (await isRunning(host, writer))) continue;
    if ((await host.files.remove(path)).ok) removed.push(path);
  }
}

async function isRunning(host: Host, pid: number): Promise<boolean> {
  const stat = await host.files.stat(`/proc/${pid}`);
  return !stat.ok || stat.value !== null;
}
