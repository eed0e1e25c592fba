import { inTheWay } from "../../state/model.ts";
import type { ServiceAnswer, ServicesAnswer } from "../contract.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";

interface KnownUnit {
  readonly unit: string;
  readonly isRestartable: boolean;
  /** Listed although systemd has no such unit here. */
  readonly isAlwaysThere: boolean;
}

/** A fixed list: the API is no remote control of systemd. */
export const UNITS: readonly KnownUnit[] = [
  { unit: "k0scontroller.service", isRestartable: true, isAlwaysThere: false },
  { unit: "k0sworker.service", isRestartable: true, isAlwaysThere: false },
  { unit: "corium-apid.service", isRestartable: false, isAlwaysThere: true },
  { unit: "corium-bootstrap.service", isRestartable: false, isAlwaysThere: true },
  { unit: "systemd-networkd.service", isRestartable: false, isAlwaysThere: false },
  { unit: "systemd-resolved.service", isRestartable: false, isAlwaysThere: false },
  { unit: "systemd-timesyncd.service", isRestartable: false, isAlwaysThere: false },
];

/** With and without `.service`. */
export const findUnit = (name: string): KnownUnit | undefined =>
  UNITS.find(({ unit }) => unit === name || unit === `${name}.service`);

export const SERVICE_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/services",
    role: "readonly",
    summary: "the services that matter on a node",
    needsNoState: true,
    run: async ({ services }) => {
      const found = await Promise.all(UNITS.map((known) => readService(services.host.systemd, known)));
      return json(200, { services: found.filter((service) => service !== undefined) } satisfies ServicesAnswer);
    },
  },
  {
    method: "POST",
    path: "/v1/services/:unit/restart",
    role: "operator",
    summary: "restart k0s",
    run: restart,
  },
];

async function readService(
  systemd: RouteContext["services"]["host"]["systemd"],
  known: KnownUnit,
): Promise<ServiceAnswer | undefined> {
  const status = await systemd.status(known.unit);
  if (!status.ok || (status.value.loadState === "not-found" && !known.isAlwaysThere)) return undefined;
  const { activeState, subState, restarts } = status.value;
  return { unit: known.unit, activeState, subState, restarts, isRestartable: known.isRestartable };
}

async function restart({ services, params }: RouteContext): Promise<Response> {
  const name = params["unit"] ?? "";
  const known = findUnit(name);
  if (known === undefined)
    return problem(404, `${name} is not one of this node's services`, { reason: "unknown-unit" });
  if (!known.isRestartable) {
    return problem(403, `${known.unit} can't be restarted through the API; only k0s can`, {
      reason: "not-restartable",
    });
  }
  const { systemd } = services.host;
  const status = await systemd.status(known.unit);
  if (!status.ok) return problem(503, sentence(status.error), { reason: "systemd" });
  if (status.value.loadState === "not-found") {
    return problem(404, `${known.unit} is not installed on this node`, { reason: "unknown-unit" });
  }
  const running = services.state.operations.running();
  if (running !== undefined) {
    return problem(409, inTheWay(running), {
      reason: "busy",
      operation: running.id,
    });
  }
  const restarted = await systemd.restart(known.unit);
  if (!restarted.ok) return problem(503, sentence(restarted.error), { reason: "systemd" });
  const service = await readService(systemd, known);
  return json(200, service ?? {});
}
