/** A node in service, as far as its records go. */
import type { Baseline } from "../../state/model.ts";
import type { State } from "../../state/open.ts";

/** Records `text` as what the node runs; `more`: what a test wants otherwise than any node has it. */
export function recordBaseline(
  state: Pick<State, "documents" | "baseline">,
  text: string,
  more: Partial<Omit<Baseline, "document">> = {},
): void {
  const document = state.documents.add({
    text,
    atMs: more.atMs ?? 1,
    requester: { kind: "document" },
    origin: "apply",
  });
  state.baseline.set({
    document,
    hostname: "n1",
    machineId: "m",
    addresses: {},
    k0sVersion: "v1.36.3+k0s.2",
    inputHash: "x",
    renderVersion: 1,
    secretFingerprints: {},
    rendered: {},
    atMs: 1,
    ...more,
  });
}
