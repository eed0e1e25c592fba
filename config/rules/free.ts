import { decodeSays } from "../messages/decode.ts";
import { valueSays } from "../messages/values.ts";
import type { Path } from "../path.ts";
import type { RuleContext } from "./rule.ts";

/**
 * Maps that are passed on as they are. JavaScript, as JSON in Helm and Kubernetes, has no whole numbers beyond 2^53:
 * the last digits would become others. A merge key would arrive as a key of that name, and what it brings would be lost.
 */
export function checkFree(context: RuleContext, path: Path, value: unknown): void {
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    context.report(path, valueSays.inexact());
  }
  if (typeof value === "number" && !Number.isFinite(value)) context.report(path, valueSays.notFinite());
  if (typeof value !== "object" || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    const at = [...path, Array.isArray(value) ? Number(key) : key];
    if (key === "<<") context.report(at, decodeSays.unknownKey(key, undefined, [], undefined));
    else checkFree(context, at, item);
  }
}
