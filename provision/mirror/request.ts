/** A request to replace a disk of the mirrored system → steps. Pure; a refusal plans nothing. */
import { describeDisk } from "../../disks/describe.ts";
import { resolveDevice } from "../../disks/select.ts";
import type { Mirror, MirrorDisk } from "../../iso/mirror/model.ts";
import { isWhole } from "../../iso/mirror/parse.ts";
import { SYSTEM_ARRAY } from "../../iso/mirror/report.ts";
import type { Disk, DiskIdentity } from "../../kit/disk.ts";
import type { Finding } from "../../kit/finding.ts";
import { hasErrors } from "../../kit/finding.ts";
import type { ReplacePlan, ReplaceRequest } from "../replace-plan.ts";
import type { Records } from "../storage-standing.ts";
import { asRequested, lintUsed } from "../replace-plan.ts";
import { guardOwn } from "../storage-standing.ts";
import { planSystemReplacement } from "./plan.ts";

export interface SystemReplaceInput extends Records {
  readonly request: ReplaceRequest;
  /** Of the request; part of the ids of its steps. */
  readonly id: number;
  /** It was begun before: the old disk was judged then. */
  readonly isResumed: boolean;
  readonly installation: string;
  readonly mirror: Mirror;
}

export function planSystemDisk(input: SystemReplaceInput): ReplacePlan {
  const { request, mirror, inventory, installation, id } = input;
  const named = inventory.disks.find((disk) => isNamed(disk, request.old));
  const survivors = mirror.disks.filter(({ isInSync, path }) => isInSync && path !== named?.path);
  const standing = input.isResumed ? undefined : lintOld(input, named, survivors);
  if (standing !== undefined) return { findings: [standing], steps: [] };
  const survivor = inventory.disks.find(({ path }) => path === survivors[0]?.path);
  if (survivor === undefined) return { findings: [lost], steps: [] };
  const found = resolveDevice(request.new.startsWith("/") ? request.new : { serial: request.new }, inventory);
  if (!found.ok) {
    const { code, message, details, hint = "cctl disks lists every disk" } = found.error;
    return { findings: [{ ...refusal(code, "new", message, hint), ...(details && { details }) }], steps: [] };
  }
  const replacement = found.value;
  const plan = planSystemReplacement({
    inventory,
    installation,
    survivor,
    replacement,
    isWipeAllowed: request.isWipeAllowed,
    path: "new",
    prefix: systemReplaceId(id),
  });
  const isNothingWiped = plan.steps.length > 0 && plan.steps[0]?.kind !== "disk:wipe";
  const judged = [...plan.findings, ...(isNothingWiped ? [] : guardOwn([replacement], input, "new"))];
  const findings = hasErrors(judged) ? judged : [...judged, ...lintUsed(replacement, input.owned, "new")];
  if (hasErrors(findings)) return { findings: findings.map(asRequested), steps: [] };
  const { identity, links } = replacement;
  const replaced = { array: SYSTEM_ARRAY, device: request.old, old: identityOf(request.old, named) };
  return { findings, steps: plan.steps, replaced: { ...replaced, new: identity, newLinks: links } };
}

/** What the ids of its steps begin with. */
export const systemReplaceId = (id: number): string => `mirror:replace:${id}`;

const isNamed = ({ path, links, identity }: Disk, wanted: string): boolean =>
  wanted.startsWith("/")
    ? path === wanted || links.includes(wanted)
    : identity.serial === wanted || identity.wwn === wanted;

/** Of a disk that is gone nothing is known but how it was named: its size is 0. */
function identityOf(wanted: string, disk: Disk | undefined): DiskIdentity {
  if (disk !== undefined) return disk.identity;
  return { sizeBytes: 0, ...(wanted.startsWith("/") ? { byPath: wanted } : { serial: wanted }) };
}

const refusal = (code: string, path: string, message: string, hint: string): Finding => ({
  severity: "error",
  code,
  path,
  message,
  hint,
});

const lost = refusal(
  "array-lost",
  "array",
  "no disk of the mirrored system has everything, so there is nothing to copy",
  "connect its disks and restart the node",
);

/** A working half is never taken out by a request: whoever pulls the wrong one would be left with none. */
function lintOld(
  { mirror, request }: SystemReplaceInput,
  named: Disk | undefined,
  survivors: readonly MirrorDisk[],
): Finding | undefined {
  const part = mirror.disks.find(({ path }) => path === named?.path);
  if (named !== undefined && part === undefined)
    return refusal(
      "not-a-member",
      "old",
      `disk ${describeDisk(named)} is not part of the mirrored system`,
      `its disks: ${mirror.disks.map(({ path }) => path).join(", ")}; name the one that is gone by its serial`,
    );
  if (part?.isInSync === true && survivors.length === 0)
    return refusal(
      "last-copy",
      "old",
      `disk ${named === undefined ? request.old : describeDisk(named)} alone has the whole system`,
      "name the disk that failed or is gone; this one is what the new disk is copied from",
    );
  if (isWhole(mirror))
    return refusal(
      "still-working",
      "old",
      "the system is whole on both of its disks",
      "take the one that shall go out first; the node runs on with the other, then ask again",
    );
  return undefined;
}
