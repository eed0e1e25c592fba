import { ruleSays } from "../messages/rules.ts";
import { valueSays } from "../messages/values.ts";
import type { Path } from "../path.ts";
import { checkFree } from "./free.ts";
import { entries, uniqueNames, type RuleContext } from "./rule.ts";

export function checkAddons(context: RuleContext): void {
  const { addons = [], role } = context.draft;
  if (role === "worker" && addons.length > 0) context.report(["addons"], ruleSays.notOnWorker("addons"));
  uniqueNames(context, ["addons"], addons, "add-ons");
  for (const [index, { values }] of entries(addons)) {
    checkValues(context, ["addons", index, "values"], values, 0);
    checkFree(context, ["addons", index, "values"], values);
  }
}

/** One add-on declares a repository for all; its name stands for one address only. */
export function checkRepositories(context: RuleContext): void {
  const { addons } = context.draft;
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
  for (const [index, { chart }] of entries(addons)) {
    const repository = chart?.startsWith("oci://") === false ? chart.split("/")[0] : undefined;
    if (repository !== undefined && !urls.has(repository) && isComplete) {
      context.report(["addons", index, "chart"], ruleSays.undeclaredRepository(repository));
    }
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
