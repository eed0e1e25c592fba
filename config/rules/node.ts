import { valueSays } from "../messages/values.ts";
import { ruleSays } from "../messages/rules.ts";
import { isForbiddenNodeLabel, isQualifiedName } from "../names.ts";
import { entries, type RuleContext } from "./rule.ts";

export function checkNode(context: RuleContext): void {
  for (const [key, value] of Object.entries(context.draft.node?.labels ?? {})) {
    const path = ["node", "labels", key];
    if (!isQualifiedName(key)) context.report(path, valueSays.labelKey(key));
    else if (isForbiddenNodeLabel(key)) context.report(path, valueSays.kubeletLabel(key));
    // Unquoted, cloud-init's YAML 1.1 would read another value than we do.
    if (value !== undefined && /^(?:y|n|yes|no|on|off)$/i.test(value)) context.report(path, valueSays.ambiguous(value));
  }
  const seen = new Set<string>();
  for (const [index, { key, effect }] of entries(context.draft.node?.taints)) {
    if (key === undefined || effect === undefined) continue;
    const id = `${key}:${effect}`;
    if (seen.has(id)) context.report(["node", "taints", index], ruleSays.duplicateTaint(key, effect));
    seen.add(id);
  }
}
