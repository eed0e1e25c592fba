import type { FieldClass } from "../api/contract.ts";
import { documentShape } from "../apply/shape.ts";

/** The class of a field (`wireguard[].peers[].endpoint`), or of the field that it is a part of; undefined for a block. */
export function classOf(pattern: string): FieldClass | undefined {
  let at: unknown = documentShape;
  for (const name of pattern.replaceAll("[]", "").split(".")) {
    if (typeof at !== "object" || at === null) break;
    const block: object = "entry" in at && "fields" in at ? (at.fields as object) : at;
    at = Object.hasOwn(block, name) ? (block as Readonly<Record<string, unknown>>)[name] : undefined;
  }
  return typeof at === "string" ? (at as FieldClass) : undefined;
}
