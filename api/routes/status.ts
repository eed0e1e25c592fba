import type { DisksAnswer } from "../contract.ts";
import { json, problem, sentence } from "../problem.ts";
import type { Route } from "../route.ts";

/** The consoles of all terminals share a look: each one asks k0s, mdadm, wg and systemd. */
const CONSOLE_AGE_MS = 3_000;

export const STATUS_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/health",
    role: "readonly",
    summary: "whether the node does its job",
    needsNoState: true,
    run: async ({ services }) => json(200, await services.status.health()),
  },
  {
    method: "GET",
    path: "/v1/node",
    role: "readonly",
    summary: "what the node is and how it fares",
    needsNoState: true,
    run: async ({ services, requester }) =>
      json(200, await services.status.node(requester.kind === "console" ? CONSOLE_AGE_MS : 0)),
  },
  {
    method: "GET",
    path: "/v1/disks",
    role: "readonly",
    summary: "every disk, and why it could or couldn't be used",
    needsNoState: true,
    async run({ services }) {
      const disks = await services.status.disks();
      return disks.ok
        ? json(200, { disks: disks.value } satisfies DisksAnswer)
        : problem(503, sentence(disks.error), { reason: "inventory" });
    },
  },
];
