/**
 * An operation dies at every call that it makes of the machine, in every way, and is run again from what is durable:
 * the end must be the same as without. What counts as the same, and what may never happen, each operation says.
 */
import type { Fate } from "../support/fake-call.ts";
import type { FakeHost } from "../support/fake-host.ts";
import { MachineDied } from "../support/fake-host.ts";
import { seeded } from "../qemu/harness/write-log.ts";
import type { Remains } from "./volatile-disk.ts";

export interface Subject {
  readonly host: FakeHost;
  /** One run of the operation; why it failed, if it did. */
  run(): Promise<string | undefined>;
  /** Power goes and comes back. */
  powerCut(remains: () => Remains): void;
  /** How far a tool that syncs in between has come when power goes in the middle of it. */
  tear?(stage: number): void;
  /** What must never happen and did. */
  violations(): readonly string[];
  /** What is durable and matters, as text. */
  state(): string;
  /** What an interrupted run must not choose anew, read after it: the next runs must keep it. */
  promises(): readonly string[];
  /** All that the next boot can depend on: deaths that leave the same are one and the same. */
  fingerprint(): string;
}

export interface Point {
  readonly call: number;
  readonly fate: Fate;
  /** What is left of what was not flushed; `alive`: all, for only the process died and the machine ran on. */
  readonly cache: "dropped" | "kept" | "mixed" | "alive";
  readonly stage?: number;
}

export interface Flaw extends Point {
  readonly name: string;
  readonly problem: string;
}

export type Way = Omit<Point, "call">;

export const WAYS: readonly Way[] = [
  { fate: "fails", cache: "dropped" },
  { fate: "before", cache: "alive" },
  { fate: "before", cache: "dropped" },
  { fate: "before", cache: "mixed" },
  { fate: "during", cache: "dropped" },
  { fate: "during", cache: "mixed" },
  { fate: "after", cache: "alive" },
  { fate: "after", cache: "dropped" },
  { fate: "after", cache: "kept" },
  { fate: "after", cache: "mixed" },
];

/** Power cuts alone. */
export const CUTS = WAYS.filter(({ fate, cache }) => fate !== "fails" && cache !== "alive");

export interface Survey {
  /** Calls of one undisturbed run. */
  readonly calls: number;
  /** Deaths that were tried: each that leaves something else than another. */
  readonly deaths: number;
  readonly flaws: readonly Flaw[];
}

function remainsOf(cache: Point["cache"], seed: number): () => Remains {
  if (cache !== "mixed") return () => (cache === "kept" ? "kept" : "lost");
  const random = seeded(seed);
  return () => {
    const chance = random();
    return chance < 0.45 ? "kept" : chance < 0.9 ? "lost" : "torn";
  };
}

/** A control ends with its first flaw. */
export async function survey(
  make: (onCall?: () => void) => Subject,
  { ways = WAYS, isControl = false }: { readonly ways?: readonly Way[]; readonly isControl?: boolean } = {},
): Promise<Survey> {
  const prints: string[] = [];
  const whole: Subject = make(() => prints.push(whole.fingerprint()));
  const failure = await whole.run();
  if (failure !== undefined) throw new Error(`undisturbed it fails: ${failure}`);
  const calls = prints.length;
  prints.push(whole.fingerprint());
  // What was reported as done is durable.
  whole.powerCut(() => "lost");
  const wanted = whole.state();
  if (whole.violations().length > 0) throw new Error(`undisturbed: ${whole.violations().join("; ")}`);
  const flaws: Flaw[] = [];
  let deaths = 0;
  for (let call = 1; call <= calls; call += 1) {
    // Most calls only look: a death before, in and after such a one leaves what the one before left.
    const isNewBefore = prints[call - 1] !== prints[call - 2];
    const isChange = prints[call] !== prints[call - 1];
    for (const [index, way] of ways.entries()) {
      if (way.fate !== "fails" && !(way.fate === "before" ? isNewBefore : isChange)) continue;
      if (way.fate !== "fails") deaths += 1;
      const point = { call, ...way };
      const subject = make();
      for (const problem of await disturbed(subject, point, wanted, call * WAYS.length + index))
        flaws.push({ ...point, name: subject.host.calls[call - 1] ?? "", problem });
      if (isControl && flaws.length > 0) return { calls, deaths, flaws };
    }
  }
  return { calls, deaths, flaws };
}

async function disturbed(subject: Subject, point: Point, wanted: string, seed: number): Promise<readonly string[]> {
  const { host } = subject;
  const problems: string[] = [];
  if (point.stage !== undefined) subject.tear?.(point.stage);
  if (point.fate === "fails") host.failAt(point.call);
  else host.dieAt(point.call, point.fate);
  let isDead = false;
  try {
    const failure = await subject.run();
    if (failure !== undefined && !/\S+ \S+/.test(failure)) problems.push(`it fails without saying why: "${failure}"`);
  } catch (thrown) {
    if (!(thrown instanceof MachineDied)) throw thrown;
    isDead = true;
  }
  const promised = subject.promises();
  // A call that failed, or a process that died alone, is followed by a try in the same boot.
  if (isDead && point.cache === "alive") host.respawn();
  else if (isDead) subject.powerCut(remainsOf(point.cache, seed));
  const failure = await subject.run();
  if (failure !== undefined) problems.push(`the next run fails: ${failure}`);
  subject.powerCut(() => "lost");
  const state = subject.state();
  if (state !== wanted) problems.push(`it is not as without: ${difference(wanted, state)}`);
  for (const promise of promised)
    if (!subject.promises().includes(promise)) problems.push(`${promise} was chosen anew`);
  problems.push(...subject.violations());
  return problems;
}

/** The first lines that differ. */
function difference(wanted: string, found: string): string {
  const [a, b] = [wanted.split("\n"), found.split("\n")];
  const at = a.findIndex((line, index) => line !== b[index]);
  return `wanted ${a[at]}, got ${b[at]}`;
}
