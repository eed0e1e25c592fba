import { LineCounter, parseAllDocuments } from "yaml";
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
  const lineCounter = new LineCounter();
  const parsed = parseAllDocuments(content, { prettyErrors: false, lineCounter, logLevel: "silent" });
  const documents = Array.isArray(parsed) ? parsed : [];
  const broken = documents.flatMap(({ errors }) => errors)[0];
  if (broken !== undefined) {
    context.report(path, ruleSays.manifestBroken(Math.max(1, lineCounter.linePos(broken.pos[0]).line)));
    return;
  }
  let objects = 0;
  for (const [index, document] of documents.entries()) {
    let object: unknown;
    try {
      object = document.toJS({ maxAliasCount: 1000 });
    } catch {
      context.report(path, ruleSays.manifestBroken(1));
      return;
    }
    if (object === null || object === undefined) continue;
    objects++;
    const missing = (["apiVersion", "kind"] as const).find((field) => !hasText(object, field));
    if (missing !== undefined) {
      context.report(path, ruleSays.manifestNoObject(index + 1, missing));
      return;
    }
  }
  if (objects === 0) context.report(path, ruleSays.manifestEmpty());
}

function hasText(object: unknown, field: string): boolean {
  if (typeof object !== "object" || object === null || !Object.hasOwn(object, field)) return false;
  const value = (object as Record<string, unknown>)[field];
  return typeof value === "string" && value.trim() !== "";
}
