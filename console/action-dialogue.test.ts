import { describe, expect, test } from "bun:test";
import type { ActionTurn } from "./action-dialogue.ts";
import { beginPower, beginRetry, stepAction } from "./action-dialogue.ts";
import type { Input } from "./dialogue.ts";
import { readTyped } from "./typed.ts";

function script(first: ActionTurn, inputs: readonly (string | Input)[]): readonly ActionTurn[] {
  const turns = [first];
  for (const each of inputs) {
    const state = turns.at(-1)?.state;
    if (state === undefined) throw new Error("it was over before");
    turns.push(stepAction(state, typeof each === "string" ? readTyped(each) : each));
  }
  return turns;
}
const answer = (json: unknown): Input => ({ kind: "answer", answer: { ok: true, json } });
const failed = answer({
  operations: [
    { id: "x", kind: "reboot", phase: "succeeded" },
    { id: "abc", kind: "bootstrap", phase: "failed", failureReason: "could not create\n  hint: no" },
  ],
});

describe("power", () => {
  test("the name of the node is typed before it restarts or is switched off", () => {
    for (const [key, path] of [
      ["r", "/v1/lifecycle/reboot"],
      ["S", "/v1/lifecycle/shutdown"],
    ] as const) {
      const turns = script(beginPower("n1"), [key, "n1"]);
      expect(turns[1]?.lines).toContain("type: n1");
      expect(turns[1]?.request).toBeUndefined();
      expect(turns[2]?.request).toEqual({ method: "POST", path });
      const wrong = script(beginPower("n1"), [key, "N1"]).at(-1);
      expect([wrong?.state, wrong?.request, wrong?.lines]).toEqual([
        undefined,
        undefined,
        ["that is not n1", "nothing was changed"],
      ]);
    }
  });

  test("other keys ask again, q and Escape go back", () => {
    expect(script(beginPower("n1"), ["x"]).at(-1)?.state).toEqual({ at: "power", name: "n1" });
    for (const key of ["q", "\u001b"])
      expect(script(beginPower("n1"), [key]).at(-1)?.lines).toEqual(["nothing was changed"]);
  });
});

describe("retry", () => {
  test("the newest failed bootstrap goes on, after its reason was shown and the name typed", () => {
    const turns = script(beginRetry("n1"), [failed, "r", "n1", answer({ retried: "abc" })]);
    expect(turns[1]?.lines[0]).toBe("bootstrap abc failed: could not create");
    expect(turns[3]?.request).toEqual({ method: "POST", path: "/v1/operations/abc/retry" });
    expect(turns[4]?.state).toBeUndefined();
  });

  test("what this node made is given up by wipe-own and the name, never by the name alone", () => {
    expect(script(beginRetry("n1"), [failed, "w", "wipe-own n1"]).at(-1)?.request?.path).toBe(
      "/v1/operations/abc/retry?wipeOwn=true",
    );
    expect(script(beginRetry("n1"), [failed, "w", "n1"]).at(-1)?.request).toBeUndefined();
  });

  test("nothing has failed: nothing is asked", () => {
    const none = answer({ operations: [{ id: "a", kind: "bootstrap", phase: "succeeded" }] });
    expect(script(beginRetry("n1"), [none]).at(-1)?.state).toBeUndefined();
    expect(script(beginRetry("n1"), [answer({ operations: [] })]).at(-1)?.lines[1]).toBe("nothing was changed");
  });
});
