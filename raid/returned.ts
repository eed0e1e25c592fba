/** Whether a disk that came back may be a member again. Pure. */

/** What one member's superblock says (`mdadm --examine`). */
export interface MemberView {
  readonly events: number;
  /** `AA.`: per slot `A` active, `R` replacing, `.` missing, as this member last saw it. */
  readonly slots: string;
  readonly role?: number;
}

export type Judgement = "ours" | "diverged";

export function parseMemberView(stdout: string): MemberView | undefined {
  const events = /^\s*Events : (\d+)$/m.exec(stdout)?.[1];
  const slots = /^\s*Array State : ([A-Z.]+) /m.exec(stdout)?.[1];
  if (events === undefined || slots === undefined) return undefined;
  const role = /^\s*Device Role : Active device (\d+)$/m.exec(stdout)?.[1];
  return { events: Number(events), slots, ...(role === undefined ? {} : { role: Number(role) }) };
}

/** `Events` of `mdadm --detail`: how often the running array changed. */
export function parseArrayEvents(stdout: string): number | undefined {
  const events = /^\s*Events : (\d+)$/m.exec(stdout)?.[1];
  return events === undefined ? undefined : Number(events);
}

/**
 * The kernel takes a member with a bitmap back as in sync when its count of events is no lower than the array's
 * (drivers/md/md.c, super_1_validate), and asks nothing else. So a member that ran by itself for a while, with the other
 * half gone, would be merged with what was written here since: two histories in one filesystem. Two signs of that: it has
 * seen more than the array has, or it does not count as active anybody who is active here now.
 */
export function judgeReturned(
  member: MemberView,
  running: { readonly events: number; readonly activeRoles: readonly number[] },
): Judgement {
  if (member.events > running.events) return "diverged";
  if (member.role === undefined) return "ours";
  // The place of its own that a spare took says nothing: who holds it now may know only the other half.
  const sharesHistory = running.activeRoles.some(
    (role) => role !== member.role && /[AR]/.test(member.slots[role] ?? ""),
  );
  return sharesHistory ? "ours" : "diverged";
}
