import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { decodeBootEnv, encodeBootEnv, newBootEnv } from "./bootenv.ts";
import type { BootEnv, Slot, SlotState } from "./bootenv.ts";
import { decide, parseRequest, primarySlot } from "./bootstate.ts";
import type { Request } from "./bootstate.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const ID = "0123456789abcdef0123456789abcdef";

function next(env: BootEnv, words: string, booted: Slot): BootEnv {
  const request = parseRequest(words.split(" "));
  if (request === undefined) throw new Error(`no request: ${words}`);
  const decided = decide(env, request, booted);
  if (!decided.ok) throw new Error(decided.error.message);
  return decided.value.next ?? env;
}

/** What grub.cfg does at a start: a trial is cleared before it runs. */
function grub(env: BootEnv): { readonly env: BootEnv; readonly booted: Slot } {
  if (env.try === undefined) return { env, booted: env.good };
  const { try: trial, ...rest } = env;
  return { env: { ...rest, tried: trial }, booted: trial };
}

describe("as RAUC calls it", () => {
  const installing = next(newBootEnv(ID), "set-state B bad", "A");
  const armed = next(installing, "set-primary B", "A");

  test("set-state bad while it writes, set-primary makes it bootable and arms one trial", () => {
    expect(installing.state.B).toBe("fail");
    expect(armed).toMatchObject({ good: "A", try: "B", state: { A: "good", B: "good" } });
    expect(primarySlot(armed)).toBe("B");
    expect(armed.generation).toBe(newBootEnv(ID).generation + 2);
  });

  test("a trial that was cut falls back to the old slot, and says that it was tried", () => {
    const trial = grub(armed);
    expect(trial.booted).toBe("B");
    const after = grub(trial.env);
    expect(after.booted).toBe("A");
    expect(after.env.tried).toBe("B");
  });

  test("a trial marked good stays", () => {
    const good = next(grub(armed).env, "mark-good", "B");
    expect(grub(good).booted).toBe("B");
    expect(good).toMatchObject({ good: "B", state: { A: "good", B: "good" } });
    expect("tried" in good).toBe(false);
  });

  test("marking the running slot good after a failed trial forgets nothing but the trial", () => {
    const back = next(grub(grub(armed).env).env, "mark-good", "A");
    expect(back).toMatchObject({ good: "A" });
  });

  test("after a failed upgrade the node boots the last good one, not the one before it", () => {
    const v2 = next(grub(armed).env, "mark-good", "B");
    const v3 = next(next(v2, "set-state A bad", "B"), "set-primary A", "B");
    expect(grub(grub(v3).env).booted).toBe("B");
  });

  test("bad disarms a trial that was armed before", () => {
    expect("try" in next(armed, "set-state B bad", "A")).toBe(false);
  });

  test("the slot that boots can't be marked bad", () => {
    for (const env of [newBootEnv(ID), armed]) {
      expect(decide(env, { kind: "set-state", slot: "A", verdict: "bad" }, "A")).toMatchObject({
        ok: false,
        error: { code: "last-good-slot" },
      });
    }
  });

  test("an empty slot is bad, and marking another slot than the running one good commits nothing", () => {
    const words = (env: BootEnv, slot: Slot) => decide(env, { kind: "get-state", slot }, "A");
    expect(words(newBootEnv(ID), "B")).toMatchObject({ value: { answer: "bad\n" } });
    const whole = next(newBootEnv(ID), "set-state B good", "A");
    expect(words(whole, "B")).toMatchObject({ value: { answer: "good\n" } });
    expect(grub(whole).booted).toBe("A");
  });

  test("what changes nothing writes nothing", () => {
    expect(decide(newBootEnv(ID), { kind: "mark-good" }, "A")).toEqual({ ok: true, value: { answer: "" } });
  });
});

test("whatever is asked in whatever order: a good slot is left to boot, and the environment can be written", () => {
  const slots = fc.constantFrom<Slot>("A", "B");
  const requests = fc.oneof(
    fc.record({ kind: fc.constant("set-primary" as const), slot: slots }),
    fc.record({
      kind: fc.constant("set-state" as const),
      slot: slots,
      verdict: fc.constantFrom("good" as const, "bad" as const),
    }),
    fc.constant({ kind: "mark-good" as const }),
    fc.constant("reboot" as const),
  );
  fc.assert(
    fc.property(fc.array(requests, { maxLength: 30 }), (steps: readonly (Request | "reboot")[]) => {
      let env = newBootEnv(ID);
      let booted: Slot = "A";
      for (const step of steps) {
        if (step === "reboot") ({ env, booted } = grub(env));
        else {
          const decided = decide(env, step, booted);
          if (decided.ok) env = decided.value.next ?? env;
        }
        const state: SlotState = env.state[env.good];
        expect(state).toBe("good");
        expect(decodeBootEnv(encodeBootEnv(env))).toEqual({ ok: true, value: env });
      }
    }),
  );
});

test("requests that are none", () => {
  for (const words of [
    "",
    "get",
    "set-primary C",
    "set-primary",
    "mark-good B",
    "set-state A",
    "set-state A fine",
    "get-state A x",
  ]) {
    expect(parseRequest(words.split(" "))).toBeUndefined();
  }
});
