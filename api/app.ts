import { Hono } from "hono";

import { includesRole } from "../kit/operator-role.ts";
import { isSqliteError } from "../state/sqlite.ts";
import { checkBody, readJsonBody } from "./body.ts";
import type { Caller } from "./caller.ts";
import type { ErrorBody } from "./contract.ts";
import type { Handle, Wire } from "./http-server.ts";
import { problem, sentence } from "./problem.ts";
import type { Route } from "./route.ts";
import { ENROLL_PATH, enroll } from "./routes/enroll.ts";
import { ROUTES } from "./routes/all.ts";
import type { ApiServices } from "./services.ts";

/** `handle` never rejects and never answers with a page of the runtime's. */
export function createApi(services: ApiServices): { readonly handle: Handle } {
  const app = new Hono<{ Bindings: Wire }>();

  app.use(async (context, next) => {
    const refusal = refuseCaller(context.env.caller, services, context.req.method, context.req.path);
    if (refusal === undefined) await next();
    else context.res = refusal;
  });

  app.on("POST", ENROLL_PATH, (context) => enroll(services, context.req.raw, context.env));
  for (const route of ROUTES) {
    app.on(route.method, route.path, (context) =>
      runRoute(services, route, context.req.raw, context.env, context.req.param()),
    );
  }
  // After all of them: what is left of a known path is the wrong method.
  for (const path of new Set([...ROUTES.map((route) => route.path), ENROLL_PATH])) {
    const allowed =
      path === ENROLL_PATH ? ["POST"] : ROUTES.filter((route) => route.path === path).map(({ method }) => method);
    const allow = [...allowed, ...(allowed.includes("GET") ? ["HEAD"] : [])].join(", ");
    app.all(path, () => problem(405, `this route takes ${allow}`, {}, { allow }));
  }
  app.notFound(() => problem(404, "there is no such route; /v1/openapi.json lists all"));
  app.onError((thrown) => failed(thrown));

  return {
    async handle(request, wire) {
      let response: Response;
      try {
        response = await app.fetch(request, wire);
      } catch (thrown) {
        response = failed(thrown);
      }
      response.headers.set("corium-version", services.version);
      return response;
    },
  };
}

const saysOf = ({ code }: { readonly code: string }): string =>
  code === "SQLITE_FULL"
    ? "the disk that holds the state is full, so that nothing can be recorded (SQLITE_FULL): make room in /var/lib/corium"
    : `the state database can't be used (${code})`;

/** It was carried out or refused, and whoever asked must know which, also where the audit can't be written. */
async function unaudited(response: Response, isDryRun: boolean, thrown: unknown): Promise<Response> {
  if (!isSqliteError(thrown)) throw thrown;
  const { error = `it was answered ${response.status}`, operation } =
    response.status < 400 ? {} : ((await response.json()) as Partial<ErrorBody>);
  const what = response.status >= 400 ? error : isDryRun ? "nothing was changed" : "what was asked for was done";
  return problem(503, `${what}; it is not in the audit: ${saysOf(thrown)}; Kubernetes keeps running`, {
    reason: "state",
    ...(operation === undefined ? {} : { operation }),
  });
}

function failed(thrown: unknown): Response {
  if (isSqliteError(thrown)) {
    return problem(503, `${saysOf(thrown)}; Kubernetes keeps running`, { reason: "state" });
  }
  process.stderr.write(`${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}\n`);
  return problem(500, "something unexpected happened; the journal of corium-apid says what");
}

/** Before the route is even looked for: strangers learn nothing of what there is. */
function refuseCaller(caller: Caller, services: ApiServices, method: string, path: string): Response | undefined {
  switch (caller.kind) {
    case "local":
    case "operator":
      return undefined;
    case "unclaimed":
      if (services.stateProblem !== undefined) {
        return problem(503, `${sentence(services.stateProblem)}; nobody can be let in until then`, {
          reason: services.stateProblem.code,
        });
      }
      if (method === "POST" && path === ENROLL_PATH) return undefined;
      return problem(409, "claim first: nobody owns this node yet; run `cctl enroll`", { reason: "claim-first" });
    case "undecided":
      return problem(503, sentence(caller.error), { reason: caller.error.code });
    case "refused":
      // Enrolling a claimed node is told apart, so that nobody looks for a mistake in his code.
      if (path === ENROLL_PATH) return problem(409, "this node is claimed already", { reason: "claimed" });
      return problem(401, sentence(caller.error), { reason: caller.error.code });
    case "no-role":
      return problem(
        403,
        `the certificate of ${caller.name} (${caller.fingerprint}) names no role; issue one with \`cctl pki issue --role readonly|operator|admin\``,
        { reason: "no-role" },
      );
  }
}

async function runRoute(
  services: ApiServices,
  route: Route,
  request: Request,
  wire: Wire,
  params: Readonly<Record<string, string>>,
): Promise<Response> {
  const { caller } = wire;
  if (caller.kind !== "local" && caller.kind !== "operator") {
    return problem(401, "not authorised", { reason: "no-certificate" });
  }
  if (caller.kind === "operator" && caller.isOfNewCa === true) await services.apply.greet(wire.connection);
  const { pathname, searchParams: query } = new URL(request.url);
  const isChange = route.method !== "GET";
  let noted = "done";
  const answer = async (): Promise<Response> => {
    if (!includesRole(caller.role, route.role)) {
      return problem(403, `this needs the role ${route.role}, and the certificate has ${caller.role}`, {
        reason: "role",
      });
    }
    if (services.stateProblem !== undefined && route.needsNoState !== true) {
      return problem(503, sentence(services.stateProblem), { reason: services.stateProblem.code });
    }
    let body: unknown;
    if (route.body !== undefined) {
      const read = await readJsonBody(request, wire, route.body.limitBytes);
      if (!read.ok) return read.error;
      const checked = checkBody(route.body.schema, read.value);
      if (!checked.ok) return checked.error;
      body = checked.value;
    }
    return route.run({
      services,
      params,
      query,
      headers: request.headers,
      body,
      requester: caller.requester,
      role: caller.role,
      wire,
      note: (outcome) => void (noted = outcome),
      isStillAllowed: () => {
        const now = wire.recheck();
        return (now.kind === "local" || now.kind === "operator") && includesRole(now.role, route.role);
      },
    });
  };
  const response = await answer();
  if (isChange && services.stateProblem === undefined) {
    const isDryRun = query.has("dryRun");
    const outcome = response.status < 400 ? noted : ((await reasonOf(response)) ?? "refused");
    try {
      services.state.audit.add({
        atMs: services.host.clock.nowMs(),
        requester: caller.requester,
        route: `${route.method} ${pathname}${isDryRun ? "?dryRun" : ""}`,
        status: response.status,
        outcome,
      });
    } catch (thrown) {
      return unaudited(response, isDryRun, thrown);
    }
  }
  return response;
}

async function reasonOf(response: Response): Promise<string | undefined> {
  const body = (await response.clone().json()) as { readonly reason?: string };
  return body.reason;
}
