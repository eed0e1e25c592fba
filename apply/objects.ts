/** The Kubernetes objects in manifest files, as k0s's deployer tells them apart when it prunes. */
import type { ManifestStack } from "../config/document.ts";
import { readManifest } from "../config/manifest.ts";

/** `KIND/[NAMESPACE/]NAME` */
export type ObjectName = string;

const asMap = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

function objectNames(value: unknown): readonly ObjectName[] {
  const object = asMap(value);
  const kind = object["kind"];
  if (typeof kind !== "string") return [];
  if (kind.endsWith("List") && Array.isArray(object["items"])) return object["items"].flatMap(objectNames);
  const { name, namespace } = asMap(object["metadata"]);
  if (typeof name !== "string") return [];
  return [typeof namespace === "string" && namespace !== "" ? `${kind}/${namespace}/${name}` : `${kind}/${name}`];
}

/** Of a file that parses; validation refuses the others. */
export function objectsInFile(content: string): readonly ObjectName[] {
  const manifest = readManifest(content);
  return manifest.kind === "objects" ? manifest.objects.flatMap(objectNames) : [];
}

export interface GoneObject {
  readonly stack: string;
  readonly file: string;
  readonly object: ObjectName;
}

/** What stays a stack but lost an object: not even another file of it has that object now. */
export function goneObjects(
  baseline: readonly ManifestStack[],
  proposal: readonly ManifestStack[],
): readonly GoneObject[] {
  return baseline.flatMap((stack) => {
    const next = proposal.find((one) => one.name === stack.name);
    if (next === undefined) return [];
    const left = new Set(next.files.flatMap((file) => objectsInFile(file.content)));
    return stack.files
      .filter((file) => next.files.some((one) => one.name === file.name))
      .flatMap((file) =>
        objectsInFile(file.content)
          .filter((object) => !left.has(object))
          .map((object) => ({ stack: stack.name, file: file.name, object })),
      );
  });
}
