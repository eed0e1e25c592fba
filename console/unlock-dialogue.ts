/** `u`: an encrypted volume that stayed locked is opened with a key that is typed and not shown. Pure. */
import type { NodeAnswer, UnlockAnswer } from "../api/contract.ts";
import type { Input, Turn } from "./dialogue.ts";
import { isCancel, NOTHING_CHANGED, over, shown } from "./dialogue.ts";
import type { ApiRequest } from "./request.ts";

export type UnlockState =
  | { readonly at: "looking" }
  | { readonly at: "choosing"; readonly names: readonly string[] }
  | { readonly at: "typing"; readonly name: string }
  | { readonly at: "sent"; readonly name: string };

export type UnlockTurn = Turn<UnlockState, ApiRequest>;

export const beginUnlock = (): UnlockTurn => ({
  state: { at: "looking" },
  lines: ["looking for locked volumes"],
  request: { method: "GET", path: "/v1/node" },
});

export function stepUnlock(state: UnlockState, input: Input): UnlockTurn {
  if (input.kind === "answer") return answered(state, input);
  if (isCancel(input)) return over(NOTHING_CHANGED);
  switch (state.at) {
    case "looking":
    case "sent":
      return { state, lines: [] };
    case "choosing": {
      const name = input.kind === "text" ? state.names.find((each) => each === input.text) : undefined;
      return name === undefined ? choose(state.names) : askKey(name);
    }
    case "typing": {
      const { name } = state;
      if (input.kind !== "text") return askKey(name);
      return {
        state: { at: "sent", name },
        lines: ["opening it"],
        request: { method: "POST", path: `/v1/luks/${encodeURIComponent(name)}/unlock`, body: { key: input.text } },
      };
    }
  }
}

function answered(state: UnlockState, { answer }: Input & { readonly kind: "answer" }): UnlockTurn {
  if (!answer.ok) return over(...answer.lines, NOTHING_CHANGED);
  if (state.at === "sent") {
    const { boundAnew, problems } = answer.json as UnlockAnswer;
    return over(
      `volume ${state.name} is open`,
      ...(boundAnew ? ["the TPM opens it again from the next boot on"] : []),
      ...problems.map((text) => `but: ${text}`),
    );
  }
  if (state.at !== "looking") return { state, lines: [] };
  const { storage } = answer.json as NodeAnswer;
  const names = (storage.volumes ?? []).filter((volume) => volume.state === "locked").map(({ name }) => name);
  const [only, ...more] = names;
  if (only === undefined) return over("no volume is locked", NOTHING_CHANGED);
  return more.length === 0 ? askKey(only) : choose(names);
}

const choose = (names: readonly string[]): UnlockTurn => ({
  state: { at: "choosing", names },
  lines: shown(["locked:", ...names.map((name) => `  ${name}`), "type the name of one, or q to go back:"]),
});

export const keyQuestion = (name: string): readonly string[] =>
  shown([`passphrase or recovery key of volume ${name}, which is not shown (or q to go back):`]);

const askKey = (name: string): UnlockTurn => ({
  state: { at: "typing", name },
  lines: keyQuestion(name),
  isHidden: true,
});
