import { describe, expect, test } from "bun:test";
import type { Answer, Input, Turn } from "./dialogue.ts";
import { converse, type Terminal } from "./converse.ts";

type State = "asked" | "sent";
const step = (state: State, input: Input): Turn<State, string> => {
  if (input.kind === "timeout") return { lines: ["too late"] };
  if (state === "sent") return { lines: [input.kind === "answer" && input.answer.ok ? "done" : "failed"] };
  const text = input.kind === "text" ? input.text : "";
  return text === "yes" ? { state: "sent", lines: ["sending"], request: "do it" } : { state, lines: ["again:"] };
};

function terminal(isScreen: boolean, typed: (string | undefined)[]) {
  let written = "";
  let forgotten = 0;
  const port: Terminal = {
    isScreen,
    write: async (text) => void (written += text),
    nextLine: async () => typed.shift(),
    forget: () => void forgotten++,
    setEcho: async () => true,
  };
  return { port, written: () => written, forgotten: () => forgotten };
}
const perform = async (): Promise<Answer> => ({ ok: true, json: {} });

describe("a dialogue on a terminal", () => {
  test("B119: questions work on a serial line: plain lines, no cursor control", async () => {
    const { port, written } = terminal(false, ["no", "yes"]);
    await converse(port, { state: "asked", lines: ["sure?"] } as Turn<State, string>, { step, perform });
    expect(written()).toBe("\r\nsure?\r\n\r\nagain:\r\n\r\nsending\r\n\r\ndone\r\n");
  });

  test("a screen is painted, and its last words stay until Enter", async () => {
    const { port, written } = terminal(true, ["yes", ""]);
    await converse(port, { state: "asked", lines: ["sure?"] } as Turn<State, string>, { step, perform });
    expect(written()).toEndWith("\x1b[2J\x1b[Hdone\r\n\r\nEnter goes back");
  });

  test("what was typed or pasted before the question stood there answers nothing", async () => {
    const { port, forgotten } = terminal(false, ["yes"]);
    await converse(port, { state: "asked", lines: ["sure?"] } as Turn<State, string>, { step, perform });
    expect(forgotten()).toBe(2);
  });

  test("nobody types: it ends", async () => {
    const { port, written } = terminal(false, [undefined]);
    await converse(port, { state: "asked", lines: ["sure?"] } as Turn<State, string>, { step, perform });
    expect(written()).toContain("too late");
  });
});
