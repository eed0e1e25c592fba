/** Who holds the virtual address: look after look → what is so, and what to say. Pure. */

/**
 * - `held`: by this node alone. `elsewhere`: by one other machine. `contested`: by more than one.
 * - `unheld`: nobody answers for it.
 */
export type VipState = "held" | "elsewhere" | "contested" | "unheld";

export interface VipLook {
  readonly isHeld: boolean;
  /** Link addresses of other machines that answered for it. */
  readonly others: readonly string[];
}

/** Kept over restarts of the daemon, not over boots. */
export interface VipMemory {
  /** Whether this node had it when last looked; said as it changes. */
  readonly isHeld?: boolean;
  /** Of the last time that the link was asked. */
  readonly others?: readonly string[];
  /** Of the last time; what two of them agree on is so. */
  readonly seen?: VipState;
  /** So, and said. */
  readonly told?: VipState;
}

export interface VipEvent {
  readonly kind: "vip-held" | "vip-left" | "vip-contested" | "vip-unheld" | "vip-settled";
  readonly severity: "info" | "warning" | "error";
  readonly message: string;
}

export interface VipDecision {
  readonly memory: VipMemory;
  readonly events: readonly VipEvent[];
}

/** Cheap, every few seconds: did it come or go here? Then the link is asked soon. */
export function noteHolding(memory: VipMemory, isHeld: boolean, vip: string): VipDecision {
  if (memory.isHeld === isHeld) return { memory, events: [] };
  const isNews = memory.isHeld !== undefined || isHeld;
  const event: VipEvent = isHeld
    ? { kind: "vip-held", severity: "info", message: `this node holds the virtual address ${vip} now` }
    : { kind: "vip-left", severity: "info", message: `this node does not hold the virtual address ${vip} any more` };
  // What the others said was said of the time before.
  const { others: _, seen: __, ...rest } = memory;
  return { memory: { ...rest, isHeld }, events: isNews ? [event] : [] };
}

export function stateOf({ isHeld, others }: VipLook): VipState {
  const count = others.length + (isHeld ? 1 : 0);
  if (count > 1) return "contested";
  if (count === 0) return "unheld";
  return isHeld ? "held" : "elsewhere";
}

/** While it moves there may be two holders, or none, for a moment: only what two looks agree on is said. */
export function noteAnswers(memory: VipMemory, look: VipLook, vip: string): VipDecision {
  const seen = stateOf(look);
  const next: VipMemory = { ...memory, isHeld: look.isHeld, others: look.others, seen };
  if (seen !== memory.seen || seen === memory.told) return { memory: next, events: [] };
  const events = newsOf(seen, memory.told, look, vip);
  return { memory: { ...next, told: seen }, events };
}

function newsOf(now: VipState, before: VipState | undefined, look: VipLook, vip: string): readonly VipEvent[] {
  const machines = look.others.join(" and ");
  const what = `the virtual address ${vip}`;
  if (now === "contested") {
    const who = look.isHeld ? `this node and ${machines}` : machines;
    const message = `${what} has more than one holder: ${who}; VRRP does not pass between them, or somebody else uses the address`;
    return [{ kind: "vip-contested", severity: "error", message }];
  }
  if (now === "unheld") {
    return [{ kind: "vip-unheld", severity: "warning", message: `nobody answers for ${what}` }];
  }
  if (before !== "contested" && before !== "unheld") return [];
  const holder = now === "held" ? "this node" : machines;
  return [{ kind: "vip-settled", severity: "info", message: `${what} has one holder again: ${holder}` }];
}

/** How long until the link is asked again: soon after a change and while something is wrong, else once a minute. */
export function askAgainMs({ seen, told }: VipMemory): number {
  if (seen === undefined) return 2_000;
  if (seen !== told) return 3_000;
  return told === "contested" || told === "unheld" ? 15_000 : 60_000;
}
