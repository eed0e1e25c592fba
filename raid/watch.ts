/** What happens to arrays while the node runs: two looks at them → what to do, and what to say. Pure. */
import type { ArrayMember, ArrayReport } from "./report.ts";
import type { Judgement } from "./returned.ts";

/** One array of ours as a look found it. */
export interface WatchedArray extends ArrayReport {
  readonly uuid: string;
  /** `/dev/md127`; absent while it does not run. */
  readonly path?: string;
  /** As after each start: nothing is rebuilt until somebody writes. */
  readonly isAutoReadOnly: boolean;
}

/** A recorded disk that carries an array's superblock and is no member of it now. */
export interface ReturnedDisk {
  readonly uuid: string;
  readonly device: string;
  readonly serial?: string;
  /** Names this appearance of it: a disk that is plugged in again is another one. */
  readonly sequence: string;
  readonly judgement: Judgement;
}

export interface Look {
  readonly arrays: readonly WatchedArray[];
  readonly returned: readonly ReturnedDisk[];
}

/** Kept over restarts of the daemon, not over boots: what was said is not said again. */
export interface Memory {
  readonly arrays: readonly WatchedArray[];
  /** Appearances of disks that were dealt with: once each, for a disk that fails again at once must not flap. */
  readonly met: readonly string[];
}

export type ArrayAction =
  /** A member's disk is gone; an idle array never finds out by itself. */
  | { readonly kind: "drop-detached"; readonly name: string; readonly path: string }
  | { readonly kind: "re-add"; readonly name: string; readonly path: string; readonly device: string }
  /** An array stays auto-read-only until it is written to, and then nothing is rebuilt either. */
  | { readonly kind: "read-write"; readonly name: string; readonly path: string };

export interface ArrayEvent {
  readonly kind: string;
  readonly severity: "info" | "warning" | "error";
  readonly message: string;
}

export interface Decision {
  readonly actions: readonly ArrayAction[];
  readonly events: readonly ArrayEvent[];
  readonly memory: Memory;
}

const LOST = new Set(["failed", "inactive", "missing"]);
const WORKS = new Set(["active", "rebuilding", "spare"]);
/** Per cent between two events of one rebuild. */
const STRIDE = 25;

/** `leaving`: serials of members that are being replaced on request; nobody misses them. */
export function decide(memory: Memory | undefined, look: Look, leaving: readonly string[] = []): Decision {
  const events: ArrayEvent[] = [];
  const actions: ArrayAction[] = [];
  for (const now of look.arrays) {
    const before = memory?.arrays.find((each) => each.uuid === now.uuid);
    events.push(...(before === undefined ? firstSight(now) : changes(before, now, leaving)));
    actions.push(...upkeep(now));
  }
  const met = memory?.met ?? [];
  const fresh = look.returned.filter((disk) => !met.includes(keyOf(disk)));
  for (const disk of fresh) {
    const array = look.arrays.find((each) => each.uuid === disk.uuid);
    if (array?.path === undefined || LOST.has(array.state)) continue;
    if (disk.judgement === "ours") {
      actions.push({ kind: "re-add", name: array.name, path: array.path, device: disk.device });
      continue;
    }
    events.push({
      kind: "array-diverged",
      severity: "error",
      message: `${who(disk)} is a member of array ${array.name} with a history of its own: it is left alone`,
    });
  }
  const dealtWith = fresh.filter(({ uuid }) =>
    look.arrays.some((each) => each.uuid === uuid && each.path !== undefined),
  );
  return { actions, events, memory: { arrays: look.arrays, met: [...met, ...dealtWith.map(keyOf)].slice(-100) } };
}

const keyOf = (disk: ReturnedDisk): string => `${disk.uuid} ${disk.device} ${disk.sequence}`;

/** RAID 0 can lose nobody: there it only makes mdadm complain. */
function upkeep(now: WatchedArray): ArrayAction[] {
  const { name, path } = now;
  if (path === undefined || now.level === "raid0" || LOST.has(now.state)) return [];
  const has = (state: ArrayMember["state"]): boolean => now.members.some((member) => member.state === state);
  const hasCandidate = now.active < now.expected && (has("spare") || has("rebuilding"));
  const isWaiting = now.isAutoReadOnly && (now.state === "resyncing" || hasCandidate);
  return [
    ...(has("detached") ? [{ kind: "drop-detached" as const, name, path }] : []),
    ...(isWaiting ? [{ kind: "read-write" as const, name, path }] : []),
  ];
}

