import type { ArrayDetail, MdstatArray } from "./model.ts";

/** `NodeAnswer.storage.arrays[]`. */
export interface ArrayReport {
  readonly name: string;
  readonly level: string;
  /** `healthy`, `degraded`, `rebuilding`, `resyncing`, `checking`, `reshaping`, `failed`, `inactive`, `missing`. */
  readonly state: string;
  readonly active: number;
  readonly expected: number;
  readonly progressPercent?: number;
}

export interface RunningArray {
  readonly mdstat: MdstatArray;
  readonly detail: ArrayDetail;
  /** `/sys/block/mdN/md/array_state`; `broken` when the last member is gone too. */
  readonly arrayState?: string;
  /** Kernel names of members whose device is gone: an idle array does not notice a pulled disk by itself. */
  readonly detached: readonly string[];
}

export interface WantedArray {
  readonly name: string;
  readonly uuid: string;
  readonly level?: string;
  readonly memberCount?: number;
}

/** Ours first, in the order given, also when they are not there; then whatever else runs. */
export function reportArrays(wanted: readonly WantedArray[], running: readonly RunningArray[]): readonly ArrayReport[] {
  const ours = wanted.map((array): ArrayReport => {
    const found = running.find((each) => each.detail.uuid === array.uuid);
    if (found !== undefined) return reportArray(found, array.name);
    return {
      name: array.name,
      level: array.level ?? "",
      state: "missing",
      active: 0,
      expected: array.memberCount ?? 0,
    };
  });
  const others = running.filter((each) => !wanted.some((array) => array.uuid === each.detail.uuid));
  return [...ours, ...others.map((each) => reportArray(each, each.detail.name ?? each.mdstat.device))];
}

function reportArray({ mdstat, detail, arrayState, detached }: RunningArray, name: string): ArrayReport {
  const working = mdstat.members.filter(
    (member) => !member.isFailed && !member.isSpare && !detached.includes(member.device),
  ).length;
  const expected = detail.expected ?? mdstat.expected ?? mdstat.members.length;
  // A member being rebuilt is listed but not counted in `[2/1]`; a detached one is counted but not there.
  const active = Math.min(working, mdstat.active ?? working);
  const state = stateOf(mdstat, arrayState, active, expected);
  return {
    name,
    level: mdstat.level ?? detail.level ?? "",
    state,
    active,
    expected,
    ...(mdstat.progressPercent === undefined ? {} : { progressPercent: mdstat.progressPercent }),
  };
}

function stateOf(mdstat: MdstatArray, arrayState: string | undefined, active: number, expected: number): string {
  if (arrayState === "broken" || active === 0) return mdstat.isActive ? "failed" : "inactive";
  if (!mdstat.isActive) return "inactive";
  if (active < expected && mdstat.level === "raid0") return "failed";
  switch (mdstat.action) {
    case "recovery":
      return "rebuilding";
    case "resync":
      return "resyncing";
    case "reshape":
      return "reshaping";
    case "check":
      return active < expected ? "degraded" : "checking";
    default:
      return active < expected ? "degraded" : "healthy";
  }
}
