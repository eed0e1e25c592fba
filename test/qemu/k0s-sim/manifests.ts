/** The manifest deployer: folders below manifests/ are stacks, by the documented rules. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { isRecord } from "./schema.ts";
import { resourceOf, type KubeObject } from "./resources.ts";
import { log } from "./stand-in.ts";
import type { Store } from "./store.ts";

export const STACK_LABEL = "k0s.k0sproject.io/stack";

/** k0s writes an ignored.txt there and applies nothing. */
const RESERVED = new Set(["helm", "api-config", "autopilot", "etcd-member", "bootstraprbac", "windows"]);

export interface StackContent {
  readonly objects: readonly KubeObject[];
  /** A file that is not YAML fails its stack as a whole. */
  readonly problem?: string;
}

export function readStack(files: readonly { readonly name: string; readonly text: string }[]): StackContent {
  const objects: KubeObject[] = [];
  for (const file of files) {
    for (const document of parseAllDocuments(file.text)) {
      const error = document.errors[0];
      if (error !== undefined) return { objects: [], problem: `${file.name}: ${error.message.split("\n")[0] ?? ""}` };
      const value: unknown = document.toJS();
      if (value === null || value === undefined) continue;
      if (!isRecord(value) || typeof value["kind"] !== "string" || typeof value["apiVersion"] !== "string")
        return { objects: [], problem: `${file.name}: Object 'Kind' is missing` };
      if (value["kind"] === "List" && Array.isArray(value["items"])) objects.push(...(value["items"] as KubeObject[]));
      else objects.push(value as KubeObject);
    }
  }
  return { objects };
}

/** Applies cluster-scoped objects first; prunes what the stack no longer has, unless an object failed. */
export function applyStack(store: Store, stack: string, wanted: readonly KubeObject[]): readonly string[] {
  const failures: string[] = [];
  const applied = new Set<string>();
  const scope = (object: KubeObject): number => {
    if (object.kind === "CustomResourceDefinition") return 0;
    return resourceOf(store.resources(), object)?.isNamespaced === false ? 1 : 2;
  };
  for (const object of wanted.toSorted((a, b) => scope(a) - scope(b))) {
    const shown = `${object.kind}/${object.metadata?.name ?? ""}`;
    const resource = resourceOf(store.resources(), object);
    if (resource === undefined)
      failures.push(`${shown}: no matches for kind "${object.kind}" in version "${object.apiVersion}"`);
    else if (resource.isNamespaced && object.metadata.namespace === undefined)
      failures.push(`${shown}: an empty namespace may not be set when a resource name is provided`);
    else {
      const old = store.get(resource, object.metadata.namespace, object.metadata.name);
      const checksum = createHash("md5").update(JSON.stringify(object)).digest("hex");
      const key = identityOf(object);
      applied.add(key);
      if (old?.metadata.annotations?.["k0s.k0sproject.io/stack-checksum"] === checksum) continue;
      store.put({
        ...old,
        ...object,
        metadata: {
          ...object.metadata,
          ...(old?.metadata.finalizers === undefined ? {} : { finalizers: old.metadata.finalizers }),
          labels: { ...object.metadata.labels, [STACK_LABEL]: stack },
          annotations: {
            ...object.metadata.annotations,
            "k0s.k0sproject.io/stack-checksum": checksum,
            "k0s.k0sproject.io/last-applied-configuration": JSON.stringify(object),
          },
        },
      });
    }
  }
  if (failures.length === 0) prune(store, stack, applied);
  return failures;
}

const identityOf = (object: KubeObject): string =>
  `${object.kind}|${object.apiVersion.split("/").slice(0, -1).join("/")}|${object.metadata.namespace ?? ""}|${object.metadata.name}`;

export function prune(store: Store, stack: string, kept: ReadonlySet<string>): void {
  for (const object of store.all()) {
    if (object.metadata.labels?.[STACK_LABEL] !== stack || kept.has(identityOf(object))) continue;
    if (object.kind === "Endpoints" || object.kind === "EndpointSlice") continue;
    log("info", `pruning ${object.kind} ${object.metadata.name}`, `applier-${stack}`);
    store.remove(object);
  }
}

function filesOf(directory: string): readonly { readonly name: string; readonly text: string }[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith(".yaml") && statSync(join(directory, name)).isFile())
    .toSorted()
    .map((name) => ({ name, text: readFileSync(join(directory, name), "utf8") }));
}

const stacksIn = (root: string): readonly string[] =>
  existsSync(root) ? readdirSync(root).filter((name) => statSync(join(root, name)).isDirectory()) : [];

/**
 * Looks each second, as upstream's file events are gathered for about as long. Nothing is applied again by itself. A folder
 * that is moved away counts as removed: upstream may keep its objects then, and nobody should rely on that.
 */
export function startDeployer(
  store: Store,
  root: string,
  isLeader = (): boolean => true,
): { readonly stop: () => void } {
  const seen = new Map<string, string>();
  const look = (): void => {
    if (!isLeader()) {
      seen.clear();
      return;
    }
    for (const stack of stacksIn(root)) {
      const directory = join(root, stack);
      if (RESERVED.has(stack)) {
        const note = join(directory, "ignored.txt");
        if (!existsSync(note)) writeFileSync(note, `The contents of ${stack} are ignored by k0s.\n`);
        continue;
      }
      const files = filesOf(directory);
      const signature = createHash("sha256").update(JSON.stringify(files)).digest("hex");
      if (seen.get(stack) === signature) continue;
      seen.set(stack, signature);
      const content = readStack(files);
      const failures = content.problem === undefined ? applyStack(store, stack, content.objects) : [content.problem];
      for (const failure of failures) log("error", `failed to apply manifests: ${failure}`, `applier-${stack}`);
      if (failures.length === 0) log("info", `applied ${content.objects.length} objects`, `applier-${stack}`);
    }
    for (const stack of seen.keys())
      if (!existsSync(join(root, stack))) {
        seen.delete(stack);
        prune(store, stack, new Set());
      }
  };
  const guarded = (): void => {
    try {
      look();
    } catch (error) {
      // A file may vanish between listing and reading.
      log("error", String(error), "applier-manager");
    }
  };
  guarded();
  const timer = setInterval(guarded, 1000);
  return {
    stop: () => {
      clearInterval(timer);
    },
  };
}
