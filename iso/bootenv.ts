/**
 * The boot environment `/corium/env` on the ESP, read and written by GRUB and by `corium bootstate`.
 * Exactly 1024 bytes in grubenv format; every variable has a fixed width and lies in the first 512 bytes, the
 * second 512 are constant. So a write torn between sectors gives the old or the new one, never a mixture, and
 * GRUB's own `save_env`, which replaces a value in place when its length stays, keeps the layout.
 */
import { fail } from "../kit/app-error.ts";
import type { AppError } from "../kit/app-error.ts";
import { ok } from "../kit/result.ts";
import type { Result } from "../kit/result.ts";

export const BOOT_ENV_BYTES = 1024;

/** Where it lies on the ESP. */
export const BOOT_ENV_PATH = "corium/env";

/** No leading zeros ever, so GRUB's `-gt` and a plain comparison of text agree. */
export const FIRST_GENERATION = 100_000_001;
const LAST_GENERATION = 999_999_999;

export type Slot = "A" | "B";

/** `void`: nothing was ever written there. All four letters long: the width is fixed. */
export type SlotState = "good" | "fail" | "void";

export interface BootEnv {
  /** Installation id: 32 lower-case hex digits. A disk of another installation is not ours to boot from. */
  readonly id: string;
  /** Grows with each write of ours: of two ESPs the higher one is right. */
  readonly generation: number;
  /** The slot that boots when nothing else is asked for. */
  readonly good: Slot;
  /** Boot this one once; GRUB clears it before it does. */
  readonly try?: Slot;
  /** GRUB has started the trial of this slot; still set after a boot of the other one: the trial failed. */
  readonly tried?: Slot;
  readonly state: Readonly<Record<Slot, SlotState>>;
}

const SIGNATURE = "# GRUB Environment Block\n";
const FIELDS = ["id", "gen", "good", "try", "tried", "stA", "stB"] as const;
const HALF_BYTES = BOOT_ENV_BYTES / 2;

export const otherSlot = (slot: Slot): Slot => (slot === "A" ? "B" : "A");

/** What a fresh installation starts with: slot A good, slot B empty. */
export const newBootEnv = (installation: string): BootEnv => ({
  id: installation,
  generation: FIRST_GENERATION,
  good: "A",
  state: { A: "good", B: "void" },
});

export function encodeBootEnv(env: BootEnv): Uint8Array {
  if (!/^[0-9a-f]{32}$/.test(env.id)) throw new Error(`not an installation id: ${env.id}`);
  if (env.generation < FIRST_GENERATION || env.generation > LAST_GENERATION) {
    throw new Error(`generation out of range: ${env.generation}`);
  }
  const values = {
    id: env.id,
    gen: String(env.generation),
    good: env.good,
    try: env.try ?? "-",
    tried: env.tried ?? "-",
    stA: env.state.A,
    stB: env.state.B,
  };
  const text = SIGNATURE + FIELDS.map((field) => `${field}=${values[field]}\n`).join("");
  return new TextEncoder().encode(text.padEnd(BOOT_ENV_BYTES, "#"));
}

export function decodeBootEnv(bytes: Uint8Array): Result<BootEnv, AppError> {
  const bad = (what: string) =>
    fail("boot-environment", `the boot environment is unusable: ${what}`, {
      hint: "the node still boots its last good slot; install again to repair the disk",
    });
  if (bytes.length !== BOOT_ENV_BYTES) return bad(`${bytes.length} bytes instead of ${BOOT_ENV_BYTES}`);
  const text = new TextDecoder("latin1").decode(bytes);
  if (!text.startsWith(SIGNATURE)) return bad("no GRUB signature");
  if (!/^#+$/.test(text.slice(HALF_BYTES))) return bad("variables in the second sector");
  const values = new Map<string, string>();
  for (const line of text.slice(SIGNATURE.length).split("\n")) {
    const [name, value] = line.split("=", 2);
    if (name !== undefined && value !== undefined) values.set(name, value);
  }
  const id = values.get("id") ?? "";
  const generation = Number(values.get("gen"));
  if (!/^[0-9a-f]{32}$/.test(id)) return bad("no installation id");
  if (!Number.isInteger(generation) || generation < FIRST_GENERATION || generation > LAST_GENERATION) {
    return bad("no generation");
  }
  const slot = (name: string): Slot | undefined => {
    const value = values.get(name);
    return value === "A" || value === "B" ? value : undefined;
  };
  const state = (name: string): SlotState | undefined => {
    const value = values.get(name);
    return value === "good" || value === "fail" || value === "void" ? value : undefined;
  };
  const [good, trial, tried, stateA, stateB] = [slot("good"), slot("try"), slot("tried"), state("stA"), state("stB")];
  if (good === undefined) return bad("no good slot");
  if (stateA === undefined || stateB === undefined) return bad("no slot state");
  return ok({
    id,
    generation,
    good,
    ...(trial !== undefined && { try: trial }),
    ...(tried !== undefined && { tried }),
    state: { A: stateA, B: stateB },
  });
}

/** Of those on several ESPs the right one, as GRUB chooses it: the newest, and of two as new the one with no trial. */
export function newestEnv(envs: readonly BootEnv[]): BootEnv | undefined {
  const isBetter = (a: BootEnv, b: BootEnv): boolean =>
    a.generation > b.generation || (a.generation === b.generation && a.try === undefined && b.try !== undefined);
  return envs.reduce<BootEnv | undefined>(
    (best, each) => (best === undefined || isBetter(each, best) ? each : best),
    undefined,
  );
}

/** What GRUB reads from `slot.env` beside kernel and initrd of a slot. */
export interface SlotEnv {
  readonly version: string;
  /** dm-verity root hash, 64 hex digits. */
  readonly rootHash: string;
  /** Where the hash tree starts in the root image: the size of the squashfs in it. */
  readonly hashOffsetBytes: number;
  /** Carried kernel arguments: `console=ttyS0,115200 ip=…`. One line. */
  readonly args: string;
}

/** Also grubenv format; never written by GRUB, so its length is free. */
export function encodeSlotEnv(slot: SlotEnv): Uint8Array {
  // grub_envblk_set escapes only the backslash and the newline.
  const args = slot.args.replaceAll("\n", " ").replaceAll("\\", "\\\\");
  const text =
    SIGNATURE +
    `version=${slot.version}\nroothash=${slot.rootHash}\nhashoffset=${slot.hashOffsetBytes}\nargs=${args}\n`;
  const size = Math.ceil(text.length / BOOT_ENV_BYTES) * BOOT_ENV_BYTES;
  return new TextEncoder().encode(text.padEnd(size, "#"));
}
