/** A file of Kubernetes manifests, read as `corium validate` accepts it and as the gate compares it. */
import { LineCounter } from "yaml";
import { composeYaml, inspectNodes } from "./compose.ts";

const MAX_ALIASED = 1000;

export type Manifest =
  /** One entry for each YAML document; `null` for an empty one. */
  | { readonly kind: "objects"; readonly objects: readonly unknown[] }
  /** `line` counts from 1. */
  | { readonly kind: "broken"; readonly line: number }
  | { readonly kind: "too-deep" };

export function readManifest(content: string): Manifest {
  const lines = new LineCounter();
  const composed = composeYaml(content, lines);
  if (composed.kind !== "composed") {
    return composed.kind === "too-deep" ? { kind: "too-deep" } : broken(lines, composed.offset);
  }
  const objects: unknown[] = [];
  for (const document of composed.documents) {
    const [error] = document.errors;
    if (error !== undefined) return broken(lines, error.pos[0]);
    const { isTooDeep, duplicateAt } = inspectNodes(document);
    if (isTooDeep) return { kind: "too-deep" };
    if (duplicateAt !== undefined) return broken(lines, duplicateAt);
    try {
      objects.push((document.toJS({ maxAliasCount: MAX_ALIASED }) as unknown) ?? null);
    } catch {
      // An alias of nothing, or of too much.
      return broken(lines, document.range[0]);
    }
  }
  return { kind: "objects", objects };
}

const broken = (lines: LineCounter, offset: number): Manifest => ({
  kind: "broken",
  line: Math.max(1, lines.linePos(offset).line),
});
