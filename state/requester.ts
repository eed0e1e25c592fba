import type { Requester } from "./model.ts";

/** Who asked, in words: for events and for people at a console. */
export function nameOf(requester: Requester): string {
  if (requester.kind === "document") return "the node's own sources";
  if (requester.kind !== "operator") return `somebody at the ${requester.kind === "console" ? "console" : "socket"}`;
  return requester.name === "" ? `who claimed it from ${requester.address}` : `operator ${requester.name}`;
}
