import type { DiskIdentity } from "../kit/disk.ts";
import { sameDisk } from "../kit/disk.ts";
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
  /** Those that run by role, then spares, then what is broken, then what of ours is not there at all. */
  readonly members: readonly ArrayMember[];
}

export interface ArrayMember {
  /** `/dev/vdb`; of a member that is gone its last name, of a missing one none. */
  readonly device?: string;
  readonly serial?: string;
  readonly role?: number;
  readonly state: MemberState;
}

/** `detached`: its disk was pulled and the array does not know yet. `missing`: a recorded disk that is no member. */
export type MemberState = "active" | "rebuilding" | "spare" | "failed" | "detached" | "missing";

export interface RunningArray {
  readonly mdstat: MdstatArray;
  readonly detail: ArrayDetail;
  /** `/sys/block/mdN/md/array_state`; `broken` when the last member is gone too. */
  readonly arrayState?: string;
  /** Kernel names of members whose device is gone: an idle array does not notice a pulled disk by itself. */
  readonly detached: readonly string[];
  /** By kernel name, of `/sys/block/mdN/md/dev-NAME`: `state` is a list, `slot` a number or `none`. */
  readonly slots?: ReadonlyMap<string, { readonly state: string; readonly slot: string }>;
}

export interface WantedArray {
  readonly name: string;
  readonly uuid: string;
  readonly level?: string;
  readonly memberCount?: number;
  /** As recorded: members and spares. */
  readonly disks?: readonly DiskIdentity[];
}

/** Which disk stands behind a kernel name now. */
export type Identities = ReadonlyMap<string, DiskIdentity>;

const nobody: Identities = new Map();

/** Ours first, in the order given, also when they are not there; then whatever else runs. */
export function reportArrays(
  wanted: readonly WantedArray[],
  running: readonly RunningArray[],
  identities: Identities = nobody,
): readonly ArrayReport[] {
  const ours = wanted.map((array): ArrayReport => {
    const found = running.find((each) => each.detail.uuid === array.uuid);
    if (found !== undefined) return reportArray(found, array.name, identities, array.disks);
    return {
      name: array.name,
      level: array.level ?? "",
      state: "missing",
      active: 0,
      expected: array.memberCount ?? 0,
      members: missingOf(array.disks, []),
    };
  });
  const others = running.filter((each) => !wanted.some((array) => array.uuid === each.detail.uuid));
  return [...ours, ...others.map((each) => reportArray(each, each.detail.name ?? each.mdstat.device, identities))];
}

function reportArray(
  running: RunningArray,
  name: string,
  identities: Identities,
  recorded?: readonly DiskIdentity[],
): ArrayReport {
  const { mdstat, detail, arrayState, detached } = running;
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
    members: membersOf(running, identities, recorded),
  };
}

const order: readonly MemberState[] = ["active", "rebuilding", "spare", "failed", "detached", "missing"];

function membersOf(
  running: RunningArray,
  identities: Identities,
  recorded: readonly DiskIdentity[] | undefined,
): readonly ArrayMember[] {
  const here = running.mdstat.members.map((member): ArrayMember => {
    const state = memberState(running, member);
    const slot = Number(running.slots?.get(member.device)?.slot);
    const role = running.detail.members.find(({ path }) => path === `/dev/${member.device}`)?.role;
    // A name that was let go may belong to another disk by now.
    const serial = state === "detached" ? undefined : identities.get(member.device)?.serial;
    const hasRole = Number.isInteger(slot) ? slot : typeof role === "number" ? role : undefined;
    return {
      device: `/dev/${member.device}`,
      ...(serial === undefined ? {} : { serial }),
      ...(hasRole === undefined || state === "spare" ? {} : { role: hasRole }),
      state,
    };
  });
  const present = running.mdstat.members
    .filter((member) => !running.detached.includes(member.device))
    .flatMap((member) => identities.get(member.device) ?? []);
  const rank = (member: ArrayMember): number => order.indexOf(member.state) * 1000 + (member.role ?? 999);
  // Without a look at the disks nobody can be told to be missing.
  const missing = identities.size === 0 ? [] : missingOf(recorded, present);
  return [...here.toSorted((a, b) => rank(a) - rank(b) || ((a.device ?? "") < (b.device ?? "") ? -1 : 1)), ...missing];
}

function missingOf(
  recorded: readonly DiskIdentity[] | undefined,
  present: readonly DiskIdentity[],
): readonly ArrayMember[] {
  return (recorded ?? [])
    .filter((one) => !present.some((other) => sameDisk(one, other)))
    .map(({ serial }) => ({ ...(serial === undefined ? {} : { serial }), state: "missing" as const }));
}

function memberState(running: RunningArray, member: RunningArray["mdstat"]["members"][number]): MemberState {
  if (running.detached.includes(member.device)) return "detached";
  const seen = running.slots?.get(member.device);
  const flags = seen?.state.split(",") ?? [];
  if (member.isFailed || flags.includes("faulty")) return "failed";
  if (member.isSpare || seen?.slot === "none") return "spare";
  // What is being rebuilt has its slot already, and is not in sync.
  return seen === undefined || flags.includes("in_sync") ? "active" : "rebuilding";
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
