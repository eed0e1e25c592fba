import type { Finding } from "../kit/finding.ts";
import type { Disk, DiskUser, Inventory, MdArray } from "../kit/disk.ts";
import { describeContent, describeDisk, describeUser, holdsData } from "./describe.ts";

/** A disk that the document wants for something. */
export interface DiskClaim {
  readonly disk: Disk;
  /** The field that names it: `raid[0].devices[1]`. */
  readonly field: string;
  readonly wipe: boolean;
  /** What is on it is adopted, or was begun by us: neither consent nor a wipe is asked for. */
  readonly isOurs: boolean;
}

const error = (code: string, path: string, message: string, hint: string): Finding => ({
  severity: "error",
  code,
  path,
  message,
  hint,
});

/** Everything that forbids touching these disks; empty: each may be made blank. */
export function lintClaims(claims: readonly DiskClaim[], inventory: Inventory): Finding[] {
  return [...lintTwice(claims), ...claims.flatMap((claim) => lintClaim(claim, claims, inventory))];
}

function lintTwice(claims: readonly DiskClaim[]): Finding[] {
  return claims.flatMap((claim, at) => {
    const earlier = claims.slice(0, at).find((other) => other.disk === claim.disk);
    if (earlier === undefined) return [];
    const message = `disk ${describeDisk(claim.disk)} is claimed already by ${earlier.field}`;
    return [error("claimed-twice", claim.field, message, "name another disk")];
  });
}

function lintClaim(claim: DiskClaim, claims: readonly DiskClaim[], inventory: Inventory): Finding[] {
  const { disk, field } = claim;
  const findings: Finding[] = [];
  const blind = inventory.unknown.filter((line) => isAbout(line, disk));
  if (blind.length > 0) {
    const message = `disk ${describeDisk(disk)} can't be judged: ${blind.join("; ")}`;
    findings.push(error("unreadable", field, message, "nothing is done on a guess: check the disk and its cabling"));
  }
  if (claim.isOurs) return findings;
  for (const user of disk.users.filter((each) => each.isBusy)) {
    const message = `disk ${describeDisk(disk)} is in use by ${describeUser(user, inventory)}`;
    findings.push(error("in-use", field, message, "a disk in use is never touched, whatever wipe says: free it first"));
  }
  if (holdsData(disk) && !claim.wipe) {
    const message = `disk ${describeDisk(disk)} holds data: ${describeContent(disk)}${nameArrays(disk, inventory)}`;
    findings.push(error("holds-data", field, message, "wipe: true destroys it; or name another disk"));
  }
  for (const user of disk.users.filter((each) => !each.isBusy)) {
    findings.push(...lintHolder(user, claim, claims, inventory));
  }
  return findings;
}

/** An idle array or mapping is taken down first, if every disk below it may be lost. */
function lintHolder(user: DiskUser, claim: DiskClaim, claims: readonly DiskClaim[], inventory: Inventory): Finding[] {
  const { disk, field } = claim;
  const held = `disk ${describeDisk(disk)} is held by ${describeUser(user, inventory)}`;
  if (user.kind !== "md" && user.kind !== "dm")
    return [error("held", field, `${held}, which is not taken down from here`, "take it down by hand")];
  const others = inventory.disks.filter(
    (other) =>
      other !== disk &&
      other.users.some((each) => each.kind === user.kind && each.name === user.name) &&
      !claims.some((each) => each.disk === other && each.wipe && !each.isOurs),
  );
  if (others.length > 0) {
    const message = `${held}, together with ${others.map(describeDisk).join(", ")}`;
    return [error("held", field, message, "it is taken down only when every member has wipe: true")];
  }
  if (claim.wipe) return [];
  return [error("held", field, held, "wipe: true takes it down and destroys what is on it")];
}

/** Nobody may have assembled it, but its other members are what the loss of this one breaks. */
function nameArrays(disk: Disk, inventory: Inventory): string {
  const isMember = (each: Disk, array: MdArray): boolean =>
    [each, ...each.partitions].some(({ path }) => array.memberPaths.includes(path));
  return inventory.arrays
    .filter((array) => isMember(disk, array))
    .map((array) => {
      const others = inventory.disks.filter((other) => other !== disk && isMember(other, array)).map(describeDisk);
      const rest = others.length === 0 ? "whose other members are not here" : `together with ${others.join(", ")}`;
      return `; it is a member of array ${array.name ?? array.uuid}, ${rest}`;
    })
    .join("");
}

/** Of the lines that say what could not be read. */
export const isAbout = (line: string, disk: Disk): boolean =>
  [disk.path, ...disk.partitions.map((part) => part.path)].some((path) => line.startsWith(`${path}:`));
