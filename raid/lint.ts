import type { RaidSpec } from "../config/document.ts";
import type { Disk } from "../kit/disk.ts";
import type { Finding } from "../kit/finding.ts";

/** What is wrong, or lossy, with these disks as one array; `members` in the order declared, spares apart. */
export function lintArray(
  spec: RaidSpec,
  field: string,
  members: readonly Disk[],
  spares: readonly Disk[],
): readonly Finding[] {
  const findings: Finding[] = [];
  const all = [...members, ...spares];
  const path = `${field}.devices`;
  if (new Set(all.map((disk) => disk.logicalSectorBytes)).size > 1) {
    const list = all.map((disk) => `${disk.path} ${disk.logicalSectorBytes}`).join(", ");
    findings.push({
      severity: "error",
      code: "mixed-sectors",
      path,
      message: `the members of array ${spec.name} differ in their sector size: ${list} bytes`,
      hint: "take disks of one sector size: on a mixed array a 512-byte write tears on the 4096-byte member",
    });
  }
  const sizes = members.map((disk) => disk.sizeBytes);
  const least = Math.min(...sizes);
  const lost = sizes.reduce((sum, size) => sum + size - least, 0);
  // RAID 0 over unequal members makes zones and uses all of it, but is as fast as the lone disk at its end.
  if (members.length > 0 && lost > 0) {
    findings.push({
      severity: "warning",
      code: "unequal-sizes",
      path,
      message:
        spec.level === 0
          ? `the members of array ${spec.name} differ in size: the last ${lost} bytes are not striped over all of them`
          : `the members of array ${spec.name} differ in size: ${lost} bytes are lost`,
    });
  }
  for (const [at, spare] of spares.entries()) {
    if (spare.sizeBytes >= least) continue;
    findings.push({
      severity: "error",
      code: "spare-too-small",
      path: `${field}.spares[${at}]`,
      message: `spare ${spare.path} has ${spare.sizeBytes} bytes, the smallest member ${least}`,
      hint: "take a spare at least as large as the smallest member: mdadm would refuse it",
    });
  }
  if (spec.level === 5 || spec.level === 6) {
    findings.push({
      severity: "warning",
      code: "write-hole",
      path: `${field}.level`,
      message: `RAID ${spec.level} has a write hole: a power cut on a degraded array can damage data that was not being written`,
      hint: "use level 1 or 10, or a UPS",
    });
  }
  return findings;
}
