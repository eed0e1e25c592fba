import { readManifest } from "../manifest.ts";
import { decodeSays } from "../messages/decode.ts";
import { ruleSays } from "../messages/rules.ts";
import type { Path } from "../path.ts";
import { entries, uniqueNames, type RuleContext } from "./rule.ts";

export function checkManifests(context: RuleContext): void {
  const stacks = context.draft.manifests ?? [];
  if (context.draft.role === "worker" && stacks.length > 0) {
    context.report(["manifests"], ruleSays.notOnWorker("manifests"));
  }
  uniqueNames(context, ["manifests"], stacks, "stacks");
  for (const [index, { files }] of entries(stacks)) {
    const path = ["manifests", index, "files"];
    if (files?.length === 0) context.report(path, ruleSays.noFiles());
    uniqueNames(context, path, files, "files");
    for (const [at, { content }] of entries(files)) {
      if (content !== undefined) checkContent(context, [...path, at, "content"], content);
    }
  }
}

/** Each YAML document parses and is an object that Kubernetes could know. Empty ones among others are fine. */
function checkContent(context: RuleContext, path: Path, content: string): void {
  const manifest = readManifest(content);
  if (manifest.kind === "broken") return context.report(path, ruleSays.manifestBroken(manifest.line));
  if (manifest.kind === "too-deep") return context.report(path, decodeSays.tooDeep("value"));
  for (const [index, object] of manifest.objects.entries()) {
    const missing = (["apiVersion", "kind"] as const).find((field) => object !== null && !hasText(object, field));
    if (missing !== undefined) return context.report(path, ruleSays.manifestNoObject(index + 1, missing));
  }
  if (manifest.objects.every((object) => object === null)) context.report(path, ruleSays.manifestEmpty());
}

function hasText(object: unknown, field: string): boolean {
  if (typeof object !== "object" || object === null || !Object.hasOwn(object, field)) return false;
  const value = (object as Record<string, unknown>)[field];
  return typeof value === "string" && value.trim() !== "";
}
