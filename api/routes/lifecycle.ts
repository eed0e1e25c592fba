import { inTheWay, type OperationKind } from "../../state/model.ts";
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
    run: (context) => leave(context, "reboot"),
  },
  {
    method: "POST",
    path: "/v1/lifecycle/shutdown",
    role: "admin",
    summary: "answer, then switch the machine off",
    run: (context) => leave(context, "shutdown"),
  },
];

/** They take minutes, and leave k0s as it should be. */
const WAITED_FOR: readonly OperationKind[] = ["apply", "handover"];

const WAYS = {
  reboot: { verb: "reboot", says: "restarts", could: "restart" },
  shutdown: { verb: "poweroff", says: "is switched off", could: "switch off" },
} as const;
type Way = keyof typeof WAYS;

async function leave({ services, requester }: RouteContext, way: Way): Promise<Response> {
  const { state, host } = services;
  const atMs = host.clock.nowMs();
  const bootstrap = await services.bootstrap.state();
  const begun = state.operations.begin({ kind: way, requester, version: services.version, atMs });
  // A bootstrap that only waits is no reason: it waits again after the boot.
  if (!begun.ok && (WAITED_FOR.includes(begun.error.running.kind) || bootstrap === "running")) {
    const { running } = begun.error;
    return problem(409, inTheWay(running), { reason: "busy", operation: running.id });
  }
  state.events.add({ atMs, kind: way, severity: "info", message: `the machine ${WAYS[way].says} on request` });
  void leaveSoon(services, way, begun.ok ? begun.value.id : undefined);
  const answer = way === "reboot" ? { rebooting: true } : { shuttingDown: true };
  return json(202, { ...answer, ...(begun.ok ? { operation: begun.value.id } : {}) });
}

/** The operation is closed by the next boot: it succeeded when there is one. */
async function leaveSoon(
  { host, state }: RouteContext["services"],
  way: Way,
  operation: string | undefined,
): Promise<void> {
  await host.clock.sleep(ANSWER_FIRST_MS);
  const result = await host.exec({ argv: ["systemctl", "--no-block", WAYS[way].verb], timeoutMs: 30_000 });
  if (result.exitCode === 0 || operation === undefined) return;
  const failureReason = `systemctl could not ${WAYS[way].could} the machine`;
  state.operations.end(operation, { phase: "failed", failureReason }, host.clock.nowMs());
}
