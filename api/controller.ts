/** What only a controller in service can answer. */
import type { Document } from "../config/document.ts";
import { ANY_TIME } from "../config/load.ts";
import { err, ok, type Result } from "../kit/result.ts";
import type { Baseline } from "../state/model.ts";
import { problem } from "./problem.ts";
import type { ApiServices } from "./services.ts";

export interface OnController {
  readonly document: Document;
  readonly baseline: Baseline;
}

/** The refusal says why not, and whom to ask instead. */
export function onController({ state, config }: ApiServices): Result<OnController, Response> {
  const baseline = state.baseline.get();
  const document = baseline === undefined ? undefined : config.parse(baseline.document.text, ANY_TIME).document;
  if (baseline === undefined || document?.role === undefined) {
    return err(problem(409, "this node is in no cluster yet", { reason: "not-in-service" }));
  }
  if (document.role === "worker") {
    return err(
      problem(409, "this node is a worker; only a controller of its cluster can do that: ask one of them", {
        reason: "not-a-controller",
      }),
    );
  }
  return ok({ document, baseline });
}
