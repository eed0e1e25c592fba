import { describe, expect, test } from "bun:test";
import type { ApplyAnswer, PreviousAnswer } from "../api/contract.ts";
import type { Input } from "./dialogue.ts";
import type { PreviousTurn } from "./previous-dialogue.ts";
import { beginPrevious, stepPrevious } from "./previous-dialogue.ts";
import type { ApiRequest } from "./request.ts";
import { readTyped } from "./typed.ts";

const previous: PreviousAnswer = {
  document: "role: single\n",
  sha256: "ab",
  at: "2026-01-02T03:04:05.000Z",
  by: "operator ann",
};
const plan: ApplyAnswer = {
  status: "planned",
  fields: [
    { path: "addons[metallb]", class: "safe", old: { name: "metallb" } },
    { path: "upgrades", class: "host", old: 1, new: 2 },
    { path: "manifests[site]", class: "safe", new: {} },
  ],
  restarted: ["k0scontroller"],
  files: [],
  consequences: ["pods keep running while k0s restarts"],
  warnings: [],
  etag: '"7-ab"',
};
const answer = (json: unknown): Input => ({ kind: "answer", answer: { ok: true, json } });

function script(inputs: readonly (string | Input)[]) {
  const requests: ApiRequest[] = [];
  let turn: PreviousTurn = beginPrevious("n1");
  for (const each of inputs) {
    if (turn.state === undefined) throw new Error("it was over before");
    turn = stepPrevious(turn.state, typeof each === "string" ? readTyped(each) : each);
    if (turn.request !== undefined) requests.push(turn.request);
  }
  return { turn, applied: requests.filter(({ path }) => path === "/v1/config") };
}

describe("the previous document", () => {
  test("is planned and shown before the name is asked for", () => {
    expect(script([answer(previous), answer(plan)]).turn.lines).toEqual([
      "the document of 2026-01-02T03:04:05.000Z, given by operator ann",
      "  - addons[metallb] (safe)",
      "  ~ upgrades (host)",
      "  + manifests[site] (safe)",
      "  restarts k0scontroller",
      "  pods keep running while k0s restarts",
      "type: n1",
      "(or q to go back)",
    ]);
  });

  test("goes through the gate like any, only while nobody applied in between", () => {
    expect(script([answer(previous), answer(plan), "n1"]).applied).toEqual([
      { method: "POST", path: "/v1/config", body: { document: previous.document }, isLong: true, ifMatch: '"7-ab"' },
    ]);
    for (const typed of ["N1", "q", "\u001b", "", { kind: "timeout" } as const]) {
      expect([typed, script([answer(previous), answer(plan), typed]).applied]).toEqual([typed, []]);
    }
  });

  test("a refusal of the gate, no such document, one that changes nothing: told, and over", () => {
    const refusal: Input = { kind: "answer", answer: { ok: false, lines: ["refused: immutable"] } };
    for (const before of [[], [answer(previous)], [answer(previous), answer(plan), "n1"]]) {
      const { turn } = script([...before, refusal]);
      expect([turn.state, turn.lines]).toEqual([undefined, ["refused: immutable", "nothing was changed"]]);
    }
    const same = script([answer(previous), answer({ ...plan, status: "unchanged" })]).turn;
    expect([same.state, same.lines[1]]).toEqual([undefined, "it says what this node runs already"]);
  });

  test("an apply whose answer was lost, or whose chart failed, was said to have changed nothing", () => {
    const lost: Input = { kind: "answer", answer: { ok: false, lines: ["the API does not answer"], isBegun: true } };
    const sent = script([answer(previous), answer(plan), "n1", lost]).turn;
    expect([sent.state, sent.lines]).toEqual([
      undefined,
      ["the API does not answer", "what came of it: c shows whether the node is what its document says"],
    ]);
    // Before it was sent nothing can have been changed.
    expect(script([answer(previous), lost]).turn.lines.at(-1)).toBe("nothing was changed");
  });

  test("a long plan still fits a screen, and says that there is more", () => {
    const fields = Array.from({ length: 40 }, (_, at) => ({ path: `addons[a${at}]`, class: "safe" as const, new: 1 }));
    const { lines } = script([answer(previous), answer({ ...plan, fields })]).turn;
    expect(lines.length).toBeLessThan(23);
    expect(lines.slice(-3)).toEqual(["  and 26 lines more", "type: n1", "(or q to go back)"]);
  });

  test("an apply that takes its time is not waited for", () => {
    expect(script([answer(previous), answer(plan), "n1", answer({})]).turn.lines).toEqual([
      "it goes on; its steps are shown here",
    ]);
    const done = script([answer(previous), answer(plan), "n1", answer({ ...plan, status: "reconciled" })]).turn;
    expect(done.lines).toEqual(["done: reconciled"]);
  });
});
