import semver from "semver";
import { type AppError, appError } from "../kit/app-error.ts";

/**
 * Writes go to nodes at most one minor away, of the same major. Refused only on a positive finding: development
 * builds (a prerelease part) and versions that can't be read are let through.
 */
export function skewOf(own: string, node: string | undefined): AppError | undefined {
  const mine = semver.parse(own);
  const theirs = semver.parse(node ?? "");
  if (mine === null || theirs === null) return undefined;
  if (mine.prerelease.length > 0 || theirs.prerelease.length > 0) return undefined;
  if (mine.major === theirs.major && Math.abs(mine.minor - theirs.minor) <= 1) return undefined;
  return appError("skew", `this cctl is ${own}, the node runs ${theirs.version}: too far apart to change it`, {
    hint: `use a cctl of ${theirs.major}.${theirs.minor}; reading works with this one`,
  });
}
