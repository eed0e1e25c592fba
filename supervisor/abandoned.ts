import type { State } from "../state/open.ts";

/**
 * Closes what a dead process left running: none runs for ever, and a failed one does not block the next. Bootstrap and
 * installation are left to their own process, which goes on with them, unless the node is in service already; a reset to
 * its own for as long as its intent is there (supervisor/reset.ts).
 */
export function closeAbandoned(state: State, nowMs: number, { isResetting }: { readonly isResetting: boolean }): void {
  const isInService = state.meta.get("in-service-at-ms") !== undefined;
  for (const { id, kind, message } of state.operations.abandoned()) {
    switch (kind) {
      case "reboot":
      case "shutdown":
        // It is this boot that shows that it succeeded.
        state.operations.end(id, { phase: "succeeded" }, nowMs);
        break;
      case "bootstrap":
      case "install":
        if (isInService) state.operations.end(id, { phase: "succeeded" }, nowMs);
        break;
      case "disk-replace":
        // The array is rebuilt by the kernel meanwhile: it is gone on with (supervisor/disk-replace.ts).
        break;
      case "reset":
        if (!isResetting) stopped(state, { id, kind, message }, nowMs);
        break;
      case "baseline-adopt":
        // The record is the whole of it.
        if (state.baseline.get() === undefined) stopped(state, { id, kind, message }, nowMs);
        else state.operations.end(id, { phase: "succeeded" }, nowMs);
        break;
      case "apply":
      case "enroll":
      case "drain":
      // What it had moved was looked at before (apply/handover/driver.ts).
      case "handover":
      case "render":
        stopped(state, { id, kind, message }, nowMs);
        break;
    }
  }
}

function stopped(
  { operations, events }: State,
  { id, kind, message }: { readonly id: string; readonly kind: string; readonly message: string | undefined },
  nowMs: number,
): void {
  const at = message === undefined ? "" : ` (${message})`;
  const failureReason = `the machine or the program stopped in the middle${at}`;
  operations.end(id, { phase: "failed", failureReason }, nowMs);
  const text = `operation ${id} (${kind}): ${failureReason}`;
  events.add({ atMs: nowMs, kind: "operation-abandoned", severity: "error", message: text });
}
