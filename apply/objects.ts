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
    const lost = stack.files.flatMap((file) => lostIn(file, next).map((object) => ({ file: file.name, object })));
    if (lost.length === 0) return [];
    const left = new Set(next.files.flatMap((file) => objectsInFile(file.content)));
    return lost.filter(({ object }) => !left.has(object)).map((one) => ({ stack: stack.name, ...one }));
  });
}

/** Which objects of a file its next version does not have. Only a file that changed is parsed: a stack may have thousands. */
function lostIn(file: ManifestStack["files"][number], next: ManifestStack): readonly ObjectName[] {
  const after = next.files.find((one) => one.name === file.name);
  if (after === undefined || after.content === file.content) return [];
  const kept = new Set(objectsInFile(after.content));
  return objectsInFile(file.content).filter((object) => !kept.has(object));
}
