/**
 * Which slot boots: the transitions of the boot environment behind `corium bootstate`, after the custom boot
 * loader backend of RAUC. RAUC calls, while it installs: set-state TARGET bad, then set-primary TARGET; so the
 * latter must itself make the slot bootable, and arms a trial of one boot. Only mark-good makes it the slot that
 * boots from then on.
 */
import { fail } from "../kit/app-error.ts";
import type { AppError } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import type { Result } from "../kit/result.ts";
import { otherSlot } from "./bootenv.ts";
import type { BootEnv, Slot } from "./bootenv.ts";

/** The slot that the next boot starts. */
export const primarySlot = (env: BootEnv): Slot => env.try ?? env.good;

/** As RAUC wants it: an empty slot is as bad as a broken one. */
export const slotVerdict = (env: BootEnv, slot: Slot): "good" | "bad" => (env.state[slot] === "good" ? "good" : "bad");

type Without<T, K extends keyof T> = Omit<T, K>;
const disarmed = ({ try: _armed, ...rest }: BootEnv): Without<BootEnv, "try"> => rest;
const settled = ({ try: _armed, tried: _started, ...rest }: BootEnv): Without<BootEnv, "try" | "tried"> => rest;

/** Boot `slot` once; when it is the good one already, boot nothing else. */
export function setPrimary(env: BootEnv, slot: Slot): BootEnv {
  const bootable: BootEnv = { ...settled(env), state: { ...env.state, [slot]: "good" } };
  return slot === env.good ? bootable : { ...bootable, try: slot };
}

/** Refused when it would leave nothing to boot. */
export function markBad(env: BootEnv, slot: Slot): Result<BootEnv, AppError> {
  if (env.good === slot) {
    const other = otherSlot(slot);
    return fail("last-good-slot", `slot ${slot} is the one that boots, it can't be marked bad`, {
      hint: env.state[other] === "good" ? `make slot ${other} the good one first` : "there is no other good slot",
    });
  }
  const kept: BootEnv = env.try === slot ? disarmed(env) : env;
  return ok({ ...kept, state: { ...env.state, [slot]: "fail" } });
}

/** `booted`: the slot that runs. Of the other one it only says that its content is whole. */
export function markGood(env: BootEnv, slot: Slot, booted: Slot): BootEnv {
  const state = { ...env.state, [slot]: "good" as const };
  return slot === booted ? { ...settled(env), good: slot, state } : { ...env, state };
}

export type Request =
  | { readonly kind: "show" }
  | { readonly kind: "get-primary" }
  | { readonly kind: "get-current" }
  | { readonly kind: "get-state"; readonly slot: Slot }
  | { readonly kind: "set-primary"; readonly slot: Slot }
  | { readonly kind: "set-state"; readonly slot: Slot; readonly verdict: "good" | "bad" }
  | { readonly kind: "mark-good" };

const isSlot = (text: string | undefined): text is Slot => text === "A" || text === "B";

/** `undefined`: not a call we know. The words are RAUC's, but for show and mark-good. */
export function parseRequest(argv: readonly string[]): Request | undefined {
  const [kind, slot, verdict, ...rest] = argv;
  if (rest.length > 0) return undefined;
  if (
    (kind === "show" || kind === "get-primary" || kind === "get-current" || kind === "mark-good") &&
    slot === undefined
  ) {
    return { kind };
  }
  if ((kind === "get-state" || kind === "set-primary") && isSlot(slot) && verdict === undefined) return { kind, slot };
  if (kind === "set-state" && isSlot(slot) && (verdict === "good" || verdict === "bad")) return { kind, slot, verdict };
  return undefined;
}

export interface Outcome {
  /** For standard output. */
  readonly answer: string;
  /** To be written, its generation one higher; absent: nothing to write. */
  readonly next?: BootEnv;
}

const sameExceptGeneration = (a: BootEnv, b: BootEnv): boolean =>
  a.good === b.good && a.try === b.try && a.tried === b.tried && a.state.A === b.state.A && a.state.B === b.state.B;

/** What a request says and changes; writes nothing where nothing differs. */
export function decide(env: BootEnv, request: Request, booted: Slot): Result<Outcome, AppError> {
  const change = (next: BootEnv): Result<Outcome, AppError> =>
    ok(
      sameExceptGeneration(env, next)
        ? { answer: "" }
        : { answer: "", next: { ...next, generation: env.generation + 1 } },
    );
  switch (request.kind) {
    case "show":
      return ok({ answer: `${JSON.stringify({ ...env, booted, primary: primarySlot(env) })}\n` });
    case "get-primary":
      return ok({ answer: `${primarySlot(env)}\n` });
    case "get-current":
      return ok({ answer: `${booted}\n` });
    case "get-state":
      return ok({ answer: `${slotVerdict(env, request.slot)}\n` });
    case "set-primary":
      return change(setPrimary(env, request.slot));
    case "mark-good":
      return change(markGood(env, booted, booted));
    case "set-state": {
      if (request.verdict === "good") return change(markGood(env, request.slot, booted));
      const marked = markBad(env, request.slot);
      return marked.ok ? change(marked.value) : marked;
    }
    default:
      return request satisfies never;
  }
}
