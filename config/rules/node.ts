import { valueSays } from "../messages/values.ts";
import { ruleSays } from "../messages/rules.ts";
import { isForbiddenNodeLabel, isQualifiedName } from "../names.ts";
import { entries, type RuleContext } from "./rule.ts";

/** Text to us; to YAML 1.1, and so to cloud-init, a boolean, a date or a number. */
const AMBIGUOUS = /^(?:y|n|yes|no|on|off|\d{4}-\d\d?-\d\d?|\d[\d_]*_[\d_]*|0b[01_]+|0o?[0-7]+)$/i;

export function checkLabels(context: RuleContext): void {
  for (const [key, value] of Object.entries(context.draft.node?.labels ?? {})) {
    const path = ["node", "labels", key];
    if (!isQualifiedName(key)) context.report(path, valueSays.labelKey(key));
    else if (isForbiddenNodeLabel(key)) context.report(path, valueSays.kubeletLabel(key));
    if (value !== undefined && AMBIGUOUS.test(value) && context.isPlain(path)) {
      context.report(path, valueSays.ambiguous(value));
    }
  }
}

export function checkTaints(context: RuleContext): void {
  const seen = new Set<string>();
  for (const [index, { key, value, effect }] of entries(context.draft.node?.taints)) {
    const path = ["node", "taints", index, "value"];
    if (value !== undefined && AMBIGUOUS.test(value) && context.isPlain(path)) {
      context.report(path, valueSays.ambiguous(value));
    }
    if (key === undefined || effect === undefined) continue;
    const id = `${key}:${effect}`;
    if (seen.has(id)) context.report(["node", "taints", index], ruleSays.duplicateTaint(key, effect));
    seen.add(id);
  }
}
