import { METRICS_TYPE, metricsOf } from "../metrics.ts";
import type { Route } from "../route.ts";

export const METRICS_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/metrics",
    role: "readonly",
    summary: "what the node says of itself, for Prometheus",
    needsNoState: true,
    async run({ services }) {
      const text = metricsOf(await services.status.node());
      return new Response(text, { headers: { "content-type": METRICS_TYPE, "cache-control": "no-store" } });
    },
  },
];
