import { LineCounter, parseAllDocuments } from "yaml";
import { decodeSays } from "../messages/decode.ts";
import { ruleSays } from "../messages/rules.ts";
import { valueSays } from "../messages/values.ts";
import type { Path } from "../path.ts";
import { entries, uniqueNames, type RuleContext } from "./rule.ts";

export function checkAddons(context: RuleContext): void {
  const addons = context.draft.addons ?? [];
  if (context.draft.role === "worker" && addons.length > 0) {
    context.report(["addons"], ruleSays.notOnWorker("addons"));
  }
  uniqueNames(context, ["addons"], addons, "add-ons");
  const urls = new Map<string, string | undefined>();
  let isComplete = true;
  for (const [index, { repository }] of entries(addons)) {
    if (!context.isSound(["addons", index, "repository"])) isComplete = false;
    if (repository?.name === undefined) continue;
    const { name, url } = repository;
    const known = urls.get(name);
    if (known !== undefined && url !== undefined && known !== url) {
      context.report(["addons", index, "repository", "url"], ruleSays.repositoryTwice(name));
    }
    if (known === undefined) urls.set(name, url);
  }
  for (const [index, { chart, values }] of entries(addons)) {
    const repository = chart?.startsWith("oci://") === false ? chart.split("/")[0] : undefined;
    if (repository !== undefined && !urls.has(repository) && isComplete) {
      context.report(["addons", index, "chart"], ruleSays.undeclaredRepository(repository));
    }
    checkValues(context, ["addons", index, "values"], values, 0);
    checkFree(context, ["addons", index, "values"], values);
  }
}

export function checkPatch(context: RuleContext): void {
  checkFree(context, ["k0s", "patch"], context.draft.k0s?.patch);
}

/**
 * Maps that are passed on as they are. JavaScript, as JSON in Helm and Kubernetes, has no whole numbers beyond 2^53:
 * the last digits would become others. A merge key would arrive as a key of that name, and what it brings would be lost.
 */
function checkFree(context: RuleContext, path: Path, value: unknown): void {
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    context.report(path, valueSays.inexact());
  }
  if (typeof value !== "object" || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    const at = [...path, Array.isArray(value) ? Number(key) : key];
    if (key === "<<") context.report(at, decodeSays.unknownKey(key, undefined, [], undefined));
    else checkFree(context, at, item);
  }
}

/** Maps whose values Kubernetes wants as text. */
const TEXT_MAPS = /(?:annotations|labels|selector|env|args|data)$/i;

/** `enabled: "false"` is true to a chart's `if`: said, since it is hardly ever meant. */
function checkValues(context: RuleContext, path: Path, value: unknown, depth: number): void {
  if (depth > 30) return;
  if (value === "true" || value === "false") context.report(path, valueSays.quotedBoolean(value));
  if (typeof value !== "object" || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    if (TEXT_MAPS.test(key) || key.includes("/")) continue;
    checkValues(context, [...path, Array.isArray(value) ? Number(key) : key], item, depth + 1);
  }
}

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
