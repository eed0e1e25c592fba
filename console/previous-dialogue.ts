/** `r` on a node in service: the document before this one, its plan shown first, through the same gate as any. Pure. */
import type { ApplyAnswer, PreviousAnswer } from "../api/contract.ts";
import type { Input, Turn } from "./dialogue.ts";
import { ask, isCancel, isTyped, NOTHING_CHANGED, over, shown } from "./dialogue.ts";
import type { ApiRequest } from "./request.ts";

export type PreviousState = { readonly name: string } & (
  | { readonly at: "looking" }
  | { readonly at: "planning"; readonly previous: PreviousAnswer }
  | { readonly at: "confirm"; readonly previous: PreviousAnswer; readonly etag?: string }
  | { readonly at: "sent" }
);

export type PreviousTurn = Turn<PreviousState, ApiRequest>;

const BEGUN = "what came of it: c shows whether the node is what its document says";

/** With head and foot a screen. */
const MOST_LINES = 16;

export const beginPrevious = (name: string): PreviousTurn => ({
  state: { at: "looking", name },
  lines: ["looking for the document before this one"],
  request: { method: "GET", path: "/v1/config/previous" },
});

export function stepPrevious(state: PreviousState, input: Input): PreviousTurn {
  if (input.kind === "answer") return answered(state, input);
  if (isCancel(input)) return over(NOTHING_CHANGED);
  if (state.at !== "confirm") return { state, lines: [] };
  const { name, previous, etag } = state;
  if (!isTyped(input, name)) return over(`that is not ${name}`, NOTHING_CHANGED);
  return {
    state: { at: "sent", name },
    lines: ["asking the node"],
    request: {
      method: "POST",
      path: "/v1/config",
      body: { document: previous.document },
      isLong: true,
      // Nobody may have applied since the plan was shown.
      ...(etag === undefined ? {} : { ifMatch: etag }),
    },
  };
}

function answered(state: PreviousState, { answer }: Input & { readonly kind: "answer" }): PreviousTurn {
  if (!answer.ok)
    return over(...answer.lines, state.at === "sent" && answer.isBegun === true ? BEGUN : NOTHING_CHANGED);
  const { name } = state;
  switch (state.at) {
    case "looking": {
      const previous = answer.json as PreviousAnswer;
      return {
        state: { at: "planning", name, previous },
        lines: ["planning"],
        request: { method: "POST", path: "/v1/config?dryRun=true", body: { document: previous.document } },
      };
    }
    case "planning":
      return confirm(name, state.previous, answer.json as ApplyAnswer);
    case "confirm":
      return { state, lines: [] };
    case "sent": {
      const { status } = answer.json as Partial<ApplyAnswer>;
      return over(status === undefined ? "it goes on; its steps are shown here" : `done: ${status}`);
    }
  }
}

function confirm(name: string, previous: PreviousAnswer, plan: ApplyAnswer): PreviousTurn {
  const head = `the document of ${previous.at}, given by ${previous.by}`;
  if (plan.status === "unchanged") return over(head, "it says what this node runs already", NOTHING_CHANGED);
  const changes = shown([
    ...plan.fields.map(({ path, class: kind, old, new: wanted }) =>
      old === undefined
        ? `  + ${path} (${kind})`
        : wanted === undefined
          ? `  - ${path} (${kind})`
          : `  ~ ${path} (${kind})`,
    ),
    plan.restarted.length === 0 ? "  restarts nothing" : `  restarts ${plan.restarted.join(", ")}`,
    ...plan.consequences.map((line) => `  ${line}`),
  ]);
  const rest = changes.length - MOST_LINES;
  const { etag } = plan;
  return {
    state: { at: "confirm", name, previous, ...(etag === undefined ? {} : { etag }) },
    lines: [
      ...shown([head]),
      ...(rest > 0 ? [...changes.slice(0, MOST_LINES), `  and ${rest} lines more`] : changes),
      ...shown([ask(name), "(or q to go back)"]),
    ],
  };
}
