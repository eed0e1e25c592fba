import { describe, expect, test } from "bun:test";
import type { Answer, Input } from "./dialogue.ts";
import { converse, type Terminal } from "./converse.ts";
import { readTyped } from "./typed.ts";
import type { UnlockTurn } from "./unlock-dialogue.ts";
import { beginUnlock, stepUnlock } from "./unlock-dialogue.ts";

function script(inputs: readonly (string | Input)[]): UnlockTurn {
  let turn: UnlockTurn = beginUnlock();
  for (const each of inputs) {
    if (turn.state === undefined) throw new Error("it was over before");
    turn = stepUnlock(turn.state, typeof each === "string" ? readTyped(each) : each);
  }
  return turn;
}
const answer = (json: unknown): Input => ({ kind: "answer", answer: { ok: true, json } });
const node = (states: Readonly<Record<string, string>>): Input =>
  answer({ storage: { volumes: Object.entries(states).map(([name, state]) => ({ name, state })) } });

describe("unlock", () => {
  test("the only locked one is asked for at once, and what is typed is not shown", () => {
    const asked = script([node({ vault: "locked", attic: "open" })]);
    expect(asked.isHidden).toBe(true);
    expect(asked.lines.join(" ")).toContain("volume vault");
    expect(script([node({ vault: "locked" }), " secret words "]).request).toEqual({
      method: "POST",
      path: "/v1/luks/vault/unlock",
      body: { key: "secret words" },
    });
  });

  test("of several one is chosen by its name", () => {
    const both = node({ vault: "locked", attic: "locked" });
    expect(script([both]).isHidden).toBeUndefined();
    expect(script([both, "cellar"]).state).toEqual({ at: "choosing", names: ["vault", "attic"] });
    expect(script([both, "attic"]).state).toEqual({ at: "typing", name: "attic" });
  });

  test("none locked, or second thoughts: nothing is asked of the node", () => {
    for (const inputs of [[node({ vault: "open" })], [node({ vault: "locked" }), "q"], [answer({ storage: {} })]]) {
      const last = script(inputs);
      expect([last.state, last.request, last.lines.at(-1)]).toEqual([undefined, undefined, "nothing was changed"]);
    }
  });

  test("how it ended", () => {
    const sent = [node({ vault: "locked" }), "words"];
    expect(script([...sent, answer({ boundAnew: true, problems: ["k0s did not start"] })]).lines).toEqual([
      "volume vault is open",
      "the TPM opens it again from the next boot on",
      "but: k0s did not start",
    ]);
    const refused: Input = { kind: "answer", answer: { ok: false, lines: ["refused: the key does not open it"] } };
    expect(script([...sent, refused]).lines).toEqual(["refused: the key does not open it", "nothing was changed"]);
  });
});

describe("on a terminal", () => {
  async function talk(canHide: boolean): Promise<{ readonly echo: readonly boolean[]; readonly asked: unknown[] }> {
    const echo: boolean[] = [];
    const asked: unknown[] = [];
    const terminal: Terminal = {
      isScreen: false,
      write: async () => undefined,
      nextLine: async () => "words",
      forget: () => undefined,
      setEcho: async (isOn) => {
        echo.push(isOn);
        return canHide;
      },
    };
    const perform = async (request: { readonly path: string; readonly body?: unknown }): Promise<Answer> => {
      asked.push(request.body ?? request.path);
      const json = request.body === undefined ? { storage: { volumes: [{ name: "v", state: "locked" }] } } : {};
      return { ok: true, json: { boundAnew: false, problems: [], ...json } };
    };
    await converse(terminal, beginUnlock(), { step: stepUnlock, perform });
    return { echo, asked };
  }

  test("the echo is off for that one line only", async () => {
    expect(await talk(true)).toEqual({ echo: [false, true], asked: ["/v1/node", { key: "words" }] });
  });

  test("a terminal that would show it is not asked: whoever logs the line would have the key", async () => {
    expect(await talk(false)).toEqual({ echo: [false, true], asked: ["/v1/node"] });
  });
});
