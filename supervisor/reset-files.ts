/** The files that a reset is known by outside the database: its intent, and the mark of the point of no return. */
import type { AppError } from "../kit/app-error.ts";
import type { Paths } from "../kit/paths.ts";
import type { Host } from "../kit/ports.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import { parseIntent, renderIntent } from "../provision/reset/intent.ts";
import type { ResetIntent } from "../provision/reset/model.ts";

export const RESET_UNIT = "corium-reset.service";

type Files = Pick<Host, "files">;
type Places = Pick<Paths, "resetIntent" | "resetErasing">;

/** `undefined`: none was asked for. */
export async function readResetIntent(
  { files }: Files,
  paths: Places,
): Promise<Result<ResetIntent | undefined, AppError>> {
  const text = await files.readText(paths.resetIntent, { maxBytes: 65_536 });
  if (!text.ok) return text.error.code === "ENOENT" ? ok(undefined) : text;
  return parseIntent(text.value, paths.resetIntent);
}

export const writeResetIntent = (
  { files }: Files,
  paths: Places,
  intent: ResetIntent,
): Promise<Result<void, AppError>> => files.write(paths.resetIntent, renderIntent(intent), { mode: 0o600 });

/** k0s is not started any more from here on, at no boot. */
export const markErasing = ({ files }: Files, paths: Places): Promise<Result<void, AppError>> =>
  files.write(paths.resetErasing, "", { mode: 0o600 });

export async function isErasing({ files }: Files, paths: Places): Promise<Result<boolean, AppError>> {
  const found = await files.stat(paths.resetErasing);
  return found.ok ? ok(found.value !== null) : found;
}

/** A reset is under way, or failed in the middle: until it is over nobody may claim the node. */
export async function isResetting({ files }: Files, paths: Places): Promise<boolean> {
  for (const path of [paths.resetIntent, paths.resetErasing]) {
    const found = await files.stat(path);
    if (!found.ok || found.value !== null) return true;
  }
  return false;
}

/** The intent last: as long as it is there the next boot goes on, and finds that nothing is left to do. */
export async function removeResetFiles({ files }: Files, paths: Places): Promise<Result<void, AppError>> {
  const removed = await files.remove(paths.resetErasing);
  return removed.ok ? files.remove(paths.resetIntent) : removed;
}
