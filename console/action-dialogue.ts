/** `t` and `p`: a failed installation or bootstrap goes on, the machine restarts or is switched off. Pure. */
import type { OperationsAnswer } from "../api/contract.ts";
import type { Input, Turn } from "./dialogue.ts";
import { ask, isCancel, isTyped, NOTHING_CHANGED, over, shown } from "./dialogue.ts";
import type { ApiRequest } from "./request.ts";

export type ActionState = { readonly name: string } & (
  | { readonly at: "looking" }
  | { readonly at: "power" }
  | { readonly at: "retry"; readonly id: string }
  | { readonly at: "confirm"; readonly words: string; readonly path: string; readonly done: string }
  | { readonly at: "sent"; readonly done: string }
);

export type ActionTurn = Turn<ActionState, ApiRequest>;

export const beginPower = (name: string): ActionTurn => ({
  state: { at: "power", name },
  lines: ["power:", "  r  restart the machine", "  s  switch it off", "r, s, or q to go back:"],
});

export const beginRetry = (name: string): ActionTurn => ({
  state: { at: "looking", name },
  lines: ["looking at the operations"],
  request: { method: "GET", path: "/v1/operations" },
});

export function stepAction(state: ActionState, input: Input): ActionTurn {
  if (input.kind === "answer") return answered(state, input);
  if (isCancel(input)) return over(NOTHING_CHANGED);
  const text = input.kind === "text" ? input.text.toLowerCase() : "";
  const { name } = state;
  switch (state.at) {
    case "looking":
    case "sent":
      return { state, lines: [] };
    case "power":
      if (text === "r") {
        return confirm(name, name, "restart the machine", "/v1/lifecycle/reboot", "the machine restarts");
      }
      if (text === "s") {
        return confirm(name, name, "switch the machine off", "/v1/lifecycle/shutdown", "the machine is switched off");
      }
      return beginPower(name);
    case "retry": {
      const path = `/v1/operations/${encodeURIComponent(state.id)}/retry`;
      const done = "it goes on; its steps are shown here";
      if (text === "r") return confirm(name, name, "go on where it failed", path, done);
      if (text === "w") {
        const what = "go on, and lose what this node made before wherever its document says wipe: true";
        return confirm(name, `wipe-own ${name}`, what, `${path}?wipeOwn=true`, done);
      }
      return askRetry(name, state.id, []);
    }
    case "confirm":
      if (!isTyped(input, state.words)) return over(`that is not ${state.words}`, NOTHING_CHANGED);
      return {
        state: { at: "sent", name, done: state.done },
        lines: ["asking the node"],
        request: { method: "POST", path: state.path },
      };
  }
}

function answered(state: ActionState, { answer }: Input & { readonly kind: "answer" }): ActionTurn {
  if (!answer.ok) return over(...answer.lines, NOTHING_CHANGED);
  if (state.at === "sent") return over(state.done);
  if (state.at !== "looking") return { state, lines: [] };
  const { operations } = answer.json as OperationsAnswer;
  const newest = operations.find(({ kind }) => kind === "bootstrap" || kind === "install");
  if (newest?.phase !== "failed") return over("no installation and no bootstrap has failed", NOTHING_CHANGED);
  return askRetry(state.name, newest.id, [`${newest.kind} ${newest.id} failed: ${firstLine(newest.failureReason)}`]);
}

const firstLine = (text = "no reason is recorded"): string => text.split("\n")[0] ?? "";

const askRetry = (name: string, id: string, lines: readonly string[]): ActionTurn => ({
  state: { at: "retry", name, id },
  lines: shown([
    ...lines,
    "  r  go on where it failed",
    "  w  the same, and what this node made before may be lost where its document says wipe",
    "r, w, or q to go back:",
  ]),
});

const confirm = (name: string, words: string, what: string, path: string, done: string): ActionTurn => ({
  state: { at: "confirm", name, words, path, done },
  lines: shown([`this will ${what}`, ask(words), "(or q to go back)"]),
});
