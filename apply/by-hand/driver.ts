/** What somebody changed by hand and an operation replaces: said beforehand, and kept for whoever misses it. */
import type { AppError } from "../../kit/app-error.ts";
import type { Host } from "../../kit/ports.ts";
import { ok, type Result } from "../../kit/result.ts";
import { sha256Of } from "../../kit/sha256.ts";

export interface HandEdit {
  readonly path: string;
  /** Where it is kept before it is replaced. */
  readonly copy: string;
}

/** Named by their content: the same edit is kept once, however often it is replaced. */
const KEPT = 20;

const folderOf = (stateDir: string): string => `${stateDir}/by-hand`;

function copyOf(stateDir: string, path: string, digest: string): string {
  return `${folderOf(stateDir)}/${path.slice(1).replaceAll("/", "-")}.${digest.slice(0, 12)}`;
}

export interface Replacement {
  readonly path: string;
  /** Digest of what was there when it was recorded; undefined: nothing was. */
  readonly recorded: string | undefined;
  /** Undefined: it is removed. */
  readonly content: string | undefined;
}

/** Those whose file is neither absent, nor what was recorded, nor what will be there. Changes nothing. */
export async function findHandEdits(
  host: Host,
  stateDir: string,
  replaced: readonly Replacement[],
): Promise<readonly HandEdit[]> {
  const edits: HandEdit[] = [];
  for (const { path, recorded, content } of replaced) {
    const found = await host.files.read(path);
    if (!found.ok) continue;
    const digest = sha256Of(found.value);
    if (digest === recorded || (content !== undefined && digest === sha256Of(content))) continue;
    edits.push({ path, copy: copyOf(stateDir, path, digest) });
  }
  return edits;
}

/** Durable before anything is replaced. They may hold secrets, so that only root reads them. */
export async function keepHandEdits(
  host: Host,
  stateDir: string,
  edits: readonly Pick<HandEdit, "path">[],
): Promise<Result<void, AppError>> {
  const copies = new Set<string>();
  for (const { path } of edits) {
    const found = await host.files.read(path);
    if (!found.ok && found.error.code === "ENOENT") continue;
    if (!found.ok) return found;
    const copy = copyOf(stateDir, path, sha256Of(found.value));
    const kept = await host.files.write(copy, found.value, { mode: 0o600 });
    if (!kept.ok) return kept;
    copies.add(copy);
  }
  return edits.length === 0 ? ok(undefined) : dropOldest(host, folderOf(stateDir), copies);
}

/** By the clock, which may have gone back: those that were made just now stay in any case. */
async function dropOldest(host: Host, folder: string, made: ReadonlySet<string>): Promise<Result<void, AppError>> {
  const names = await host.files.list(folder);
  if (!names.ok) return names;
  const aged: { readonly path: string; readonly atMs: number }[] = [];
  for (const name of names.value) {
    const path = `${folder}/${name}`;
    const stat = await host.files.stat(path);
    if (stat.ok && stat.value !== null) aged.push({ path, atMs: stat.value.mtimeMs });
  }
  const isNew = ({ path }: { readonly path: string }): number => (made.has(path) ? 1 : 0);
  for (const { path } of aged.toSorted((a, b) => isNew(b) - isNew(a) || b.atMs - a.atMs).slice(KEPT)) {
    const removed = await host.files.remove(path);
    if (!removed.ok) return removed;
  }
  return ok(undefined);
}

export const describeHandEdits = (edits: readonly HandEdit[]): readonly string[] =>
  edits.map(
    ({ path, copy }) =>
      `${path} was changed by hand since it was applied: that is replaced, and kept on the node as ${copy}`,
  );
