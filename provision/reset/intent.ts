import { z } from "zod";
import type { AppError } from "../../kit/app-error.ts";
import { fail } from "../../kit/app-error.ts";
import type { Result } from "../../kit/result.ts";
import { ok } from "../../kit/result.ts";
import type { ResetIntent } from "./model.ts";

/** Keys of a later program are no reason to leave a node half erased. */
const schema = z.looseObject({
  version: z.literal(1),
  isWipingDisks: z.boolean(),
  mayDestroyCluster: z.boolean(),
  requestedAtMs: z.number(),
  requestedBy: z.string(),
  operation: z.string().optional(),
  isCordoning: z.literal(true).optional(),
  isLeaving: z.literal(true).optional(),
  restarts: z.number(),
});

export const renderIntent = (intent: ResetIntent): string => `${JSON.stringify(intent, null, 2)}\n`;

export function parseIntent(text: string, path: string): Result<ResetIntent, AppError> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success)
    return fail("reset-intent", `${path} can't be read, so that nobody knows what is to be erased`, {
      hint: "ask for the reset again: over the API, or at the rescue menu",
    });
  const { version, isWipingDisks, mayDestroyCluster, requestedAtMs, requestedBy, restarts } = parsed.data;
  const { operation, isCordoning, isLeaving } = parsed.data;
  return ok({
    version,
    isWipingDisks,
    mayDestroyCluster,
    requestedAtMs,
    requestedBy,
    restarts,
    ...(operation === undefined ? {} : { operation }),
    ...(isCordoning === undefined ? {} : { isCordoning }),
    ...(isLeaving === undefined ? {} : { isLeaving }),
  });
}
