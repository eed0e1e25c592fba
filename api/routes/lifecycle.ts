import { json, problem } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";

/** The answer leaves first. */
const ANSWER_FIRST_MS = 1_000;

export const LIFECYCLE_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/lifecycle/reboot",
    role: "admin",
    summary: "answer, then restart the machine",
    run: reboot,
  },
];

async function reboot({ services, requester }: RouteContext): Promise<Response> {
  const { state, host } = services;
  const atMs = host.clock.nowMs();
  const bootstrap = await services.bootstrap.state();
  const begun = state.operations.begin({ kind: "reboot", requester, version: services.version, atMs });
  // A bootstrap that only waits is no reason: it waits again after the boot.
  if (!begun.ok && !(begun.error.running.kind !== "apply" && bootstrap !== "running")) {
    const { id, kind } = begun.error.running;
    return problem(409, `operation ${id} (${kind}) is running; wait for it`, { reason: "busy", operation: id });
  }
  state.events.add({ atMs, kind: "reboot", severity: "info", message: "the machine restarts on request" });
  void restartSoon(services, begun.ok ? begun.value.id : undefined);
  return json(202, { rebooting: true, ...(begun.ok ? { operation: begun.value.id } : {}) });
}

/** The operation is closed by the next boot: it succeeded when there is one. */
async function restartSoon({ host, state }: RouteContext["services"], operation: string | undefined): Promise<void> {
  await host.clock.sleep(ANSWER_FIRST_MS);
  const result = await host.exec({ argv: ["systemctl", "--no-block", "reboot"], timeoutMs: 30_000 });
  if (result.exitCode === 0 || operation === undefined) return;
  const failureReason = "systemctl could not restart the machine";
  state.operations.end(operation, { phase: "failed", failureReason }, host.clock.nowMs());
}
