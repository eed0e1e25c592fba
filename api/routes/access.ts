/** What lets others into the cluster. Each is told once, in the answer; the audit knows who got what. */
import { z } from "zod";
import { parseDuration } from "../../config/duration.ts";
import { readJoinToken } from "../../config/token.ts";
import { createToken, NOT_JOINABLE, readKubeconfig, readServerCertificate } from "../../k0s/access/driver.ts";
import { formatServer, hostOf, isNamedIn, parseServer, withServer } from "../../k0s/access/server.ts";
import { overlayAddress } from "../../k0s/addresses.ts";
import type { JoinTokenAnswer, KubeconfigAnswer } from "../contract.ts";
import { type OnController, onController } from "../controller.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route, RouteContext } from "../route.ts";
import { SMALL_BODY_BYTES, withBody } from "../route.ts";

const LONGEST_MS = 24 * 3_600_000;
const SHORTEST_MS = 60_000;
const DEFAULT_EXPIRY = "1h";

const tokenSchema = z.strictObject({
  role: z.enum(["worker", "controller"]),
  expiry: z
    .string()
    .optional()
    .meta({ description: `how long it lets anybody in: 1m to 24h, default ${DEFAULT_EXPIRY}` }),
});
type Body = z.output<typeof tokenSchema>;

export const ACCESS_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/kubeconfig",
    role: "admin",
    summary: "on a controller: the kubeconfig of the cluster's administrator",
    query: [{ name: "server", description: "where it leads: host or host:port; default the cluster's endpoint" }],
    run: kubeconfig,
  },
  withBody({
    method: "POST",
    path: "/v1/join-token",
    role: "admin",
    summary: "on a controller: a token with which a node joins the cluster",
    schema: tokenSchema,
    limitBytes: SMALL_BODY_BYTES,
    run: joinToken,
  }),
];

async function kubeconfig({ services, query, requester }: RouteContext): Promise<Response> {
  const { host, state } = services;
  const given = query.get("server");
  const wanted = given === null ? undefined : parseServer(given);
  if (given !== null && wanted === undefined) {
    return problem(400, "server is host, host:port or https://host:port", { reason: "invalid-query" });
  }
  const node = onController(services);
  if (!node.ok) return node.error;
  const read = await readKubeconfig(host);
  if (!read.ok) return problem(503, sentence(read.error), { reason: read.error.code });
  const made = withServer(read.value, (own) => wanted ?? clusterServer(node.value, own));
  if (!made.ok) return problem(503, sentence(made.error), { reason: made.error.code });
  const { server } = made.value;
  const pem = await readServerCertificate(host);
  const named = pem === undefined ? undefined : isNamedIn(pem, hostOf(server));
  const atMs = host.clock.nowMs();
  state.audit.add({ atMs, requester, route: "GET /v1/kubeconfig", status: 200, outcome: "done" });
  const answer: KubeconfigAnswer = {
    kubeconfig: made.value.kubeconfig.reveal(),
    server: formatServer(server),
    warnings: named?.isNamed === false ? [unnamed(hostOf(server), named.names)] : [],
  };
  return json(200, answer);
}

const unnamed = (host: string, names: string): string =>
  `the API server's certificate does not name ${host}, so kubectl will refuse it; it names ${names}; cluster.subjectAltNames of each controller's document is where a name is added, before it bootstraps`;

/** The address that stays when this node does not: endpoint or VIP; else the node's own, which k0s chose or was told. */
function clusterServer({ document, baseline }: OnController, own: URL): URL {
  const host =
    document.cluster.endpoint ??
    (document.ha.enabled ? document.ha.virtualIP?.split("/")[0] : undefined) ??
    overlayAddress(document) ??
    baseline.addresses.apiAddress;
  const server = host === undefined ? undefined : parseServer(host);
  if (server === undefined) return own;
  server.port = own.port;
  return server;
}

async function joinToken({ services, body, note }: RouteContext<Body>): Promise<Response> {
  const expiry = body.expiry ?? DEFAULT_EXPIRY;
  const lifetimeMs = parseDuration(expiry);
  if (lifetimeMs === undefined || lifetimeMs < SHORTEST_MS || lifetimeMs > LONGEST_MS) {
    return problem(400, `expiry is a time from 1m to 24h, as 90m or 1h30m; it is ${JSON.stringify(expiry)}`, {
      reason: "invalid-body",
    });
  }
  const node = onController(services);
  if (!node.ok) return node.error;
  const { document } = node.value;
  if (document.role === "single") {
    return problem(
      409,
      "this is a single-node cluster: nothing can join it; a cluster that grows begins with a controller",
      {
        reason: NOT_JOINABLE,
      },
    );
  }
  const { host } = services;
  const atMs = host.clock.nowMs();
  const made = await createToken(host, { role: body.role, lifetimeMs });
  if (!made.ok) {
    return problem(made.error.code === NOT_JOINABLE ? 409 : 503, sentence(made.error), { reason: made.error.code });
  }
  const token = readJoinToken(made.value.reveal());
  if (token?.role !== body.role) {
    return problem(503, `k0s token create printed something that is no token for a ${body.role}`, { reason: "token" });
  }
  note(`token ${token.id} for a ${body.role}, ${expiry}`);
  const answer: JoinTokenAnswer = {
    token: made.value.reveal(),
    id: token.id,
    role: body.role,
    server: token.server,
    expiresAt: new Date(atMs + lifetimeMs).toISOString(),
  };
  return json(200, answer);
}
