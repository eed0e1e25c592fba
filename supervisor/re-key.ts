/**
 * Re-keying at the rescue menu: the operator CA commands this node no more, and it may be claimed again with a new code.
 * What the node is stays: cluster, disks, documents. The only way round "what is in a cluster can't be claimed", and it
 * takes somebody in front of the machine.
 */
import type { AppError } from "../kit/app-error.ts";
import { fail } from "../kit/app-error.ts";
import type { Result } from "../kit/result.ts";
import { ok } from "../kit/result.ts";
import type { State } from "../state/open.ts";

/** From the re-keying to the next claim. Meanwhile the document's own CA claims nothing: it may be the lost one. */
export const isReKeyed = ({ meta }: Pick<State, "meta">): boolean => meta.get("re-keyed") !== undefined;

/** The fingerprint of the CA that commands it no more. */
export function reKey(state: State, atMs: number): Result<string, AppError> {
  const claim = state.claim.get();
  if (claim === undefined) {
    return fail("unclaimed", "nobody has claimed this node", { hint: "started normally it shows its code" });
  }
  const { fingerprint } = claim;
  state.transaction(() => {
    state.claim.forget();
    state.meta.set("re-keyed", String(atMs));
    const message = `re-keyed at the rescue menu: operator CA ${fingerprint} commands this node no more`;
    state.events.add({ atMs, kind: "re-keyed", severity: "warning", message });
    state.audit.add({ atMs, requester: { kind: "console" }, route: "rescue re-key", status: 200, outcome: "done" });
  });
  return ok(fingerprint);
}
