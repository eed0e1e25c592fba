import type { RaidCreateStep } from "./model.ts";

/** A v4 UUID, or one in blkid's form with dashes, as mdadm writes it: `8:8:8:8` hex digits with colons. */
export function mdUuid(uuid: string): string {
  const digits = uuid.replace(/[^0-9a-fA-F]/g, "").toLowerCase();
  return (digits.match(/.{8}/g) ?? []).join(":");
}

/** The stable name of an array: `/dev/mdNNN` and `/dev/md/NAME` depend on the order of assembly. */
export const arrayPath = (uuid: string): string => `/dev/disk/by-id/md-uuid-${uuid}`;

export const mdConfig = "/etc/mdadm/mdadm.conf";

/**
 * `--homehost=any`: the array is nobody's, so that a renamed node still owns it. `--run` answers the questions that
 * mdadm would ask. An explicit bitmap, because mdadm 4.4 asks for one when none is given; RAID 0 can't have one.
 * Never `--assume-clean`: a wiped member is not a zeroed one, so the members differ where nothing was written yet,
 * each scrub would report that, and on RAID 5 and 6 parity would rebuild garbage.
 */
export function createArgv(step: Pick<RaidCreateStep, "name" | "level" | "uuid" | "members" | "spares">): string[] {
  return [
    "mdadm",
    "--create",
    `/dev/md/${step.name}`,
    "--metadata=1.2",
    "--homehost=any",
    `--name=${step.name}`,
    `--uuid=${step.uuid}`,
    `--level=${step.level}`,
    `--raid-devices=${step.members.length}`,
    ...(step.level === 0 ? [] : ["--bitmap=internal"]),
    ...(step.spares.length === 0 ? [] : [`--spare-devices=${step.spares.length}`]),
    "--run",
    ...step.members.map((member) => member.path),
    ...step.spares.map((member) => member.path),
  ];
}

/** By UUID, from the given members only; the image's mdadm.conf says `AUTO -all`, so that nothing else comes along. */
export function assembleArgv(name: string, uuid: string, members: readonly string[]): string[] {
  return ["mdadm", "--assemble", `/dev/md/${name}`, `--uuid=${uuid}`, `--config=${mdConfig}`, "--run", ...members];
}