function firstSight(now: WatchedArray): ArrayEvent[] {
  if (LOST.has(now.state)) return [failed(now)];
  const missing = now.members.filter(({ state }) => !WORKS.has(state));
  // A new RAID 5 is made as one member short, and that is rebuilt: nobody is missing, and nothing was there to lose.
  const isNew = now.state === "rebuilding" && missing.length === 0;
  if (now.active < now.expected && !isNew) return [degraded(now, missing), ...progress(undefined, now)];
  if (missing.length === 0) return progress(undefined, now);
  const message = `array ${now.name} runs without ${missing.map(who).join(", ")}: a spare is missing`;
  return [{ kind: "array-spare-missing", severity: "warning", message }];
}

function changes(before: WatchedArray, now: WatchedArray, leaving: readonly string[]): ArrayEvent[] {
  const events: ArrayEvent[] = [];
  for (const member of before.members.filter(({ state }) => WORKS.has(state))) {
    const then = sameMember(member, now.members);
    if (then !== undefined && WORKS.has(then.state)) {
      if (member.state === "spare" && then.state !== "spare") events.push(spareUsed(now, member));
      continue;
    }
    if (member.serial !== undefined && leaving.includes(member.serial)) continue;
    const how = then?.state === "failed" ? "failed" : "is gone";
    const message = `array ${now.name}: member ${who(member)} ${how}`;
    events.push({ kind: "array-member-lost", severity: "warning", message });
  }
  for (const member of now.members.filter(({ state }) => WORKS.has(state))) {
    const then = sameMember(member, before.members);
    if (then !== undefined && WORKS.has(then.state)) continue;
    const message = `array ${now.name}: ${who(member)} is a member${then === undefined ? "" : " again"}`;
    events.push({ kind: "array-member-added", severity: "info", message });
  }
  if (LOST.has(now.state)) return LOST.has(before.state) ? events : [...events, failed(now)];
  const isFewer = now.active < before.active || LOST.has(before.state);
  if (now.active < now.expected && isFewer) {
    const missing = now.members.filter(({ state }) => !WORKS.has(state));
    events.push(degraded(now, missing));
  }
  events.push(...progress(before, now));
  // With a spare at hand all of it can be over between two looks.
  const isMended = events.some(({ kind }) => kind === "array-spare-used");
  const wasPartial = before.active < before.expected || LOST.has(before.state) || isMended;
  if (wasPartial && now.active >= now.expected) {
    const message = `array ${now.name} is whole again: ${now.active} of ${now.expected} members`;
    events.push({ kind: "array-recovered", severity: "info", message });
  }
  return events;
}

/** Its start, each quarter of it, and its end where nothing else says so. */
function progress(before: WatchedArray | undefined, now: WatchedArray): ArrayEvent[] {
  const words: Readonly<Record<string, string>> = {
    rebuilding: "is being rebuilt",
    resyncing: "is being synchronised",
  };
  const word = words[now.state];
  const isBusy = word !== undefined && !now.isAutoReadOnly;
  const wasBusy = before !== undefined && before.state in words && !before.isAutoReadOnly;
  if (!isBusy) {
    if (!wasBusy || before.state !== "resyncing" || now.state !== "healthy") return [];
    return [{ kind: "array-synchronised", severity: "info", message: `array ${now.name} is synchronised` }];
  }
  const quarter = (array: WatchedArray): number => Math.floor((array.progressPercent ?? 0) / STRIDE);
  if (wasBusy && before.state === now.state && quarter(now) <= quarter(before)) return [];
  const message = `array ${now.name} ${word}: ${Math.floor(now.progressPercent ?? 0)} %`;
  return [{ kind: now.state === "rebuilding" ? "array-rebuilding" : "array-synchronising", severity: "info", message }];
}

const failed = (now: WatchedArray): ArrayEvent => ({
  kind: "array-failed",
  severity: "error",
  message: `array ${now.name} is ${now.state}: ${now.active} of ${now.expected} members`,
});

function degraded(now: WatchedArray, missing: readonly ArrayMember[]): ArrayEvent {
  const names = missing.length === 0 ? "" : `, without ${missing.map(who).join(", ")}`;
  const message = `array ${now.name} is degraded: ${now.active} of ${now.expected} members${names}`;
  return { kind: "array-degraded", severity: "warning", message };
}

const spareUsed = (now: WatchedArray, member: ArrayMember): ArrayEvent => ({
  kind: "array-spare-used",
  severity: "warning",
  message: `array ${now.name}: spare ${who(member)} takes the place of a member`,
});

/** By serial where both have one: kernel names are handed on. */
function sameMember(member: ArrayMember, others: readonly ArrayMember[]): ArrayMember | undefined {
  return others.find((other) =>
    member.serial !== undefined && other.serial !== undefined
      ? member.serial === other.serial
      : member.device !== undefined && member.device === other.device,
  );
}

function who(member: Pick<ArrayMember, "device" | "serial">): string {
  if (member.serial === undefined) return member.device ?? "a disk";
  return member.device === undefined ? `serial ${member.serial}` : `serial ${member.serial} (${member.device})`;
}
